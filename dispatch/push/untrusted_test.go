// SPDX-License-Identifier: Apache-2.0

package push_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/object"
)

// kubeconfig is one with a context eu-1, from lines of its cluster and of its user.
func kubeconfig(cluster, user string) []byte {
	return []byte(`apiVersion: v1
kind: Config
current-context: eu-1
contexts: [{name: eu-1, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {` + cluster + `}}]
users: [{name: u, user: {` + user + `}}]
`)
}

const (
	outside = "server: 'https://192.0.2.1:6443'"
	secrets = "token: hunter2"
)

// T45: what runs a program, reads a file or trusts a stranger is refused, with the flag
// that would allow it, and without a word of the content.
func TestT45KubeconfigRefused(t *testing.T) {
	certificate, key := memberCertificate(t)
	for name, c := range map[string]struct{ cluster, user, want string }{
		"a program":           {outside, secrets + ", exec: {apiVersion: client.authentication.k8s.io/v1, command: hunter2, interactiveMode: Never}", "--insecure-kubeconfig-exec"},
		"an auth provider":    {outside, "auth-provider: {name: hunter2}", "--insecure-kubeconfig-exec"},
		"a file of a token":   {outside, "tokenFile: /etc/hunter2", "tokenFile is a file"},
		"a file beside it":    {outside, secrets + ", tokenFile: /etc/hunter2", "tokenFile is a file"},
		"a certificate file":  {outside, "client-certificate: /etc/hunter2", "client-certificate is a file, which is never read; put its content into client-certificate-data"},
		"a key file":          {outside, "client-key: /etc/hunter2", "client-key is a file"},
		"an authority's file": {outside + ", certificate-authority: /etc/hunter2", secrets, "certificate-authority is a file"},
		"no verification":     {outside + ", insecure-skip-tls-verify: true", secrets, "--insecure-kubeconfig-tls"},
		"http":                {"server: 'http://hunter2.example.com'", secrets, "--insecure-kubeconfig-tls"},
		"a proxy":             {outside + ", proxy-url: 'http://ada:hunter2@192.0.2.1'", secrets, "--insecure-kubeconfig-proxy"},
		"another user":        {outside, secrets + ", as: hunter2", "spec.members.serviceAccountName"},
		"another group":       {outside, secrets + ", as-groups: ['system:masters']", "spec.members.serviceAccountName"},
		"another UID":         {outside, secrets + ", as-uid: hunter2", "spec.members.serviceAccountName"},
		"other extras":        {outside, secrets + ", as-user-extra: {a: [hunter2]}", "spec.members.serviceAccountName"},
		"no server":           {"", secrets, "server is not a URL"},
		"another scheme":      {"server: 'file:///etc/hunter2'", secrets, "server is not a URL"},
		"no scheme":           {"server: 'hunter2:6443'", secrets, "server is not a URL"},
		"a password in it":    {"server: 'https://ada:hunter2@192.0.2.1'", secrets, "server must not have a user"},
		"a broken authority":  {outside + ", certificate-authority-data: aHVudGVyMg==", secrets, "certificate-authority-data has no PEM certificate"},
		"a key of another":    {outside, "client-certificate-data: " + certificate + ", client-key-data: aHVudGVyMg==", "are not a certificate and its key"},
		"only a key":          {outside, "client-key-data: " + key, "are not a certificate and its key"},
		"two ways":            {outside, secrets + ", username: ada, password: hunter2", "only one of token and username"},
	} {
		config := kubeconfig(c.cluster, c.user)
		_, err := push.ParseCluster(config, "Secret acme/eu-1", push.Allow{})
		if err == nil || !strings.HasPrefix(err.Error(), "Secret acme/eu-1: ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}

		contexts, err := push.ParseContexts(config, "Secret acme/members", push.Allow{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err = contexts.For("eu-1")
		if err == nil || !strings.HasPrefix(err.Error(), `Secret acme/members, context "eu-1": `) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s, of a context: %v", name, err)
		}
	}
}

func TestKubeconfigThatIsNone(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"nothing":            {"", "it has no contexts"},
		"no YAML":            {"a: [hunter2", "not a kubeconfig"},
		"another type":       {"apiVersion: v1\nkind: Config\nusers: hunter2\n", "not a kubeconfig"},
		"another kind":       {"apiVersion: v1\nkind: Secret\nmetadata: {name: hunter2}\n", "not a kubeconfig"},
		"no base64":          {string(kubeconfig(outside, "client-key-data: hunter2!")), "not a kubeconfig"},
		"no current context": {strings.Replace(string(kubeconfig(outside, "")), "current-context: eu-1", "current-context: hunter2", 1), "its current-context is not one of its 1 contexts"},
		"no cluster":         {strings.Replace(string(kubeconfig(outside, "")), "name: c,", "name: hunter2,", 1), "the context's cluster is not among the clusters"},
		"no user":            {strings.Replace(string(kubeconfig(outside, "")), "name: u,", "name: hunter2,", 1), "the context's user is not among the users"},
		"too large":          {strings.Repeat("#", 1<<20+1), "larger than"},
	} {
		_, err := push.ParseCluster([]byte(c.config), "Secret acme/eu-1", push.Allow{})
		if err == nil || !strings.HasPrefix(err.Error(), "Secret acme/eu-1: ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// One context that is refused leaves the others as they are, and what is missing is missing
// as in a file.
func TestParseContexts(t *testing.T) {
	contexts, err := push.ParseContexts([]byte(`
contexts: [{name: eu-1, context: {cluster: c, user: u}}, {name: us-1, context: {cluster: c, user: v, namespace: shop}}]
clusters: [{name: c, cluster: {server: 'https://192.0.2.1'}}]
users: [{name: u, user: {token: t0ken}}, {name: v, user: {tokenFile: /etc/token}}]
`), "Secret acme/members", push.Allow{})
	if err != nil {
		t.Fatal(err)
	}

	cfg, err := contexts.For("eu-1")
	if err != nil || cfg.Host != "https://192.0.2.1" || cfg.BearerToken != "t0ken" || cfg.QPS != -1 {
		t.Errorf("eu-1: %v", err)
	}
	if _, err := contexts.For("us-1"); err == nil {
		t.Error("us-1 reads a file")
	}
	if _, err := contexts.For("ap-1"); err == nil || err.Error() != `kubeconfig Secret acme/members has no context "ap-1"` {
		t.Errorf("ap-1: %v", err)
	}
	if contexts.Namespace("us-1") != "shop" || strings.Join(contexts.Names(), " ") != "eu-1 us-1" {
		t.Errorf("it has %v", contexts.Names())
	}
}

// T46: an address that leads inside is refused by what is written.
func TestT46AddressRefused(t *testing.T) {
	allow := push.Allow{Own: []string{"https://198.51.100.7:6443", "api.example.com", "203.0.113.9"}}
	for host, want := range map[string]string{
		"localhost": "the controller itself", "LOCALHOST.": "the controller itself", "a.localhost": "the controller itself",
		"127.0.0.1": "inside", "127.8.9.10:6443": "inside", "[::1]:6443": "inside", "[::ffff:127.0.0.1]": "inside", "0.0.0.0": "inside", "[::]": "inside",
		"169.254.169.254": "inside", "[fe80::1]": "inside", "[fe80::1%25eth0]": "inside", "[fd00:ec2::254]": "inside", "[64:ff9b::169.254.169.254]": "inside",
		"[::127.0.0.1]": "inside", "168.63.129.16": "inside", "224.0.0.1": "inside",
		"kubernetes.default.svc": "own API server", "kubernetes.default.svc.cluster.local:443": "own API server", "Kubernetes": "own API server",
		"198.51.100.7:6443": "own API server", "[::ffff:198.51.100.7]:6443": "own API server", "API.example.com.:8443": "own API server", "203.0.113.9:1": "own API server",
		"198.51.100.7": "", "198.51.100.8:6443": "", "10.0.0.1": "", "[2001:db8::1]:6443": "", "eu-1.example.com:6443": "", "kubernetes.example.com": "",
	} {
		_, err := push.ParseCluster(kubeconfig("server: 'https://"+host+"'", secrets), "Secret acme/eu-1", allow)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", host, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--allow-internal-members")):
			t.Errorf("%s: got %v, want %s", host, err, want)
		}

		allow := push.Allow{Internal: true, Own: allow.Own}
		if _, err := push.ParseCluster(kubeconfig("server: 'https://"+host+"'", secrets), "Secret acme/eu-1", allow); err != nil {
			t.Errorf("%s is allowed: %v", host, err)
		}
	}
}

// T46: a name may mean something else when it is dialled than when it was read.
func TestT46AddressRefusedWhenDialled(t *testing.T) {
	serveNames(t, map[string]string{
		"rebound.example.com.": "127.0.0.1", "metadata.example.com.": "169.254.169.254",
		"alias.example.com.": "198.51.100.7", "hub.example.com.": "198.51.100.7", "other.example.com.": "192.0.2.1",
	})
	allow := push.Allow{TLS: true, Own: []string{"hub.example.com:6443"}}
	for address, want := range map[string]string{
		"https://rebound.example.com:6443":  "address 127.0.0.1 leads inside",
		"http://rebound.example.com":        "address 127.0.0.1 leads inside",
		"https://metadata.example.com":      "address 169.254.169.254 leads inside",
		"https://alias.example.com:6443":    "address 198.51.100.7 is the controller's own API server",
		"https://no-such-name.example.com.": "no such host",
	} {
		cfg, err := push.ParseCluster(kubeconfig("server: '"+address+"'", secrets), "Secret acme/eu-1", allow)
		if err != nil {
			t.Fatal(err)
		}
		if err := get(t, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", address, err, want)
		}
	}
}

// get makes a request to a member.
func get(t *testing.T, cfg *push.Config) error {
	t.Helper()
	m, err := push.New(cfg, push.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Get(context.Background(), member.RefTo(object.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}, "v1"))
	return err
}

// serveNames has names resolved by a server of the test.
func serveNames(t *testing.T, names map[string]string) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		b := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			if answer := answerTo(b[:n], names); answer != nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	})

	was := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = was
		server.Close()
		all.Wait()
	})
}

