// SPDX-License-Identifier: Apache-2.0

// Package process runs the programs that tests need beside them: found in the checkout,
// awaited until they answer, ended by their own signal.
package process

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Process is a program that runs.
type Process struct {
	cmd   *exec.Cmd
	name  string
	ended chan struct{}
	words words
}

// Start starts a command. What it prints is kept for the error that it may end with.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, name: filepath.Base(cmd.Path), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.words, &p.words
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	go func() {
		_ = cmd.Wait() // it is in the state of the process
		close(p.ended)
	}()
	return p, nil
}

// Await waits until a URL answers with 200, or the program has ended.
func (p *Process) Await(url string) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %s\n%s", p.name, p.cmd.ProcessState, p.words.last())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not answer: %s", p.name, p.words.last())
}

// Signal sends the program a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// State is how the program ended, after it has.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Output is all that the program has printed.
func (p *Process) Output() string { return string(p.words.all()) }

// Stop has the program end, and kills it if it does not.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended: // by our signal
		return nil
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end when it was told to", p.name)
	}
}

// Checkout is the directory of the go.mod that we stand in or below.
func Checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("there is no go.mod here or above")
		}
	}
}

// FreeAddress is an address of this machine where nobody listens.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// words are what a program prints.
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

func (w *words) all() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]byte(nil), w.text...)
}

func (w *words) last() []byte {
	all := w.all()
	return all[max(0, len(all)-2000):]
}
