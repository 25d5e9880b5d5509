// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/fairlead/fairlead/fleet"
)

// Forge makes addresses of the repository's own pages on its forge. The zero Forge makes
// none.
type Forge struct {
	base string // https://github.com/acme/fleet
	kind string // github, gitlab or gitea
	dir  string // of the fleet in the repository, with a slash behind; "" is the root
}

// NewForge returns the forge of a repository, as far as its address tells: its kind by
// the name of the host. kind overrides that; "" does not. dir is that of the fleet.
func NewForge(address, kind, dir string) Forge {
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "" {
		if host, at, scp := strings.Cut(address, ":"); scp && !strings.Contains(host, "/") { // git@github.com:acme/fleet.git
			u, err = url.Parse("ssh://" + host + "/" + at)
		}
	}
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" {
		return Forge{}
	}
	if kind == "" {
		for _, known := range []string{"github", "gitlab", "gitea", "forgejo", "codeberg"} {
			if strings.Contains(u.Hostname(), known) {
				kind = known
			}
		}
	}
	switch kind {
	case "github", "gitlab":
	case "gitea", "forgejo", "codeberg":
		kind = "gitea"
	default:
		return Forge{}
	}

	base := url.URL{Scheme: "https", Host: u.Hostname(), Path: strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), ".git")}
	if u.Scheme != "ssh" {
		base.Scheme, base.Host = u.Scheme, u.Host
	}
	if dir = path.Clean(dir) + "/"; dir == "./" {
		dir = ""
	}
	return Forge{base.String(), kind, dir}
}

// Commit is the address of a commit; "" if there is no forge.
func (f Forge) Commit(hash string) string {
	switch f.kind {
	case "":
		return ""
	case "gitlab":
		return f.base + "/-/commit/" + hash
	}
	return f.base + "/commit/" + hash
}

// PullRequest is the address of a pull request.
func (f Forge) PullRequest(number int) string {
	switch f.kind {
	case "":
		return ""
	case "gitlab":
		return fmt.Sprintf("%s/-/merge_requests/%d", f.base, number)
	case "gitea":
		return fmt.Sprintf("%s/pulls/%d", f.base, number)
	}
	return fmt.Sprintf("%s/pull/%d", f.base, number)
}

// File is the address of a line of a file as of a commit.
func (f Forge) File(commit string, at fleet.Origin) string {
	address := f.base
	switch f.kind {
	case "":
		return ""
	case "gitlab":
		address += "/-/blob/"
	case "gitea":
		address += "/src/commit/"
	default:
		address += "/blob/"
	}
	address += commit + "/" + escapePath(f.dir+at.File)
	if at.Line > 0 {
		address += fmt.Sprintf("#L%d", at.Line)
	}
	return address
}

// Edit is where a file of a branch is edited, for a pull request.
func (f Forge) Edit(branch, file string) string {
	where := escapePath(branch) + "/" + escapePath(f.dir+file)
	switch f.kind {
	case "":
		return ""
	case "gitlab":
		return f.base + "/-/edit/" + where
	case "gitea":
		return f.base + "/_edit/" + where
	}
	return f.base + "/edit/" + where
}

func escapePath(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}
