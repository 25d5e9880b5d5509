// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// server is a bare repository behind git http-backend, over TLS.
type server struct {
	*httptest.Server
	dir     string
	ca      []byte
	packs   atomic.Int32 // number of packs requested
	asked   atomic.Int32 // number of times refs were listed
	pushes  atomic.Int32 // number of packs sent
	race    func()       // called once before a pack is accepted
	lose    atomic.Bool  // the answer to the next pack
	deny    atomic.Bool
	corrupt atomic.Bool
}

func serve(t *testing.T, dir string) *server {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}

	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Fatalf("this test needs git-http-backend, which comes with git: %v", err)
	}

	s := &server{dir: dir}
	git := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, basic := r.BasicAuth()
		switch {
		case s.deny.Load():
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		case basic && user == "ada" && password == "s3cret":
		case r.Header.Get("Authorization") == "Bearer t0ken":
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}

		switch {
		case strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
			s.packs.Add(1)
			if s.corrupt.Load() {
				w = &truncated{w, 600}
			}
		case strings.HasSuffix(r.URL.Path, "/git-receive-pack"):
			s.pushes.Add(1)
			if race := s.race; race != nil {
				s.race = nil
				race()
			}
			if s.lose.Swap(false) {
				git.ServeHTTP(httptest.NewRecorder(), r)
				http.Error(w, "lost", http.StatusBadGateway)
				return
			}
		default:
			s.asked.Add(1)
		}

		git.ServeHTTP(w, r)
	}))

	t.Cleanup(s.Close)
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return s
}

// truncated drops the end of a server's response.
type truncated struct {
	http.ResponseWriter
	left int
}

func (w *truncated) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	_, err := w.ResponseWriter.Write(p[:n])
	return len(p), err
}

func (s *server) address() string { return s.URL + "/" + filepath.Base(s.dir) }

func (s *server) basic() source.Auth {
	return source.Auth{Username: "ada", Password: "s3cret", CA: s.ca}
}

func TestMirrorFollowsItsServer(t *testing.T) {
	ctx := context.Background()
	g := sourcetest.New(t)
	one := g.Commit("one", map[string]string{"a": "1"})
	g.Git("tag", "v1")
	g.Git("branch", "side")
	g.Git("branch", "-m", "main", "trunk")
	bare := g.Bare()
	s := serve(t, bare)
	dir := filepath.Join(t.TempDir(), "cache", "mirror")

	r, err := source.Clone(ctx, dir, s.address(), source.Auth{BearerToken: "t0ken", CA: s.ca})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := r.DefaultBranch(); err != nil || b != "trunk" {
		t.Errorf("default branch is %q, %v", b, err)
	}

	want := func(rev, hash string) {
		t.Helper()
		got, err := r.Resolve(rev)
		if hash == "" && errors.Is(err, source.ErrUnknownRevision) {
			return
		}
		if err != nil || got != hash {
			t.Errorf("%s is %q, %v; want %q", rev, got, err, hash)
		}
	}

	want("HEAD", one)
	want("v1", one)
	want("side", one)

	before := s.packs.Load()

	if err := r.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	if s.packs.Load() != before {
		t.Error("a poll with nothing new asked for a pack")
	}

	two := g.Commit("two", map[string]string{"a": "2"})
	g.Git("tag", "-f", "v1")
	g.Git("push", "-q", "-f", bare, "trunk", "v1", ":side")

	if err := r.Fetch(ctx); err != nil {
		t.Fatal(err)
	}

	want("trunk", two)
	want("v1", two)
	want("side", "")

	g.Git("reset", "-q", "--hard", one)
	rewritten := g.Commit("rewritten", map[string]string{"a": "3"})
	g.Git("push", "-q", "-f", bare, "trunk")

	if err := r.Fetch(ctx); err != nil {
		t.Fatal(err)
	}

	want("trunk", rewritten)
	g.GitIn(dir, "", "fsck", "--strict")

	// A second start uses the mirror, even while the server is away.
	s.deny.Store(true)
	r, err = source.Clone(ctx, dir, s.address(), s.basic())
	if err == nil || r == nil {
		t.Fatalf("server away: %v, %v", r, err)
	}

	want("trunk", rewritten)
	s.deny.Store(false)

	// A damaged mirror is cloned again.
	for _, damage := range []func(){
		func() { os.RemoveAll(filepath.Join(dir, "objects")) },
		func() { os.Remove(filepath.Join(dir, "HEAD")) },
		func() { os.Truncate(filepath.Join(dir, "HEAD"), 0) }, // as after a power cut
		func() { os.Truncate(filepath.Join(dir, "packed-refs"), 0) },
		func() {
			packs, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*"))
			for _, p := range packs {
				os.Remove(p)
			}
		},
	} {
		damage()
		if r, err = source.Clone(ctx, dir, s.address(), s.basic()); err != nil {
			t.Fatal(err)
		}
		want("trunk", rewritten)
	}

	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 1 {
		t.Errorf("left beside the mirror: %v", left)
	}
}

