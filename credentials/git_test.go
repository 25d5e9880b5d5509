// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/credentials"
	"github.com/fairlead/fairlead/source"
)

// secret is the content of a Secret.
type secret map[string]string

func (s secret) values() map[string][]byte {
	values := map[string][]byte{}
	for key, value := range s {
		values[key] = []byte(value)
	}
	return values
}

func TestGit(t *testing.T) {
	certificate, key := newCertificate(t)
	appKey := newRSAKey(t)
	for name, c := range map[string]struct {
		secret secret
		want   source.Auth
	}{
		"a password":         {secret{"username": "ada", "password": "s3cret\n"}, source.Auth{Username: "ada", Password: "s3cret"}},
		"a token":            {secret{"bearerToken": "t0ken\n"}, source.Auth{BearerToken: "t0ken"}},
		"only an authority":  {secret{"ca.crt": certificate}, source.Auth{CA: []byte(certificate)}},
		"its old name":       {secret{"caFile": certificate}, source.Auth{CA: []byte(certificate)}},
		"the new name first": {secret{"caFile": "x", "ca.crt": certificate}, source.Auth{CA: []byte(certificate)}},
		"a client":           {secret{"tls.crt": certificate, "tls.key": key}, source.Auth{Certificate: []byte(certificate), Key: []byte(key)}},
		"its old names":      {secret{"certFile": certificate, "keyFile": key}, source.Auth{Certificate: []byte(certificate), Key: []byte(key)}},
		"ssh":                {secret{"identity": "K", "identity.pub": "P", "known_hosts": "H"}, source.Auth{Identity: []byte("K"), IdentityPassword: []byte{}, KnownHosts: []byte("H")}},
		"ssh, encrypted":     {secret{"identity": "K", "known_hosts": "H", "password": "s3cret"}, source.Auth{Identity: []byte("K"), IdentityPassword: []byte("s3cret"), KnownHosts: []byte("H")}},
		"an App": {secret{"githubAppID": "12", "githubAppInstallationID": "34", "githubAppPrivateKey": appKey}, source.Auth{
			App: &source.GitHubApp{ID: "12", InstallationID: "34", PrivateKey: []byte(appKey)}}},
		"an App of an owner": {secret{"githubAppID": "12", "githubAppInstallationOwner": "acme", "githubAppPrivateKey": appKey, "githubAppBaseURL": "https://git.example.com/api/v3"}, source.Auth{
			App: &source.GitHubApp{ID: "12", Owner: "acme", PrivateKey: []byte(appKey), BaseURL: "https://git.example.com/api/v3"}}},
	} {
		got, err := credentials.Git(c.secret.values(), "Secret acme/git")
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// What is wrong with a Secret is said by its keys, never by their values.
func TestGitRefuses(t *testing.T) {
	certificate, key := newCertificate(t)
	_, otherKey := newCertificate(t)
	appKey := newRSAKey(t)
	for name, c := range map[string]struct {
		secret secret
		want   string
	}{
		"nothing":                 {secret{}, "it has no key for git"},
		"something else":          {secret{"token": "hunter2"}, "it has no key for git"},
		"no password":             {secret{"username": "hunter2"}, "it has username and no password"},
		"no username":             {secret{"password": "hunter2"}, "it has password and neither username nor identity"},
		"an empty token":          {secret{"bearerToken": "\n"}, "bearerToken is empty"},
		"a header in it":          {secret{"bearerToken": "hunter2\r\nHost: x"}, "must be one line each"},
		"an authority that is no": {secret{"ca.crt": "hunter2"}, "ca.crt has no PEM certificate"},
		"half a client":           {secret{"tls.crt": certificate}, "it has tls.crt and no tls.key"},
		"the other half":          {secret{"tls.key": key}, "it has tls.key and no tls.crt"},
		"a key of another":        {secret{"tls.crt": certificate, "tls.key": otherKey}, "are not a certificate and its key"},
		"no known_hosts":          {secret{"identity": "hunter2"}, "it has identity and no known_hosts"},
		"an App without a key":    {secret{"githubAppID": "12", "githubAppInstallationID": "34"}, "the private key is not PEM"},
		"an App's broken key":     {secret{"githubAppID": "12", "githubAppInstallationID": "34", "githubAppPrivateKey": "hunter2"}, "the private key is not PEM"},
		"an App's other key":      {secret{"githubAppID": "12", "githubAppInstallationID": "34", "githubAppPrivateKey": key}, "not an RSA key"},
		"an App of nobody":        {secret{"githubAppID": "12", "githubAppPrivateKey": appKey}, "exactly one of"},
		"an App without an ID":    {secret{"githubAppInstallationID": "34", "githubAppPrivateKey": appKey}, "the App has no ID"},
		"an App by http":          {secret{"githubAppID": "12", "githubAppInstallationID": "34", "githubAppPrivateKey": appKey, "githubAppBaseURL": "http://hunter2.example.com"}, "must be https://"},
		"an App and a password":   {secret{"githubAppID": "12", "username": "ada", "password": "hunter2"}, "beside other credentials"},
	} {
		_, err := credentials.Git(c.secret.values(), "Secret acme/git")
		if err == nil || !strings.HasPrefix(err.Error(), "Secret acme/git: ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestProxy(t *testing.T) {
	for name, c := range map[string]struct {
		secret secret
		want   source.Proxy
		wrong  string
	}{
		"an address":        {secret: secret{"address": "http://proxy:3128\n"}, want: source.Proxy{Address: "http://proxy:3128"}},
		"with a password":   {secret: secret{"address": "https://proxy", "username": "ada", "password": "s3cret"}, want: source.Proxy{Address: "https://proxy", Username: "ada", Password: "s3cret"}},
		"no address":        {secret: secret{"username": "ada"}, wrong: "it has no address"},
		"another scheme":    {secret: secret{"address": "socks5://hunter2"}, wrong: "must be http://host:port"},
		"no URL":            {secret: secret{"address": "http://ada:hunter2@proxy:x"}, wrong: "cannot be parsed"},
		"password, no name": {secret: secret{"address": "http://proxy", "password": "hunter2"}, wrong: "it has password and no username"},
	} {
		got, err := credentials.Proxy(c.secret.values(), "Secret acme/proxy")
		switch {
		case c.wrong == "" && (err != nil || *got != c.want):
			t.Errorf("%s: got %+v, %v", name, got, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: got %v, want %s", name, err, c.wrong)
		}
	}
}

// A mounted Secret has its files behind links, beside directories with dots.
func TestReadDir(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "..2026_01_01"), 0o755),
		os.MkdirAll(filepath.Join(dir, "lost+found"), 0o755),
		os.WriteFile(filepath.Join(dir, "..2026_01_01", "username"), []byte("ada"), 0o600),
		os.Symlink("..2026_01_01", filepath.Join(dir, "..data")),
		os.Symlink(filepath.Join("..data", "username"), filepath.Join(dir, "username")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}

	got, err := credentials.ReadDir(os.DirFS(dir))
	if want := (map[string][]byte{"username": []byte("ada")}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}

	if err := os.WriteFile(filepath.Join(dir, "large"), make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := credentials.ReadDir(os.DirFS(dir)); err == nil || err.Error() != "large: it is larger than 1048576 bytes" {
		t.Errorf("got %v", err)
	}
	if _, err := credentials.ReadDir(os.DirFS(filepath.Join(dir, "none"))); err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
}

func newCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return toPEM("CERTIFICATE", raw), toPEM("PRIVATE KEY", rawKey)
}

func newRSAKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return toPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
}

func toPEM(kind string, raw []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
}

func TestSigners(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA7xUvRDOBxUhBGaLhkvZTNXgpFXgwSEh5q2kcbMxZ0v ada"
	got, err := credentials.Signers(secret{"ada.sshpub": key, "note": "hunter2"}.values(), "Secret acme/signers")
	if err != nil || got.Len() != 1 {
		t.Errorf("%d signers, %v", got.Len(), err)
	}
	for name, c := range map[string]struct {
		secret secret
		want   string
	}{
		"no key":     {secret{"ada.pub": key}, "Secret acme/signers: it has no key of a signer"},
		"no such":    {secret{"ada.sshpub": "hunter2"}, "Secret acme/signers: ada.sshpub: line 1 is not an SSH public key"},
		"one of two": {secret{"ada.sshpub": key, "bob.asc": "hunter2"}, "Secret acme/signers: bob.asc: it has no armored OpenPGP key"},
	} {
		if _, err := credentials.Signers(c.secret.values(), "Secret acme/signers"); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
