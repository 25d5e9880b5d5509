// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/reconcile"
)

const (
	// mostLines is how many lines wait for whoever reads them.
	mostLines = 4096
	// readerPatience is how long the end of the process waits for a reader that
	// takes nothing.
	readerPatience = 2 * time.Second
)

// lines prints what happens, one line each, and counts the acts. Nothing waits
// for whoever reads them: a pipe that is full, or has no other end, costs lines
// and not the clusters. The record of events has them all the same.
type lines struct {
	w       io.Writer
	log     *logr.Logger // instead of w, when it is set
	verbose bool
	times   bool // before each line

	mu      sync.Mutex
	more    sync.Cond
	acts    int
	waiting []func()
	missing int
	printed int
	closed  bool
	ended   chan struct{}
}

func newLines(w io.Writer, encoding string, verbose bool) *lines {
	l := &lines{w: w, verbose: verbose, ended: make(chan struct{})}
	if encoding != "text" {
		log := newLogger(w, encoding, logLevels["info"])
		l.log = &log
	}
	l.more.L = &l.mu
	// A write to a pipe that nobody will read any more is an error, and not the
	// end of the process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go l.write()
	return l
}

func (l *lines) report(e reconcile.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Act != nil {
		l.acts++
	}
	if e.Severity == reconcile.Detail && !l.verbose {
		return
	}
	if len(l.waiting) >= mostLines {
		l.missing++
		return
	}

	l.add(func() { l.print(e) })
}

// add has something printed when its turn comes. The lock is held.
func (l *lines) add(print func()) {
	l.waiting = append(l.waiting, print)
	l.more.Signal()
}

// write prints what waits, in its order.
func (l *lines) write() {
	defer close(l.ended)
	for {
		l.mu.Lock()
		for len(l.waiting) == 0 && !l.closed {
			l.more.Wait()
		}
		if len(l.waiting) == 0 {
			l.mu.Unlock()
			return
		}
		waiting, missing := l.waiting, l.missing
		l.waiting, l.missing = nil, 0
		l.mu.Unlock()
		for _, print := range waiting {
			print()
			l.mu.Lock()
			l.printed++
			l.mu.Unlock()
		}
		if missing > 0 {
			l.print(reconcile.Event{Note: fmt.Sprintf("%s left out here: the reader is too slow", areLines(missing))})
		}
	}
}

func areLines(n int) string {
	if n == 1 {
		return "1 line is"
	}
	return fmt.Sprintf("%d lines are", n)
}

func (l *lines) print(e reconcile.Event) {
	if l.log == nil {
		l.printText(e.String())
		return
	}

	var details []any
	if e.Cluster != "" {
		details = append(details, "cluster", e.Cluster)
	}
	if e.Object != (object.ID{}) {
		details = append(details, "object", e.Object.String())
	}
	if e.Severity == reconcile.Warning {
		l.log.Error(nil, e.String(), details...)
		return
	}

	l.log.Info(e.String(), details...)
}

func (l *lines) printText(line string) {
	if l.times {
		line = time.Now().Format(time.TimeOnly) + " " + line
	}
	fmt.Fprintln(l.w, line)
}

// summary ends a run that went well, and failure one that did not.
func (l *lines) summary() {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := "nothing was sent to any cluster"
	if l.acts > 0 {
		text = report.Count(l.acts, "action") + " on the clusters"
	}
	l.add(func() { l.print(reconcile.Event{Severity: reconcile.Info, Note: text}) })
}

func (l *lines) failure(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(func() { printable.Fprintf(l.w, "fairlead: %v\n", err) })
}

// close waits for what is still to be printed, as long as somebody takes it.
func (l *lines) close() {
	l.mu.Lock()
	l.closed = true
	l.more.Signal()
	before := l.printed
	l.mu.Unlock()
	for {
		select {
		case <-l.ended:
			return
		case <-time.After(readerPatience):
		}
		l.mu.Lock()
		now := l.printed
		l.mu.Unlock()
		if now == before {
			return
		}
		before = now
	}
}
