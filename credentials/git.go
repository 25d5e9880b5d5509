// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"strings"

	"github.com/fairlead/fairlead/source"
)

// The keys of a Secret for git. The names in parentheses are those of older Flux versions
// and are read where the others are missing.
const (
	keyUsername    = "username"
	keyPassword    = "password"
	keyBearerToken = "bearerToken"
	keyCA          = "ca.crt"
	keyOldCA       = "caFile"
	keyCertificate = "tls.crt"
	keyOldCert     = "certFile"
	keyPrivateKey  = "tls.key"
	keyOldKey      = "keyFile"
	keyIdentity    = "identity"
	keyKnownHosts  = "known_hosts"

	keyAppID           = "githubAppID"
	keyAppInstallation = "githubAppInstallationID"
	keyAppOwner        = "githubAppInstallationOwner"
	keyAppKey          = "githubAppPrivateKey"
	keyAppBaseURL      = "githubAppBaseURL"

	keyAddress = "address"
)

// gitKeys are the keys that make a Secret one for git.
var gitKeys = []string{
	keyUsername, keyPassword, keyBearerToken, keyCA, keyOldCA, keyCertificate, keyOldCert, keyPrivateKey, keyOldKey,
	keyIdentity, keyKnownHosts, keyAppID, keyAppInstallation, keyAppOwner, keyAppKey, keyAppBaseURL,
}

// Git reads how to authenticate to a git server, from the keys of Flux's git Secrets.
func Git(values map[string][]byte, name string) (source.Auth, error) {
	d := data{name, values}
	if !d.hasAny(gitKeys...) {
		return source.Auth{}, d.errorf("it has no key for git: username and password, bearerToken, identity and known_hosts, githubAppID, ca.crt, or tls.crt and tls.key")
	}

	var auth source.Auth
	for _, part := range []func(*source.Auth) error{d.gitTLS, d.gitSSH, d.gitBasic, d.gitApp} {
		if err := part(&auth); err != nil {
			return source.Auth{}, err
		}
	}

	return auth, nil
}

func (d data) gitTLS(auth *source.Auth) error {
	auth.CA = d.first(keyCA, keyOldCA)
	if err := d.checkCA(keyCA, auth.CA); err != nil {
		return err
	}

	auth.Certificate, auth.Key = d.first(keyCertificate, keyOldCert), d.first(keyPrivateKey, keyOldKey)
	switch {
	case len(auth.Certificate) == 0 && len(auth.Key) == 0:
		return nil
	case len(auth.Key) == 0:
		return d.errorf("it has tls.crt and no tls.key")
	case len(auth.Certificate) == 0:
		return d.errorf("it has tls.key and no tls.crt")
	}
	if _, err := tls.X509KeyPair(auth.Certificate, auth.Key); err != nil {
		return d.errorf("tls.crt and tls.key are not a certificate and its key in PEM")
	}

	return nil
}

func (d data) gitSSH(auth *source.Auth) error {
	auth.Identity, auth.KnownHosts = d.first(keyIdentity), d.first(keyKnownHosts)
	switch {
	case auth.Identity != nil && auth.KnownHosts == nil:
		return d.errorf("it has identity and no known_hosts, which ssh requires; ssh-keyscan HOST prints it")
	case auth.Identity != nil:
		auth.IdentityPassword = []byte(d.text(keyPassword))
	}

	return nil
}

func (d data) gitBasic(auth *source.Auth) error {
	auth.Username, auth.BearerToken = d.text(keyUsername), d.text(keyBearerToken)
	password := d.text(keyPassword)
	switch {
	case auth.Username != "" && password == "" && auth.Identity == nil:
		return d.errorf("it has username and no password")
	case auth.Username == "" && password != "" && auth.Identity == nil:
		return d.errorf("it has password and neither username nor identity; most forges take any username beside a token")
	case d.hasAny(keyBearerToken) && auth.BearerToken == "":
		return d.errorf("bearerToken is empty")
	case strings.ContainsAny(auth.Username+password+auth.BearerToken, "\r\n\x00"):
		return d.errorf("username, password and bearerToken must be one line each")
	case auth.Username != "":
		auth.Password = password // without a username it is the identity's alone
	}

	return nil
}

func (d data) gitApp(auth *source.Auth) error {
	if !d.hasAny(keyAppID, keyAppInstallation, keyAppOwner, keyAppKey, keyAppBaseURL) {
		return nil
	}
	if auth.Username != "" || auth.BearerToken != "" || auth.Identity != nil {
		return d.errorf("it has a GitHub App beside other credentials: remove one of them")
	}

	app := &source.GitHubApp{
		ID: d.text(keyAppID), InstallationID: d.text(keyAppInstallation), Owner: d.text(keyAppOwner),
		PrivateKey: d.values[keyAppKey], BaseURL: d.text(keyAppBaseURL),
	}
	if app.InstallationID != "" {
		app.Owner = "" // as in Flux, the number wins
	}
	if err := app.Check(); err != nil {
		return d.errorf("GitHub App: %w", err)
	}

	auth.App = app
	return nil
}

// Proxy reads an HTTP proxy, from the keys of Flux's proxy Secrets.
func Proxy(values map[string][]byte, name string) (*source.Proxy, error) {
	d := data{name, values}
	proxy := &source.Proxy{Address: d.text(keyAddress), Username: d.text(keyUsername), Password: d.text(keyPassword)}
	if proxy.Address == "" {
		return nil, d.errorf("it has no address")
	}
	if proxy.Username == "" && proxy.Password != "" {
		return nil, d.errorf("it has password and no username")
	}
	if err := proxy.Check(); err != nil {
		return nil, d.errorf("%w", err)
	}

	return proxy, nil
}
