// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// settleTime is how long a commit may take to reach the members before what it did is
// told. A member that takes longer is told with what waits for it.
const settleTime = 5 * time.Second

// tally counts what is done to objects. Its owner holds the lock.
type tally map[dispatch.Op]int

// text reads "4 applied, 1 deleted".
func (t tally) text() (parts []string) {
	for _, done := range []struct {
		op   dispatch.Op
		word string
	}{
		{dispatch.OpApply, "applied"}, {dispatch.OpAdopt, "adopted"}, {dispatch.OpRestore, "restored"},
		{dispatch.OpDelete, "deleted"}, {dispatch.OpOrphan, "left running"},
	} {
		if n := t[done.op]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, done.word))
		}
	}
	return parts
}

// takeTally returns what was done since the last call.
func (l *Loop) takeTally() tally {
	l.telling.Lock()
	defer l.telling.Unlock()
	t := l.tally
	l.tally = tally{}
	return t
}

// begin tells where a run starts.
func (l *Loop) begin() {
	at := "nothing folded yet"
	if l.state.Accepted != "" {
		at = "at " + source.Short(l.state.Accepted)
	}
	l.info("following %s of %s every %s, %s; state in %s", l.opt.Ref, source.Redact(l.opt.Repo), l.opt.Interval, at, l.opt.StateDir)
}

// settling is the commit whose effect is still to be told.
type settling struct {
	running sync.WaitGroup
	stop    context.CancelFunc
}

// begin tells of another commit. What the one before still does counts for that.
func (s *settling) begin(ctx context.Context, tell func(context.Context)) {
	s.end()
	ctx, s.stop = context.WithCancel(ctx)
	s.running.Go(func() { tell(ctx) })
}

func (s *settling) end() {
	if s.stop != nil {
		s.stop()
	}
	s.running.Wait()
}

// settle tells what a commit has done to the members, once they have it or a while is
// over. It returns when it has, or when ctx is done.
func (l *Loop) settle(ctx context.Context, before, after propagate.State) {
	waiting, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()

	left := l.dispatcher.Wait(waiting)
	l.hasMoved()
	if ctx.Err() != nil {
		return
	}

	parts := append(l.takeTally().text(), waits(left)...)
	held := 0
	for _, c := range propagate.Changes(&before, &after) {
		if c.Type == propagate.ChangeHeld {
			held++
		}
	}
	if held > 0 {
		parts = append(parts, fmt.Sprintf("%d held", held))
	}
	if len(parts) == 0 {
		parts = []string{"nothing to send"}
	}

	l.info("%s %q: %s", source.Short(after.Accepted), l.subject(after.Accepted), strings.Join(parts, ", "))
}

// waits reads "3 wait (us-2)", and "1 failed".
func waits(left []dispatch.Outcome) (parts []string) {
	waiting, failed := 0, 0
	var clusters []string
	seen := map[string]bool{}
	for _, o := range left {
		switch {
		case o.ID == (object.ID{}):
			waiting += o.Waiting
		case o.Final:
			failed++
			continue
		default:
			waiting++
		}
		if !seen[o.Cluster] {
			seen[o.Cluster] = true
			clusters = append(clusters, o.Cluster)
		}
	}

	if waiting == 1 {
		parts = append(parts, "1 waits ("+someOf(clusters)+")")
	}
	if waiting > 1 {
		parts = append(parts, fmt.Sprintf("%d wait (%s)", waiting, someOf(clusters)))
	}
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failed))
	}
	return parts
}

// someOf names the first of many clusters.
func someOf(clusters []string) string {
	const most = 3
	if more := len(clusters) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(clusters[:most], ", "), more)
	}
	return strings.Join(clusters, ", ")
}

// subject is the first line of a commit's message, "" if it cannot be read.
func (l *Loop) subject(commit string) string {
	c, err := l.repo.Commit(commit)
	if err != nil {
		return ""
	}
	return c.Subject
}
