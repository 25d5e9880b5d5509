// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/reconcile"
)

// F45: whoever reads nothing is not waited for, and what was left out is told
// where it is missing.
func TestLinesThatNobodyTakes(t *testing.T) {
	read, write := io.Pipe()
	l := newLines(write, "text", true)
	line := func(i int) reconcile.Event {
		return reconcile.Event{Severity: reconcile.Detail, Act: &reconcile.Act{Verb: dispatch.OpApply}, Cluster: "eu-1", Note: fmt.Sprint("line ", i)}
	}
	say := func(from, to int) {
		for i := from; i < to; i++ {
			l.report(line(i))
		}
	}
	say(0, 1)
	lines := bufio.NewScanner(read)
	next := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("there is no next line")
		}
		return lines.Text()
	}
	if got := next(); got != line(0).String() {
		t.Errorf("it reads %q", got)
	}
	// Nobody reads: one line is held out, the rest waits behind it.
	say(1, 2)
	waiting := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.waiting)
	}
	for waiting() > 0 {
		time.Sleep(time.Millisecond)
	}
	say(2, mostLines+1002)
	if n := waiting(); n != mostLines {
		t.Fatalf("%d lines wait", n)
	}
	l.summary()
	for i := 1; i < mostLines+2; i++ {
		if got, want := next(), line(i).String(); got != want {
			t.Fatalf("it reads %q, want %q", got, want)
		}
	}
	// The end is not left out.
	if got, want := next(), fmt.Sprintf("%d actions on the clusters", mostLines+1002); got != want {
		t.Errorf("it reads %q, want %q", got, want)
	}
	if got, want := next(), "1000 lines are left out here: the reader is too slow"; got != want {
		t.Errorf("it reads %q, want %q", got, want)
	}
	l.close()

	// The end of the process does not wait for long either.
	_, write = io.Pipe()
	l = newLines(write, "text", true)
	say(0, 3)
	l.close()
}
