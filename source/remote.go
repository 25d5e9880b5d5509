// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Auth is how to authenticate to a remote, and the remote to us. The zero value
// is anonymous.
type Auth struct {
	Username, Password string // https
	BearerToken        string // https, instead of the above
	CA                 []byte // https: PEM; if set, only these are trusted

	Identity         []byte // ssh: a private key
	IdentityPassword []byte // ssh: the key's, if it is encrypted
	KnownHosts       []byte // ssh: the accepted host keys; others are refused
}

// remote is the origin of a mirror. Its address contains no secret.
type remote struct {
	endpoint *transport.Endpoint
	auth     Auth
}

func (r *remote) String() string { return r.endpoint.String() }

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

		user := m[1]
		if user == "" {
			user = "git"
		}

		return &remote{&transport.Endpoint{Protocol: "ssh", User: user, Host: m[2], Path: m[3]}, auth}, true, nil
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

	if password, ok := u.User.Password(); ok && auth.Password == "" && u.Scheme != "ssh" {
		auth.Password = password
	}
	if name := u.User.Username(); name != "" && auth.Username == "" {
		auth.Username = name
	}

	if u.Scheme == "ssh" {
		if endpoint.User = auth.Username; endpoint.User == "" {
			endpoint.User = "git"
		}
	}

	return &remote{endpoint, auth}, true, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

var userInfo = regexp.MustCompile(`://[^/]*@`)

// Redact removes user and password from an address: what is kept and shown has neither.
func Redact(address string) string { return userInfo.ReplaceAllString(address, "://") }

// redacted is an error of a remote without secrets: an error of a transport may
// quote the address it was given.
func (r *remote) redacted(err error) error {
	invalid := x509.CertificateInvalidError{}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, transport.ErrAuthenticationRequired):
		err = errors.New("authentication required, or repository not found")
	case errors.Is(err, transport.ErrAuthorizationFailed):
		err = errors.New("the server rejected the credentials")
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		err = errors.New("the repository is empty")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		// The library's text contains the time of day, which is new each time.
		err = fmt.Errorf("its certificate is valid from %s to %s, which is not now by the local clock",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	}

	return fmt.Errorf("%s: %w", r, err)
}