// A mirror keeps branches and tags; the ref of a pull request comes when it is named.
func TestMirrorFetchesTheRefOfAPullRequest(t *testing.T) {
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

	const ref = "refs/pull/7/merge"
	for _, content := range []string{"2", "3"} {
		merge := g.Commit("merge", map[string]string{"a": content})
		g.Git("push", "-q", "-f", bare, "HEAD:"+ref)
		if err := r.FetchRef(ctx, ref+"~0"); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Resolve(ref); err != nil || got != merge {
			t.Errorf("it is %s, %v; want %s", got, err, merge)
		}
		if err := r.Fetch(ctx); err != nil {
			t.Fatal(err)
		}
	}

	asked := s.asked.Load()
	for _, rev := range []string{"", "main", "refs/heads/main", "refs/tags/none", "HEAD~1"} {
		if err := r.FetchRef(ctx, rev); err != nil || s.asked.Load() != asked {
			t.Errorf("%q: %v, and the server was asked", rev, err)
		}
	}
	if err := r.FetchRef(ctx, "refs/pull/8/merge"); !errors.Is(err, source.ErrUnknownRevision) {
		t.Errorf("one that the server does not have: %v", err)
	}
	if err := r.FetchRef(ctx, "refs/../../x"); !errors.Is(err, source.ErrUnknownRevision) {
		t.Errorf("no ref: %v", err)
	}
	if _, err := source.Clone(ctx, dir, s.address(), s.basic()); err != nil {
		t.Errorf("the next start: %v", err)
	}
	if opened, err := source.Open(g.Dir); err != nil || opened.FetchRef(ctx, ref) != nil {
		t.Errorf("opened in place: %v", err)
	}
}

func TestT14MirrorHealsWhenAnObjectIsMissing(t *testing.T) {
	ctx := context.Background()
	g := sourcetest.New(t)
	head := g.Commit("one", map[string]string{"a": "1"})
	s := serve(t, g.Bare())
	dir := filepath.Join(t.TempDir(), "mirror")
	r, err := source.Clone(ctx, dir, s.address(), s.basic())
	if err != nil {
		t.Fatal(err)
	}

	// Only the commit is left.
	raw := g.Git("cat-file", "commit", head) + "\n"
	packs, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*"))
	for _, p := range packs {
		os.Remove(p)
	}

	if got := g.GitIn(dir, raw, "hash-object", "-t", "commit", "-w", "--stdin"); got != head {
		t.Fatalf("commit became %s", got)
	}
	if r, err = source.Clone(ctx, dir, s.address(), s.basic()); err != nil {
		t.Fatal(err)
	}

	read := func() error {
		c, err := r.Commit(head)
		if err != nil {
			return err
		}

		tree, err := c.Tree("")
		if err != nil {
			return err
		}

		_, err = tree.ReadFile("a")
		return err
	}

	if err := read(); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Fatalf("got %v", err)
	}
	if err := r.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Error(err)
	}
}

