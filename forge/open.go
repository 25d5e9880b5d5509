// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// userAgent is how requests introduce themselves.
const userAgent = "fairlead"

// mostPages bounds a listing: 100 comments a page are 20,000 in all.
const mostPages = 200

// Open returns the forge of a target. It asks the forge only where the target does not
// name the pull request, but the branch of one.
func Open(ctx context.Context, t Target, token string) (Forge, error) {
	base, err := t.base()
	if err != nil {
		return nil, err
	}
	client := newHTTPClient(base, token)

	switch t.Kind {
	case KindGitHub:
		return openGitHub(ctx, t, base, client)
	case KindGitLab:
		return openGitLab(t, base, client)
	case KindGitea:
		return openGitea(t, base, client)
	}
	return nil, fmt.Errorf("there is no forge %q: github, gitlab or gitea", t.Kind)
}

// base is the URL that all requests begin with.
func (t Target) base() (*url.URL, error) {
	text := t.URL
	if text == "" {
		text = map[string]string{KindGitHub: "https://api.github.com", KindGitLab: "https://gitlab.com"}[t.Kind]
	}
	u, err := url.Parse(strings.TrimRight(text, "/") + "/")
	switch {
	case err != nil:
		return nil, fmt.Errorf("the URL of the forge cannot be read") // it may hold a password
	case u.User != nil:
		return nil, fmt.Errorf("the URL of the forge has a user: a token comes from the environment")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, fmt.Errorf("%q is not the URL of a forge", text)
	}
	if t.Kind == KindGitHub {
		toAPI(u)
	}
	return u, nil
}

// toAPI turns the URL of a GitHub into that of its API, if it is not that.
func toAPI(u *url.URL) {
	switch host := u.Hostname(); {
	case strings.HasPrefix(host, "api."), strings.HasSuffix(u.Path, "/api/v3/"):
	case host == "github.com", strings.HasSuffix(host, ".ghe.com"):
		u.Host = "api." + u.Host
	default:
		u.Path += "api/v3/"
	}
}

// split returns the owner and the name of a repository.
func (t Target) split() (owner, name string, err error) {
	owner, name, ok := strings.Cut(t.Repo, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("the repository %q is not of the form OWNER/NAME", t.Repo)
	}
	return owner, name, nil
}

// notToRead reports whether a token lacks the permission for something that is not
// needed.
func notToRead(err error) bool {
	return refusedWith(err, http.StatusForbidden, http.StatusNotFound)
}

// errPages is the error of a listing without end.
var errPages = fmt.Errorf("there are more than %d pages of comments", mostPages)
