// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// remote is the origin of a mirror. Its address contains no secret.
type remote struct {
	endpoint *transport.Endpoint
	inURL    *url.Userinfo // what the address says of the user; nil: nothing
	auth     Auth
	tokens   *tokens // of the GitHub App in auth; they outlive a change of the credentials
	links    *links  // https: kept between sessions
}

func (r *remote) String() string { return r.endpoint.String() }

// with is the same remote with other credentials. What they lack is taken from the
// address.
func (r *remote) with(auth Auth) *remote {
	next, endpoint := *r, *r.endpoint
	name := r.inURL.Username()
	if endpoint.Protocol == "ssh" {
		endpoint.User = cmp.Or(name, auth.Username, "git")
	}
	if password, ok := r.inURL.Password(); ok && auth.Password == "" && endpoint.Protocol != "ssh" {
		auth.Password = password
	}
	auth.Username = cmp.Or(auth.Username, name)

	next.endpoint, next.auth = &endpoint, auth
	return &next
}

var (
	withScheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	withHelper = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*::`)
	scpLike    = regexp.MustCompile(`^(?:([A-Za-z0-9._-]+)@)?([A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):([^/\\:].*|/.*)$`)
)

// CheckURL reports why an address is none of a remote repository that can be followed.
func CheckURL(address string) error {
	_, isRemote, err := parseRemote(address, Auth{})
	if err == nil && !isRemote {
		err = fmt.Errorf("url %s: not the address of a remote; use https:// or ssh://", Redact(address))
	}
	return err
}

// parseRemote parses https://, ssh:// and git@host:path. It returns false for a
// local path, and refuses everything else before anything is connected to or
// run.
func parseRemote(address string, auth Auth) (r *remote, isRemote bool, err error) {
	refuse := func(format string, args ...any) (*remote, bool, error) {
		return nil, false, fmt.Errorf("url %s: %s", Redact(address), fmt.Sprintf(format, args...))
	}

	if address == "" || strings.HasPrefix(address, "-") {
		return refuse("neither a URL nor a path")
	}
	if strings.ContainsFunc(address, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return refuse("contains control characters")
	}
	if withHelper.MatchString(address) {
		return refuse("remote helpers are not supported; use https://, ssh:// or a path")
	}

	scheme := withScheme.FindStringSubmatch(address)
	if scheme == nil {
		m := scpLike.FindStringSubmatch(address)
		if m == nil {
			return nil, false, nil
		}

		if strings.HasPrefix(m[3], "-") {
			return refuse("the path starts with a dash")
		}

		r := &remote{endpoint: &transport.Endpoint{Protocol: "ssh", Host: m[2], Path: m[3]}}
		if m[1] != "" {
			r.inURL = url.User(m[1])
		}

		return r.with(auth), true, nil
	}

	u, err := url.Parse(address)
	if err != nil {
		return refuse("cannot be parsed")
	}

	switch u.Scheme {
	case "https", "ssh":
	case "http":
		if !isLoopback(u.Hostname()) {
			return refuse("http is only allowed for localhost; use https://")
		}
	default:
		return refuse("scheme %q is not supported; use https://, ssh:// or a path", u.Scheme)
	}

	switch {
	case u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-"):
		return refuse("no host")
	case strings.Trim(u.Path, "/") == "" || strings.HasPrefix(strings.TrimLeft(u.Path, "/"), "-"):
		return refuse("no path")
	case u.RawQuery != "" || u.Fragment != "":
		return refuse("must not have a query or a fragment")
	}

	endpoint := &transport.Endpoint{Protocol: u.Scheme, Host: u.Hostname(), Path: u.Path}
	if strings.Contains(endpoint.Host, ":") {
		endpoint.Host = "[" + endpoint.Host + "]"
	}

	if port := u.Port(); port != "" {
		if _, err := fmt.Sscan(port, &endpoint.Port); err != nil || endpoint.Port > 65535 {
			return refuse("invalid port %q", port)
		}
	}

	r = &remote{endpoint: endpoint, inURL: u.User, tokens: &tokens{}, links: &links{}}
	return r.with(auth), true, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var userInfo = regexp.MustCompile(`://[^/]*@`)

// Redact removes user and password from an address: what is kept and shown has neither.
func Redact(address string) string { return userInfo.ReplaceAllString(address, "://") }
