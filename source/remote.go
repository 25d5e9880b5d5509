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

// Auth is how a remote is told who asks, and how it is known. Its zero value
// asks anonymously.
type Auth struct {
	Username, Password string // https
	BearerToken        string // https, instead of the above
	CA                 []byte // https: PEM; when set, only these are trusted

	Identity         []byte // ssh: a private key
	IdentityPassword []byte // ssh: of the key, when it is encrypted
	KnownHosts       []byte // ssh: the host keys to accept; others are refused
}

// remote is where a mirror comes from. Its address holds no secret.
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

// parseRemote understands https://, ssh:// and git@host:path, and reports
// false for a path on this machine. Everything else is refused here, before
// anything is connected to or run.
func parseRemote(address string, auth Auth) (r *remote, isRemote bool, err error) {
	refuse := func(format string, args ...any) (*remote, bool, error) {
		return nil, false, fmt.Errorf("url %s: %s", redact(address), fmt.Sprintf(format, args...))
	}
	if address == "" || strings.HasPrefix(address, "-") {
		return refuse("no url and no path")
	}
	if strings.ContainsFunc(address, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return refuse("it holds control characters")
	}
	if withHelper.MatchString(address) {
		return refuse("remote helpers are not run; use https://, ssh:// or a path")
	}
	scheme := withScheme.FindStringSubmatch(address)
	if scheme == nil {
		m := scpLike.FindStringSubmatch(address)
		if m == nil {
			return nil, false, nil
		}
		if strings.HasPrefix(m[3], "-") {
			return refuse("the path begins with a dash")
		}
		user := m[1]
		if user == "" {
			user = "git"
		}
		return &remote{&transport.Endpoint{Protocol: "ssh", User: user, Host: m[2], Path: m[3]}, auth}, true, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return refuse("it cannot be parsed")
	}
	switch u.Scheme {
	case "https", "ssh":
	case "http":
		if !isLoopback(u.Hostname()) {
			return refuse("http is only for this machine; use https://")
		}
	default:
		return refuse("scheme %q is not supported; use https://, ssh:// or a path", u.Scheme)
	}
	switch {
	case u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-"):
		return refuse("it has no host")
	case strings.Trim(u.Path, "/") == "" || strings.HasPrefix(strings.TrimLeft(u.Path, "/"), "-"):
		return refuse("it has no path")
	case u.RawQuery != "" || u.Fragment != "":
		return refuse("a query or fragment means nothing here")
	}
	endpoint := &transport.Endpoint{Protocol: u.Scheme, Host: u.Hostname(), Path: u.Path}
	if strings.Contains(endpoint.Host, ":") {
		endpoint.Host = "[" + endpoint.Host + "]"
	}
	if port := u.Port(); port != "" {
		if _, err := fmt.Sscan(port, &endpoint.Port); err != nil || endpoint.Port > 65535 {
			return refuse("port %q is none", port)
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

var userInfo = regexp.MustCompile(`://[^/@]*@`)

// redact removes user and password from an address.
func redact(address string) string { return userInfo.ReplaceAllString(address, "://") }

// fault is what went wrong with a remote, free of secrets: an error of a
// transport may quote the address it was given.
func (r *remote) fault(err error) error {
	invalid := x509.CertificateInvalidError{}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, transport.ErrAuthenticationRequired):
		err = errors.New("the server asks for credentials, or has no such repository")
	case errors.Is(err, transport.ErrAuthorizationFailed):
		err = errors.New("the server refuses these credentials")
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		err = errors.New("the repository is empty")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		// The words of the library hold the time of day, and are new each time.
		err = fmt.Errorf("its certificate is valid from %s to %s, and by our clock that is not now",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("%s: %w", r, err)
}