func TestT04TruncatedPackChangesNothing(t *testing.T) {
	ctx := context.Background()
	g := sourcetest.New(t)
	one := g.Commit("one", map[string]string{"a": "1"})
	bare := g.Bare()
	s := serve(t, bare)
	dir := filepath.Join(t.TempDir(), "mirror")
	r, err := source.Clone(ctx, dir, s.address(), s.basic())
	if err != nil {
		t.Fatal(err)
	}

	noise := make([]byte, 4096)
	_, _ = rand.Read(noise)
	two := g.Commit("two", map[string]string{"a": fmt.Sprintf("%x", noise)})
	g.Git("push", "-q", bare, "main")
	s.corrupt.Store(true)

	if err := r.Fetch(ctx); err == nil {
		t.Fatal("half a pack was taken")
	}
	if got, err := r.Resolve("main"); err != nil || got != one {
		t.Errorf("main is %s, %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "objects/pack/tmp*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	g.GitIn(dir, "", "fsck", "--strict")
	s.corrupt.Store(false)

	if err := r.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Resolve("main"); err != nil || got != two {
		t.Errorf("main is %s, %v", got, err)
	}
}

func TestT08WrongCredentialsAndCA(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", nil)
	s := serve(t, g.Bare())
	withPassword := strings.Replace(s.address(), "https://", "https://ada:hunter2@", 1)
	for name, c := range map[string]struct {
		url  string
		auth source.Auth
		want string
	}{
		"nobody":              {s.address(), source.Auth{CA: s.ca}, "authentication required"},
		"wrong password":      {s.address(), source.Auth{Username: "ada", Password: "hunter2", CA: s.ca}, "authentication required"},
		"password in the url": {withPassword, source.Auth{CA: s.ca}, "authentication required"},
		"unknown authority":   {withPassword, source.Auth{}, "certificate"},
		"CA is no PEM":        {s.address(), source.Auth{CA: []byte("x")}, "no PEM certificate"},
	} {
		dir := filepath.Join(t.TempDir(), "mirror")
		_, err := source.Clone(context.Background(), dir, c.url, c.auth)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: something was made", name)
		}
	}

	ok := strings.Replace(s.address(), "https://", "https://ada:s3cret@", 1)
	dir := filepath.Join(t.TempDir(), "mirror")
	if _, err := source.Clone(context.Background(), dir, ok, source.Auth{CA: s.ca}); err != nil {
		t.Error(err)
	}

	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), "s3cret") {
			t.Errorf("%s holds the password", path)
		}
		return nil
	})
}

func TestT06RedirectToAnotherHostIsRefused(t *testing.T) {
	var reached atomic.Int32
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()

	first := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
	}))
	defer first.Close()

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: first.Certificate().Raw})
	_, err := source.Clone(context.Background(), filepath.Join(t.TempDir(), "m"), first.URL+"/repo.git", source.Auth{Username: "ada", Password: "s3cret", CA: ca})
	if err == nil || !strings.Contains(err.Error(), "redirect to another host refused") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
	if reached.Load() != 0 {
		t.Error("the other host was asked")
	}
}

func TestT07URLsThatAreRefused(t *testing.T) {
	for _, url := range []string{
		"--upload-pack=touch /tmp/x", "ext::sh -c id", "file:///etc", "git://example.com/x", "http://example.com/x", "ftp://example.com/x",
		"ssh://-oProxyCommand=id/x", "git@host:-x", "https://", "https://example.com", "ssh://example.com/-x", "https://a:s3cret@[", "https://u:s3cret@h/x?y",
		"", "https://example.com/\nx", "https://example.com:99999999/x",
	} {
		_, err := source.Clone(context.Background(), filepath.Join(t.TempDir(), "m"), url, source.Auth{})
		if err == nil || !strings.HasPrefix(err.Error(), "url ") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got %v", url, err)
		}
	}
}

