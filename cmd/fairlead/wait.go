// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/interpret"
	"github.com/fairlead/fairlead/reconcile"
)

type waitFlags struct {
	lookFlags
	members  memberFlags
	what     string
	clusters []string
	timeout  time.Duration
}

func newWait() *cobra.Command {
	var f waitFlags
	cmd := &cobra.Command{
		Use:   "wait --for=position=REF|healthy",
		Short: "Wait until clusters run what git released to them",
		Long: `Waits until every cluster that is asked for is there, says so as each arrives,
and exits 0. What they have is read from the clusters themselves.

  --for=position=REF   every cluster acknowledges what the history up to REF
                       released to it, or something newer, and what that removes
                       is gone. A work that is held has nothing to wait for.
  --for=healthy        the same at the head of --ref, and everything does well

When the time is over it says what is missing, and exits 5.`,
		Example: `  fairlead wait --for=position=HEAD --kubeconfig members.yaml
  fairlead wait --for=position=v1.4.0 -c wave=1 --timeout 30m
  fairlead wait --for=healthy -c 'eu-*'`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.wait(cmd) },
	}
	f.bind(cmd.Flags())
	f.members.bind(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&f.what, "for", "", "what to wait for: position=REF or healthy")
	flags.StringSliceVarP(&f.clusters, "cluster", "c", nil, "only these clusters: names, globs, or wave=N")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long to wait; 0 looks once")
	return cmd
}

