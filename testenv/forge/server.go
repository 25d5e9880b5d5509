// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is a Gitea with a database of its own.
type Server struct {
	url, dir, program string
	run               *exec.Cmd
	ended             chan struct{}
	words             words
	admin             User
}

// User is an account, and a token that may do everything it may.
type User struct{ Name, Token string }

// Start starts a Gitea that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	if os.Getenv("FAIRLEAD_REAL") != "1" {
		t.Skip("left out: a real Gitea is started with FAIRLEAD_REAL=1")
	}
	s, err := Run(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop of Gitea: %v", err)
		}
	})
	return s
}

// Run starts a Gitea that writes below a directory, and waits until it answers. Stop ends
// it.
func Run(dir string) (*Server, error) {
	program, static, err := binaries()
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}

	s := &Server{url: "http://" + address, dir: dir, program: program, ended: make(chan struct{})}
	if err := os.WriteFile(s.config(), settings(dir, static, address), 0o600); err != nil {
		return nil, err
	}
	s.run = s.command("web")
	s.run.Stdout, s.run.Stderr = &s.words, &s.words
	if err := s.run.Start(); err != nil {
		return nil, fmt.Errorf("gitea: %w", err)
	}
	go func() {
		_ = s.run.Wait() // it is in the state of the process
		close(s.ended)
	}()
	if err := s.await(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	if s.admin, err = s.createUser("root-of-all", "--admin"); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// binaries returns the program, and the directory of its templates, from hack/forge/bin
// of the module that we stand in.
func binaries() (program, static string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return "", "", errors.New("there is no Gitea at hand: stand in a checkout of fairlead where 'make forge' has built it")
		}
	}

	bin := filepath.Join(dir, "hack", "forge", "bin")
	at, err := os.ReadFile(filepath.Join(bin, "static"))
	if err != nil {
		return "", "", fmt.Errorf("there is no Gitea in %s: 'make forge' in a checkout of fairlead builds it", bin)
	}
	return filepath.Join(bin, "gitea"), strings.TrimSpace(string(at)), nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// settings are those of a Gitea that asks nobody and reaches nobody.
func settings(dir, static, address string) []byte {
	_, port, _ := net.SplitHostPort(address)
	return fmt.Appendf(nil, `APP_NAME = test
RUN_MODE = prod
WORK_PATH = %[1]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true

[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]s
ROOT_URL = http://%[4]s/
STATIC_ROOT_PATH = %[2]s
OFFLINE_MODE = true
DISABLE_SSH = true
GRACEFUL_HAMMER_TIME = 1s

[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db

[security]
INSTALL_LOCK = true
SECRET_KEY = of-a-test
INTERNAL_TOKEN = of-a-test

[oauth2]
ENABLED = false

[actions]
ENABLED = false

[packages]
ENABLED = false

[mailer]
ENABLED = false

[indexer]
ISSUE_INDEXER_TYPE = db

[queue]
TYPE = channel

[session]
PROVIDER = memory

[cron]
ENABLED = false

[log]
MODE = console
LEVEL = Error
`, dir, static, port, address)
}

func (s *Server) config() string { return filepath.Join(s.dir, "app.ini") }

// command is the program with the settings, and nothing of our environment but the path.
func (s *Server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, append(args, "--config", s.config())...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true", "GIT_CONFIG_NOSYSTEM=1"}
	return cmd
}

// await waits until the server answers, or has ended.
func (s *Server) await() error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		if resp, err := http.Get(s.url + "/api/healthz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.ended:
			return fmt.Errorf("gitea ended: %s\n%s", s.run.ProcessState, s.words.last())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("gitea does not answer: %s", s.words.last())
}

// Stop ends the server.
func (s *Server) Stop() error {
	_ = s.run.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended: // by our signal
		return nil
	case <-time.After(20 * time.Second):
		_ = s.run.Process.Kill()
		<-s.ended
		return errors.New("gitea did not end when it was told to")
	}
}

// URL is where the server is.
func (s *Server) URL() string { return s.url }

// User creates an account.
func (s *Server) User(name string) (User, error) { return s.createUser(name) }

func (s *Server) createUser(name string, more ...string) (User, error) {
	args := append([]string{
		"admin", "user", "create", "--username", name, "--email", name + "@example.com", "--password", "of-a-test-" + name,
		"--must-change-password=false", "--access-token", "--access-token-scopes", "all",
	}, more...)
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		return User{}, fmt.Errorf("user %s: %w: %s", name, err, out)
	}
	at := bytes.LastIndex(out, []byte("... "))
	if at < 0 {
		return User{}, fmt.Errorf("user %s: no token in %q", name, out)
	}
	return User{name, strings.TrimSpace(string(out[at+4:]))}, nil
}

// words are what a program says, for the error that it may end with.
type words struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	return len(p), nil
}

func (w *words) last() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text[max(0, len(w.text)-2000):]
}