func TestMirrorNeverReplacesWhatIsNotOne(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", map[string]string{"a": "1"})
	s := serve(t, g.Bare())
	if _, err := source.Clone(context.Background(), g.Dir, s.address(), s.basic()); err == nil || !strings.Contains(err.Error(), "is not a mirror") {
		t.Errorf("got %v", err)
	}

	dir := filepath.Join(t.TempDir(), "mirror")
	if _, err := source.Clone(context.Background(), dir, s.address(), s.basic()); err != nil {
		t.Fatal(err)
	}

	h := sourcetest.New(t)
	want := h.Commit("other", nil)
	other := serve(t, h.Bare())
	r, err := source.Clone(context.Background(), dir, other.address(), other.basic())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Resolve("HEAD"); err != nil || got != want {
		t.Errorf("HEAD is %s, %v", got, err)
	}
}

func TestT11EmptyServer(t *testing.T) {
	g := sourcetest.New(t)
	bare := filepath.Join(t.TempDir(), "repo.git")
	g.Git("init", "-q", "--bare", bare)
	s := serve(t, bare)
	_, err := source.Clone(context.Background(), filepath.Join(t.TempDir(), "m"), s.address(), s.basic())
	if err == nil || !strings.Contains(err.Error(), "the repository is empty") {
		t.Errorf("got %v", err)
	}
}

func TestCloneOfAPathOpensIt(t *testing.T) {
	g := sourcetest.New(t)
	want := g.Commit("one", nil)
	dir := filepath.Join(t.TempDir(), "m")
	r, err := source.Clone(context.Background(), dir, g.Dir, source.Auth{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Fetch(context.Background()); err != nil {
		t.Error(err)
	}
	if got, err := r.Resolve("HEAD"); err != nil || got != want {
		t.Errorf("HEAD is %s, %v", got, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a mirror was made of a path")
	}
}

// sshServer runs git-upload-pack for anyone with the key.
type sshServer struct {
	address    string
	identity   []byte
	knownHosts []byte
}

func serveSSH(t *testing.T) *sshServer {
	t.Helper()
	hostKey, _ := newKey(t)
	userKey, identity := newKey(t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(userKey.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}

	config.AddHostKey(hostKey)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	var all sync.WaitGroup
	t.Cleanup(func() { listener.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { uploadPack(conn, config) })
		}
	})

	address := listener.Addr().String()
	return &sshServer{address, identity, []byte(knownhosts.Line([]string{knownhosts.Normalize(address)}, hostKey.PublicKey()) + "\n")}
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}

	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}

	return signer, pem.EncodeToMemory(block)
}

func uploadPack(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()

	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}

	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}

		for r := range requests {
			if r.Type != "exec" {
				_ = r.Reply(false, nil)
				continue
			}

			_ = r.Reply(true, nil)
			var request struct{ Command string }
			_ = ssh.Unmarshal(r.Payload, &request)
			cmd := exec.Command("sh", "-c", request.Command)
			cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
			in, _ := cmd.StdinPipe()
			go func() { _, _ = io.Copy(in, channel); in.Close() }()
			status := byte(0)
			if cmd.Run() != nil {
				status = 1
			}

			_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, status})
			channel.Close()
		}
	}
}

