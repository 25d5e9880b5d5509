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

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/source"
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
		Long: `Waits until every selected cluster meets the condition, prints a line for each as it
does, and exits 0. What they have is read from the clusters themselves.

  --for=position=REF   every cluster has what the history up to REF released to it,
                       or something newer, and what that history removed is gone.
                       Works that are held are not waited for.
  --for=healthy        the same at the head of --ref, and every object is healthy

On a timeout it prints what is missing and exits 5.`,
		Example: `  fairlead wait --for=position=HEAD --kubeconfig members.yaml
  fairlead wait --for=position=v1.4.0 -c wave=1 --timeout 30m
  fairlead wait --for=healthy -c 'eu-*'`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.wait(cmd) },
	}
	f.bind(cmd.Flags())
	f.members.bind(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&f.what, "for", "", "condition to wait for: position=REF or healthy")
	flags.StringSliceVarP(&f.clusters, "cluster", "c", nil, "only these clusters: names, globs, or wave=N")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long to wait; 0 checks once")
	return cmd
}

func (f *waitFlags) wait(cmd *cobra.Command) error {
	position, isPosition := strings.CutPrefix(f.what, "position=")
	if f.what != "healthy" && (!isPosition || position == "") {
		return usagef("--for %q must be position=REF or healthy", f.what)
	}

	branch := f.ref
	if isPosition {
		f.ref = position
	}
	ctx, end := cmd.Context(), time.Now().Add(f.timeout)
	seen, err := f.status(ctx, &f.members, f.clusters)
	if err != nil {
		return err
	}
	if err := unreachable(seen); err != nil {
		return err
	}
	if len(seen.Clusters) == 0 {
		return fmt.Errorf("the fleet has no clusters to wait for at %s", source.Short(seen.Head))
	}

	warn(cmd.ErrOrStderr(), &seen.State)

	w := &waiter{Wait: &status.Wait{Fleet: seen, Position: isPosition, Branch: branch}, out: cmd.OutOrStdout()}
	for {
		if err := w.look(ctx); err != nil {
			return err
		}
		switch {
		case len(w.Missing) == 0:
			_, err := printable.Fprintf(w.out, "ok: %s %s\n", ofClusters(len(w.Clusters), len(w.Clusters)), w.goal())
			return err
		case !time.Now().Add(inspectInterval).Before(end):
			w.overdue(cmd.ErrOrStderr(), f.timeout)
			return &exitError{exitTimedOut}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(inspectInterval):
		}
		if err := w.Fetch(ctx); err != nil {
			notes(cmd.ErrOrStderr(), []string{err.Error()})
		}
		if isPosition {
			continue
		}
		if err := w.Fold(f.ref, choosing(f.clusters)); err != nil {
			return err
		}
		if err := unreachable(w.Fleet); err != nil {
			return err
		}
	}
}

// unreachable is the error of a head that no cluster will ever have: it is refused,
// or awaits confirmation (decision 40).
func unreachable(f *status.Fleet) error {
	if r := f.State.Refusal; r == nil || r.Commit != f.Head {
		return nil
	}
	return fmt.Errorf("%s; no cluster will ever have it", history.RefusalLines(&f.State)[0])
}

// waiter prints the progress of a wait.
type waiter struct {
	*status.Wait
	out io.Writer
}

// look inspects the clusters once, and prints which have arrived since.
func (w *waiter) look(ctx context.Context) error {
	arrivals, err := w.Look(ctx)
	if err != nil {
		return err
	}

	for _, a := range arrivals {
		if _, err := printable.Fprintf(w.out, "%s %s is %s (%s)\n", time.Now().Format(time.TimeOnly), a.Cluster, w.goal(), report.Count(a.Objects, "object")); err != nil {
			return err
		}
	}

	return nil
}

func (w *waiter) goal() string {
	if w.Position {
		return "at " + source.Short(w.Head)
	}
	return "healthy at " + source.Short(w.Head)
}

// overdue prints what is missing at the timeout.
func (w *waiter) overdue(stderr io.Writer, timeout time.Duration) {
	err := w.CountBehind()
	if err != nil {
		printable.Fprintf(stderr, "fairlead: %v\n", err)
	}
	printable.Fprintf(stderr, "fairlead: not there after %s: %s %s\n", timeout, ofClusters(len(w.Clusters)-len(w.Missing), len(w.Clusters)), w.goal())
	for _, c := range w.Clusters {
		cells, missing := w.Missing[c.Name]
		switch {
		case !missing:
			continue
		case w.Silent[c.Name] != nil:
			printable.Fprintf(stderr, "  %s: %s\n", c.Name, status.Cause(w.Silent[c.Name]))
			continue
		}
		for _, cell := range cells[:min(len(cells), most)] {
			printable.Fprintf(stderr, "  %s: %s: %s\n", c.Name, object.ShortName(cell.Object), lacks(cell))
		}
		if more := len(cells) - most; more > 0 {
			printable.Fprintf(stderr, "  %s: and %d more\n", c.Name, more)
		}
	}
}

// most is how many objects of a cluster are listed.
const most = 10

// lacks is the reason why a cell does not meet the condition.
func lacks(c *status.Cell) string {
	why := []string{c.Why}
	if c.Behind > 0 {
		why = append(why, report.Count(c.Behind, "commit")+" behind")
	}
	if c.Observed != nil && c.Observed.Unclear != nil {
		why = append(why, status.OneLine(c.Observed.Unclear.Error()))
	}
	if c.Arrived && c.Observed != nil && c.Observed.Why != "" && c.Observed.Why != c.Why {
		why = append(why, c.Observed.Why)
	}

	return strings.Join(slices.DeleteFunc(why, func(s string) bool { return s == "" }), ", ")
}

func ofClusters(n, all int) string {
	return fmt.Sprintf("%d of %s", n, report.Count(all, "cluster"))
}
