// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Auth is how to authenticate to a remote, and the remote to us. The zero value
// is anonymous.
type Auth struct {
	Username, Password string     // https
	BearerToken        string     // https, instead of the above
	App                *GitHubApp // https, instead of both
	CA                 []byte     // https: PEM; if set, only these are trusted
	// Certificate and Key are what we present to an https server: PEM, both or neither.
	Certificate, Key []byte

	Identity         []byte // ssh: a private key
	IdentityPassword []byte // ssh: the key's, if it is encrypted
	KnownHosts       []byte // ssh: the accepted host keys; others are refused

	// Proxy is between us and the server. nil: for https what the environment says
	// (HTTPS_PROXY), for ssh none.
	Proxy *Proxy
}

// String and GoString keep the values out of logs and errors.
func (Auth) String() string        { return "credentials" }
func (Auth) GoString() string      { return "credentials" }
func (GitHubApp) String() string   { return "GitHub App" }
func (GitHubApp) GoString() string { return "GitHub App" }
func (Proxy) String() string       { return "proxy" }
func (Proxy) GoString() string     { return "proxy" }

// tls is how to speak TLS with the remote.
func (a *Auth) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(a.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(a.CA) {
			return nil, errors.New("the CA contains no PEM certificate")
		}
	}

	if len(a.Certificate) > 0 || len(a.Key) > 0 {
		pair, err := tls.X509KeyPair(a.Certificate, a.Key)
		if err != nil {
			return nil, &fault{ErrAuthentication, fmt.Errorf("client certificate: %w", err)}
		}
		config.Certificates = []tls.Certificate{pair}
	}

	return config, nil
}