func TestMirrorOverSSH(t *testing.T) {
	ctx := context.Background()
	g := sourcetest.New(t)
	one := g.Commit("one", map[string]string{"a": "1"})
	s := serveSSH(t)
	dir := filepath.Join(t.TempDir(), "mirror")
	url := "ssh://git@" + s.address + g.Dir
	auth := source.Auth{Identity: s.identity, KnownHosts: s.knownHosts}
	r, err := source.Clone(ctx, dir, url, auth)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Resolve("main"); err != nil || got != one {
		t.Errorf("main is %s, %v", got, err)
	}

	two := g.Commit("two", map[string]string{"a": "2"})
	if err := r.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Resolve("main"); err != nil || got != two {
		t.Errorf("main is %s, %v", got, err)
	}

	g.GitIn(dir, "", "fsck", "--strict")
	if _, err := source.Clone(ctx, filepath.Join(t.TempDir(), "m"), "ssh://"+s.address+g.Dir+"-nope", auth); err == nil || !strings.Contains(err.Error(), "not appear to be a git repository") {
		t.Errorf("got %v", err)
	}
}

func TestT08SSHHostKeys(t *testing.T) {
	g := sourcetest.New(t)
	g.Commit("one", nil)
	s := serveSSH(t)
	other, _ := newKey(t)
	_, stranger := newKey(t)
	line := func(host string, key ssh.PublicKey) []byte {
		return []byte(knownhosts.Line([]string{host}, key) + "\n")
	}
	for name, c := range map[string]struct {
		auth source.Auth
		want string
	}{
		"no identity":       {source.Auth{KnownHosts: s.knownHosts}, "requires an identity"},
		"no known_hosts":    {source.Auth{Identity: s.identity}, "known_hosts is empty"},
		"blank known_hosts": {source.Auth{Identity: s.identity, KnownHosts: []byte(" \n")}, "known_hosts is empty"},
		"bad known_hosts":   {source.Auth{Identity: s.identity, KnownHosts: []byte("x y z\n")}, "known_hosts: "},
		"unknown host":      {source.Auth{Identity: s.identity, KnownHosts: line("elsewhere", other.PublicKey())}, "not in known_hosts"},
		"changed host key":  {source.Auth{Identity: s.identity, KnownHosts: line(knownhosts.Normalize(s.address), other.PublicKey())}, "does not match known_hosts"},
		"wrong identity":    {source.Auth{Identity: stranger, KnownHosts: s.knownHosts}, "unable to authenticate"},
		"bad identity":      {source.Auth{Identity: []byte("x"), KnownHosts: s.knownHosts}, "ssh identity"},
	} {
		_, err := source.Clone(context.Background(), filepath.Join(t.TempDir(), "m"), "ssh://"+s.address+g.Dir, c.auth)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	s := serveSSH(t)
	for _, url := range []string{"http://" + silent.Addr().String() + "/x", "ssh://" + silent.Addr().String() + "/x"} {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		known := strings.Replace(string(s.knownHosts), knownhosts.Normalize(s.address), knownhosts.Normalize(silent.Addr().String()), 1)
		begin := time.Now()
		_, err := source.Clone(ctx, filepath.Join(t.TempDir(), "m"), url, source.Auth{Identity: s.identity, KnownHosts: []byte(known)})
		cancel()
		if err == nil || time.Since(begin) > 5*time.Second {
			t.Errorf("%s: %v after %v", url, err, time.Since(begin))
		}
	}
}

// A server that advertises refs which would escape the mirror.
func TestT03CraftedRefNames(t *testing.T) {
	g := sourcetest.New(t)
	head := g.Commit("one", map[string]string{"a": "1"})
	pkt := func(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }
	refs := []string{"refs/heads/../../config", "refs/heads/a\x7fb", "refs/heads/a..b", "refs/heads/x.lock", "refs/heads/-"}
	slices.Sort(refs)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		fmt.Fprint(w, pkt("# service=git-upload-pack\n"), "0000", pkt(head+" HEAD\x00ofs-delta\n"))
		for _, name := range refs {
			fmt.Fprint(w, pkt(head+" "+name+"\n"))
		}
		fmt.Fprint(w, "0000")
	}))

	defer h.Close()

	dir := filepath.Join(t.TempDir(), "m")
	if _, err := source.Clone(context.Background(), dir, h.URL+"/x", source.Auth{}); err == nil {
		t.Error("taken")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("something was made")
	}
}
