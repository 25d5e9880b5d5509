// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// A rotated password is used from the next fetch on, beside whatever else goes on.
func TestSetAuth(t *testing.T) {
	ctx := context.Background()
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"a": "1"})
	bare := g.Bare()
	s := serve(t, bare)
	dir := filepath.Join(t.TempDir(), "mirror")
	r, err := source.Clone(ctx, dir, s.address(), s.basic())
	if err != nil {
		t.Fatal(err)
	}

	r.SetAuth(source.Auth{Username: "ada", Password: "old", CA: s.ca})
	if err := r.Fetch(ctx); !errors.Is(err, source.ErrAuthentication) {
		t.Errorf("the old password: %v", err)
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 5 {
			_ = r.Fetch(ctx)
		}
	}()
	for range 50 {
		r.SetAuth(s.basic())
	}
	<-done

	two := g.Commit("two", map[string]string{"a": "2"})
	g.Git("push", "-q", bare, "main")
	if err := r.Fetch(ctx); err != nil {
		t.Errorf("the new one: %v", err)
	}
	if got, err := r.Resolve("main"); err != nil || got != two {
		t.Errorf("main is %s, %v", got, err)
	}
	if r.Remote() != s.address() {
		t.Errorf("its address is %s", r.Remote())
	}

	opened, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	opened.SetAuth(s.basic())
	if err := opened.Fetch(ctx); err != nil {
		t.Errorf("a repository on this machine: %v", err)
	}
}

// A caller can tell what kind of failure it is.
func TestKindsOfFailure(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", nil)
	s, overSSH := serve(t, g.Bare()), serveSSH(t)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	stranger, identity := newKey(t)
	other := []byte(strings.Replace(string(overSSH.knownHosts), strings.Fields(string(overSSH.knownHosts))[2],
		base64.StdEncoding.EncodeToString(stranger.PublicKey().Marshal()), 1))

	ssh := "ssh://" + overSSH.address + g.Dir
	kinds := []error{source.ErrAuthentication, source.ErrCertificate, source.ErrUnreachable}
	for name, c := range map[string]struct {
		url  string
		auth source.Auth
		want error
	}{
		"wrong password":     {s.address(), source.Auth{Username: "ada", Password: "x", CA: s.ca}, source.ErrAuthentication},
		"unknown authority":  {s.address(), source.Auth{Username: "ada", Password: "x"}, source.ErrCertificate},
		"nobody listens":     {"https://" + gone.Addr().String() + "/repo.git", source.Auth{}, source.ErrUnreachable},
		"no such host":       {"https://fairlead.invalid/repo.git", source.Auth{}, source.ErrUnreachable},
		"no ssh identity":    {ssh, source.Auth{KnownHosts: overSSH.knownHosts}, source.ErrAuthentication},
		"another identity":   {ssh, source.Auth{Identity: identity, KnownHosts: overSSH.knownHosts}, source.ErrAuthentication},
		"another host key":   {ssh, source.Auth{Identity: overSSH.identity, KnownHosts: other}, source.ErrCertificate},
		"nobody listens ssh": {"ssh://" + gone.Addr().String() + "/x", source.Auth{Identity: identity, KnownHosts: []byte(strings.Replace(string(overSSH.knownHosts), port(t, overSSH.address), port(t, gone.Addr().String()), 1))}, source.ErrUnreachable},
	} {
		_, err := source.Clone(context.Background(), filepath.Join(t.TempDir(), "m"), c.url, c.auth)
		for _, kind := range kinds {
			if errors.Is(err, kind) != errors.Is(c.want, kind) {
				t.Errorf("%s: %v is %v: %v", name, err, kind, errors.Is(err, kind))
			}
		}
	}
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// A server that asks for a client certificate gets ours, and one that rejects it is an
// authentication failure.
func TestClientCertificate(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", nil)
	backend := serve(t, g.Bare())
	mine, mineKey := newCertificate(t)
	strange, strangeKey := newCertificate(t)

	s := httptest.NewUnstartedServer(backend.Config.Handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
	s.TLS.ClientCAs.AppendCertsFromPEM(mine)
	s.StartTLS()
	t.Cleanup(s.Close)

	auth := source.Auth{Username: "ada", Password: "s3cret", CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}
	clone := func(certificate, key []byte) error {
		auth.Certificate, auth.Key = certificate, key
		_, err := source.Clone(context.Background(), filepath.Join(t.TempDir(), "m"), s.URL+"/"+filepath.Base(backend.dir), auth)
		return err
	}
	if err := clone(mine, mineKey); err != nil {
		t.Errorf("with the certificate: %v", err)
	}
	for name, err := range map[string]error{"none": clone(nil, nil), "a stranger's": clone(strange, strangeKey), "another key": clone(mine, strangeKey)} {
		if !errors.Is(err, source.ErrAuthentication) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func newCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: rawKey})
}

// proxy is an HTTP proxy that answers CONNECT, for ada only.
type proxy struct {
	*httptest.Server
	connected atomic.Int32
}

func serveProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("ada:s3cret")) {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		to, err := net.Dial("tcp", r.Host)
		if r.Method != http.MethodConnect || err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}

		p.connected.Add(1)
		from, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buffered.WriteString("HTTP/1.1 200 OK\r\n\r\n")
		if r.UserAgent() == "fairlead" { // an ssh server speaks first: its words come in one packet with ours
			_, _ = io.CopyN(buffered, to, 4)
		}
		_ = buffered.Flush()
		go func() { defer to.Close(); _, _ = io.Copy(to, from) }()
		defer from.Close()
		_, _ = io.Copy(from, to)
	}))
	t.Cleanup(p.Close)
	return p
}