func (f *waitFlags) wait(cmd *cobra.Command) error {
	position, isPosition := strings.CutPrefix(f.what, "position=")
	if f.what != "healthy" && (!isPosition || position == "") {
		return usagef("--for %q is neither position=REF nor healthy", f.what)
	}
	branch := f.ref
	if isPosition {
		f.ref = position
	}
	ctx, end := cmd.Context(), time.Now().Add(f.timeout)
	o, err := f.outlook(ctx, &f.members, f.clusters)
	if err != nil {
		return err
	}
	if r := o.state.Refusal; isPosition && r != nil && r.Commit == o.head {
		return fmt.Errorf("%s; nothing of it will ever arrive", reconcile.RefusalLines(&o.state)[0])
	}
	w := &waiter{outlook: o, position: isPosition, branch: branch, out: cmd.OutOrStdout(), there: map[string]bool{}}
	if len(o.clusters) == 0 {
		return fmt.Errorf("the fleet has no clusters to wait for at %s", short(o.head))
	}
	warn(cmd.ErrOrStderr(), &o.state)
	for {
		if err := w.look(ctx); err != nil {
			return err
		}
		switch {
		case len(w.blocked) == 0:
			_, err := fmt.Fprintf(w.out, "ok: %s %s\n", ofClusters(len(o.clusters), len(o.clusters)), w.goal())
			return err
		case !time.Now().Add(lookAgain).Before(end):
			w.overdue(cmd.ErrOrStderr(), f.timeout)
			return &exitError{exitTimedOut}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
		o.fetch(ctx, cmd.ErrOrStderr())
		if isPosition {
			continue
		}
		if err := o.fold(f.ref, f.clusters); err != nil {
			return err
		}
	}
}

// waiter looks at clusters until all are there.
type waiter struct {
	*outlook
	position bool   // and not health
	branch   string // that a later commit may be of
	out      io.Writer
	there    map[string]bool
	blocked  map[string][]*reconcile.Cell // of the clusters that are not there
	later    *beyond
}

// look asks the clusters once, and tells which have arrived since.
func (w *waiter) look(ctx context.Context) error {
	if err := w.see(ctx); err != nil {
		return err
	}
	beyond, err := w.beyond()
	if err != nil {
		return err
	}
	w.blocked = map[string][]*reconcile.Cell{}
	objects := map[string]int{}
	for _, c := range w.all() {
		if c.Position == reconcile.Unplaced {
			continue
		}
		objects[c.Cluster]++
		if !w.met(c) && !beyond.has(c) {
			w.blocked[c.Cluster] = append(w.blocked[c.Cluster], c)
		}
	}
	for _, c := range w.clusters {
		if w.failed[c.Name] != nil && w.blocked[c.Name] == nil {
			w.blocked[c.Name] = []*reconcile.Cell{}
		}
		arrived := w.blocked[c.Name] == nil
		if arrived && !w.there[c.Name] {
			if _, err := fmt.Fprintf(w.out, "%s %s is %s (%s)\n", time.Now().Format(time.TimeOnly), c.Name, w.goal(), count(objects[c.Name], "object")); err != nil {
				return err
			}
		}
		w.there[c.Name] = arrived
	}
	return nil
}

// met is whether a cell is as it is waited for.
func (w *waiter) met(c *reconcile.Cell) bool {
	if !c.Arrived || w.position || c.Sight == nil || !c.Sight.Ours {
		return c.Arrived
	}
	return c.Sight.Health == propagate.Healthy && c.Sight.Progress == interpret.Current
}

func (w *waiter) goal() string {
	if w.position {
		return "at " + short(w.head)
	}
	return "healthy at " + short(w.head)
}

// beyond is the branch after the position: what runs something of a later
// commit has been there.
type beyond struct {
	tip   string
	place map[string]int // of the commits of the branch
	at    int            // the position
	state propagate.State
}

// beyond is nil where nothing comes after the position.
func (w *waiter) beyond() (*beyond, error) {
	if !w.position {
		return nil, nil
	}
	tip, err := w.resolve(w.branch)
	if err != nil || tip == w.head {
		return nil, err
	}
	if w.later != nil && w.later.tip == tip {
		return w.later, nil
	}
	line, err := w.commits("", tip)
	if err != nil {
		return nil, err
	}
	b := &beyond{tip: tip, place: map[string]int{}}
	for i, c := range line {
		b.place[c.Hash] = i
	}
	at, on := b.place[w.head]
	if !on {
		return nil, nil // of another branch
	}
	b.at = at
	if b.state, err = w.at(tip); err != nil {
		return nil, err
	}
	w.later = b
	return b, nil
}

// has is whether a cluster that lacks something is past the position: it runs a
// later commit's content, or a later commit does not want it there.
func (b *beyond) has(c *reconcile.Cell) bool {
	if b == nil || c.Position == reconcile.Silent {
		return false
	}
	if i, known := b.place[c.Runs]; known && i > b.at {
		return true
	}
	if c.Sight != nil && c.Sight.Ours {
		return false
	}
	later := b.state.Bindings.At(c.Object.Key())
	return later == nil || later.Work(c.Cluster) == nil || later.Work(c.Cluster).Released == nil
}

// overdue says what is missing at the end of the time.
func (w *waiter) overdue(stderr io.Writer, timeout time.Duration) {
	err := w.lag()
	if err != nil {
		fmt.Fprintf(stderr, "fairlead: %v\n", err)
	}
	fmt.Fprintf(stderr, "fairlead: not there after %s: %s %s\n", timeout, ofClusters(len(w.clusters)-len(w.blocked), len(w.clusters)), w.goal())
	for _, c := range w.clusters {
		cells, blocked := w.blocked[c.Name]
		switch {
		case !blocked:
			continue
		case w.failed[c.Name] != nil:
			fmt.Fprintf(stderr, "  %s: %s\n", c.Name, cause(w.failed[c.Name]))
			continue
		}
		for _, cell := range cells[:min(len(cells), most)] {
			fmt.Fprintf(stderr, "  %s: %s: %s\n", c.Name, title(cell.Object), lacks(cell))
		}
		if more := len(cells) - most; more > 0 {
			fmt.Fprintf(stderr, "  %s: and %d more\n", c.Name, more)
		}
	}
}

// most is how many objects of a cluster are named.
const most = 10

// lacks is why a cell is not as it is waited for.
func lacks(c *reconcile.Cell) string {
	why := []string{c.Why}
	if c.Behind > 0 {
		why = append(why, count(c.Behind, "commit")+" behind")
	}
	if c.Sight != nil && c.Sight.Unclear != nil {
		why = append(why, oneLine(c.Sight.Unclear.Error()))
	}
	if c.Arrived && c.Sight != nil && c.Sight.Why != "" && c.Sight.Why != c.Why {
		why = append(why, c.Sight.Why)
	}
	return strings.Join(slices.DeleteFunc(why, func(s string) bool { return s == "" }), ", ")
}

func ofClusters(n, all int) string {
	return fmt.Sprintf("%d of %s", n, count(all, "cluster"))
}
