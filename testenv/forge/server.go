// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/testenv/process"
)

// Server is a Gitea with a database of its own.
type Server struct {
	url, dir, program string
	run               *process.Process
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
	address, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}

	s := &Server{url: "http://" + address, dir: dir, program: program}
	if err := os.WriteFile(s.config(), settings(dir, static, address), 0o600); err != nil {
		return nil, err
	}
	if s.run, err = process.Start(s.command("web")); err != nil {
		return nil, err
	}
	if err := s.run.Await(s.url + "/api/healthz"); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	if s.admin, err = s.createUser("root-of-all", "--admin"); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// binaries returns the program, and the directory of its templates, from hack/forge/bin
// of the checkout that we stand in.
func binaries() (program, static string, err error) {
	dir, err := process.Checkout()
	if err != nil {
		return "", "", fmt.Errorf("there is no Gitea at hand: %w: stand in a checkout of fairlead where 'make forge' has built it", err)
	}
	bin := filepath.Join(dir, "hack", "forge", "bin")
	at, err := os.ReadFile(filepath.Join(bin, "static"))
	if err != nil {
		return "", "", fmt.Errorf("there is no Gitea in %s: 'make forge' in a checkout of fairlead builds it", bin)
	}
	return filepath.Join(bin, "gitea"), strings.TrimSpace(string(at)), nil
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

[webhook]
ALLOWED_HOST_LIST = loopback

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

// Stop ends the server.
func (s *Server) Stop() error { return s.run.Stop() }

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