// With a proxy, nothing goes to the server directly, over https and over ssh.
func TestProxy(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", nil)
	s, overSSH, p := serve(t, g.Bare()), serveSSH(t), serveProxy(t)
	for name, c := range map[string]struct {
		url  string
		auth source.Auth
	}{
		"https": {s.address(), s.basic()},
		"ssh":   {"ssh://git@" + overSSH.address + g.Dir, source.Auth{Identity: overSSH.identity, KnownHosts: overSSH.knownHosts}},
	} {
		t.Run(name, func(t *testing.T) {
			clone := func(proxy source.Proxy) error {
				auth := c.auth
				auth.Proxy = &proxy
				_, err := source.Clone(context.Background(), filepath.Join(t.TempDir(), "m"), c.url, auth)
				return err
			}

			before := p.connected.Load()
			if err := clone(source.Proxy{Address: p.URL, Username: "ada", Password: "s3cret"}); err != nil || p.connected.Load() == before {
				t.Errorf("through the proxy: %v", err)
			}
			err := clone(source.Proxy{Address: p.URL, Username: "ada", Password: "hunter2"})
			if !errors.Is(err, source.ErrAuthentication) || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "proxy") {
				t.Errorf("with a wrong password: %v", err)
			}
			err = clone(source.Proxy{Address: "http://ada:hunter2@127.0.0.1:1"})
			if !errors.Is(err, source.ErrUnreachable) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("without a proxy there: %v", err)
			}
			if err = clone(source.Proxy{Address: "hunter2"}); err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("without an address: %v", err)
			}
		})
	}
}

// Credentials that are printed by mistake say nothing.
func TestCredentialsAreNotPrinted(t *testing.T) {
	auth := source.Auth{
		Username: "hunter2", Password: "hunter2", BearerToken: "hunter2", Identity: []byte("hunter2"),
		App: &source.GitHubApp{PrivateKey: []byte("hunter2")}, Proxy: &source.Proxy{Address: "http://hunter2", Password: "hunter2"},
	}
	for _, value := range []any{auth, &auth, auth.App, *auth.App, auth.Proxy, *auth.Proxy, struct{ Auth source.Auth }{auth}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if said := fmt.Sprintf(verb, value); strings.Contains(said, "hunter2") || strings.Contains(said, "104 117 110") || strings.Contains(said, "0x68, 0x75") {
				t.Errorf("%s: %s", verb, said)
			}
		}
	}
}