func answerTo(question []byte, names map[string]string) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	ip, known := names[strings.ToLower(q.Name.String())]
	switch {
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr(ip).As4()},
		}}
	}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
}

// apiServer answers every request, and notes what it was asked as.
type apiServer struct {
	*httptest.Server
	ca string // base64 of PEM

	mu      sync.Mutex
	headers http.Header
}

func serveAPI(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.headers = r.Header.Clone()
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1" {
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get"]}]}`)
			return
		}
		fmt.Fprint(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"default","uid":"u"}}`)
	}))
	t.Cleanup(s.Close)
	s.ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return s
}

func (s *apiServer) header(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.headers.Values(name), ", ")
}

// What is allowed works, and is verified.
func TestMembersOfASecret(t *testing.T) {
	s := serveAPI(t)
	inside := push.Allow{Internal: true}
	trusted := "server: '" + s.URL + "', certificate-authority-data: " + s.ca

	cfg, err := push.ParseCluster(kubeconfig(trusted, "token: \"t0ken\\n\""), "Secret acme/eu-1", inside)
	if err != nil {
		t.Fatal(err)
	}
	if err := push.Impersonate(cfg, "acme", "fleet"); err != nil {
		t.Fatal(err)
	}
	if err := get(t, cfg); err != nil || s.header("Authorization") != "Bearer t0ken" || s.header("Impersonate-User") != "system:serviceaccount:acme:fleet" {
		t.Errorf("as %s for %s: %v", s.header("Authorization"), s.header("Impersonate-User"), err)
	}

	cfg, err = push.ParseCluster(kubeconfig(trusted, "username: ada, password: s3cret"), "Secret acme/eu-1", inside)
	if err != nil {
		t.Fatal(err)
	}
	if err := get(t, cfg); err != nil || !strings.HasPrefix(s.header("Authorization"), "Basic ") || s.header("Impersonate-User") != "" {
		t.Errorf("with a password: %v", err)
	}

	ca, err := base64.StdEncoding.DecodeString(s.ca)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err = push.ParseToken(push.Token{Address: s.URL, Token: "t0ken2", CA: ca}, "Secret acme/eu-1", inside)
	if err != nil {
		t.Fatal(err)
	}
	if err := get(t, cfg); err != nil || s.header("Authorization") != "Bearer t0ken2" {
		t.Errorf("Karmada's: %v", err)
	}

	cfg, err = push.ParseCluster(kubeconfig("server: '"+s.URL+"'", secrets), "Secret acme/eu-1", inside)
	if err != nil {
		t.Fatal(err)
	}
	if err := get(t, cfg); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an authority that nobody trusts: %v", err)
	}
}

// T45: what a flag allows works, too; without TLS no credentials are sent.
func TestT45Allowed(t *testing.T) {
	s := serveAPI(t)
	plain := httptest.NewServer(s.Config.Handler)
	t.Cleanup(plain.Close)

	for name, c := range map[string]struct {
		allow         push.Allow
		cluster, user string
		authorization string
	}{
		"no verification": {push.Allow{Internal: true, TLS: true}, "server: '" + s.URL + "', insecure-skip-tls-verify: true", "token: t0ken", "Bearer t0ken"},
		"http":            {push.Allow{Internal: true, TLS: true}, "server: '" + plain.URL + "'", "token: t0ken", ""},
		"a program": {push.Allow{Internal: true, Exec: true}, "server: '" + s.URL + "', certificate-authority-data: " + s.ca,
			"exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable, command: echo, args: ['{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"from-exec\"}}']}", "Bearer from-exec"},
	} {
		cfg, err := push.ParseCluster(kubeconfig(c.cluster, c.user), "Secret acme/eu-1", c.allow)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := get(t, cfg); err != nil || s.header("Authorization") != c.authorization {
			t.Errorf("%s: asked as %q, %v", name, s.header("Authorization"), err)
		}
	}
}

// T45: with the flag, a member is reached through its proxy, which must not be inside either.
func TestT45Proxy(t *testing.T) {
	s := serveAPI(t)
	var asked sync.Map
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method+" "+r.Host, true)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	through := kubeconfig("server: '"+s.URL+"', certificate-authority-data: "+s.ca+", proxy-url: '"+proxy.URL+"'", secrets)

	cfg, err := push.ParseCluster(through, "Secret acme/eu-1", push.Allow{Internal: true, Proxy: true})
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	err = get(t, cfg)
	if _, ok := asked.Load("CONNECT " + at.Host); !ok || err == nil {
		t.Errorf("the proxy was not asked: %v", err)
	}

	through = kubeconfig(outside+", proxy-url: '"+proxy.URL+"'", secrets)
	if _, err := push.ParseCluster(through, "Secret acme/eu-1", push.Allow{Proxy: true}); err == nil || !strings.Contains(err.Error(), "proxy-url: address 127.0.0.1 leads inside") {
		t.Errorf("a proxy inside: %v", err)
	}
	through = kubeconfig(outside+", proxy-url: 'ftp://ada:hunter2@192.0.2.1'", secrets)
	if _, err := push.ParseCluster(through, "Secret acme/eu-1", push.Allow{Proxy: true}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("no proxy: %v", err)
	}
}

// T45: Karmada's layout is held to the same.
func TestT45KarmadaRefused(t *testing.T) {
	for name, c := range map[string]struct {
		token push.Token
		allow push.Allow
		want  string
	}{
		"no verification": {push.Token{Address: "https://192.0.2.1", InsecureSkipTLS: true}, push.Allow{}, "--insecure-kubeconfig-tls"},
		"a proxy":         {push.Token{Address: "https://192.0.2.1", Proxy: "http://192.0.2.2"}, push.Allow{}, "--insecure-kubeconfig-proxy"},
		"inside":          {push.Token{Address: "https://127.0.0.1"}, push.Allow{}, "--allow-internal-members"},
		"no address":      {push.Token{Token: "hunter2"}, push.Allow{}, "server is not a URL"},
		"allowed":         {push.Token{Address: "https://192.0.2.1", InsecureSkipTLS: true, CA: []byte("x")}, push.Allow{TLS: true}, ""},
	} {
		_, err := push.ParseToken(c.token, "Secret acme/eu-1", c.allow)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestImpersonate(t *testing.T) {
	for _, c := range []struct{ namespace, name string }{{"", "fleet"}, {"acme", ""}, {"acme:system", "fleet"}, {"acme", "a:b"}, {"acme", "../x"}, {"acme", "Fleet"}} {
		cfg := &push.Config{}
		if err := push.Impersonate(cfg, c.namespace, c.name); err == nil || cfg.Impersonate.UserName != "" {
			t.Errorf("%v became %s", c, cfg.Impersonate.UserName)
		}
	}
}

// T45, T46: whatever a kubeconfig says, what comes out runs nothing, reads no file, verifies
// the server and leads outside.
func FuzzKubeconfig(f *testing.F) {
	f.Add(kubeconfig(outside, secrets))
	f.Add(kubeconfig("server: 'https://[::ffff:127.0.0.1]', tls-server-name: x", "exec: {command: x}"))
	f.Add(kubeconfig("server: 'https://eu-1.example.com', certificate-authority: /x", "tokenFile: /x, as: root"))
	f.Add([]byte(`{"contexts":[{"name":"","context":{}}],"clusters":[{"name":"","cluster":{"server":"https://192.0.2.1"}}]}`))
	f.Add([]byte("contexts: [{name: a, context: {}}, {name: a}]\nclusters: null\nusers: [{name: b, user: null}]\n"))
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		if cfg, err := push.ParseCluster(kubeconfig, "name", push.Allow{}); err == nil {
			harmless(t, cfg)
		}
		contexts, err := push.ParseContexts(kubeconfig, "name", push.Allow{})
		if err != nil {
			return
		}
		for _, name := range contexts.Names() {
			if cfg, err := contexts.For(name); err == nil {
				harmless(t, cfg)
			}
		}
	})
}

func harmless(t *testing.T, cfg *push.Config) {
	t.Helper()
	u, err := url.Parse(cfg.Host)
	if err != nil || u.Scheme != "https" || u.User != nil {
		t.Errorf("address %q", cfg.Host)
		return
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && (ip.Unmap().IsLoopback() || ip.Unmap().IsLinkLocalUnicast() || ip.IsUnspecified()) {
		t.Errorf("address %q", cfg.Host)
	}
	if cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.AuthConfigPersister != nil || cfg.WrapTransport != nil || cfg.Transport != nil {
		t.Errorf("it runs something: %v", cfg)
	}
	if cfg.BearerTokenFile+cfg.CAFile+cfg.CertFile+cfg.KeyFile != "" {
		t.Errorf("it reads a file: %v", cfg)
	}
	if cfg.Insecure || cfg.Proxy != nil || cfg.Dial == nil || cfg.Impersonate.UserName != "" || cfg.QPS != -1 {
		t.Errorf("it trusts: %v", cfg)
	}
}

func memberCertificate(t *testing.T) (certificate, key string) {
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
	encoded := func(kind string, raw []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
	}
	return encoded("CERTIFICATE", raw), encoded("PRIVATE KEY", rawKey)
}
