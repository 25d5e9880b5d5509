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

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

type waitFlags struct {
	lookFlags
	members   memberFlags
	record    recordFlags
	what      string
	namespace string
	clusters  []string
	timeout   time.Duration

	asked *object.Reference // the object to wait for; nil is every one
	id    object.ID         // that it means, once the fleet is folded
}

func newWait() *cobra.Command {
	var f waitFlags
	cmd := &cobra.Command{
		Use:   "wait [KIND/NAME] --for=position=REF|healthy",
		Short: "Wait until clusters run what git released to them",
		Long: `Waits until every selected cluster meets the condition, prints which do as they do, and
exits 0. What they have is read from the clusters themselves. With KIND/NAME it waits
for that object alone, on the clusters that it is sent to.

  --for=position=REF   every cluster has what the history up to REF released to it,
                       or something newer, and what that history removed is gone.
                       Works that are held are not waited for.
  --for=healthy        the same at the head of --ref, and every object is healthy

On a timeout it prints what is missing and exits 5.`,
		Example: `  fairlead wait --for=position=HEAD --kubeconfig members.yaml
  fairlead wait --for=position=v1.4.0 -c wave=1 --timeout 30m
  fairlead wait --for=healthy -c 'eu-*'
  fairlead wait deploy/web -n shop --for=healthy`,
		Args: arguments(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.wait(cmd, args) },
	}
	f.bind(cmd.Flags())
	f.members.bind(cmd.Flags())
	f.record.bind(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&f.what, "for", "", "condition to wait for: position=REF or healthy")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "only objects in this namespace (default: all)")
	flags.StringSliceVarP(&f.clusters, "cluster", "c", nil, "only these clusters: names, globs, or wave=N")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long to wait; 0 checks once")
	return cmd
}

func (f *waitFlags) wait(cmd *cobra.Command, args []string) error {
	position, isPosition := strings.CutPrefix(f.what, "position=")
	if f.what != "healthy" && (!isPosition || position == "") {
		return usagef("--for %q must be position=REF or healthy", f.what)
	}

	if len(args) > 0 {
		asked, err := parseReference(args, f.namespace)
		if err != nil {
			return err
		}
		f.asked = &asked
	}

	record, err := f.record.open(&f.fleetFlags)
	if err != nil {
		return err
	}
	defer record.Close()

	branch := f.ref
	if isPosition {
		f.ref = position
	}
	ctx, end := cmd.Context(), time.Now().Add(f.timeout)
	states, err := f.open(ctx)
	if err != nil {
		return err
	}
	m, err := f.members.open()
	if err != nil {
		return err
	}
	seen := status.Open(states, m, time.Now)
	if err := seen.Fold(f.ref, f.choose); err != nil {
		return err
	}
	if err := unreachable(seen); err != nil {
		return err
	}
	if len(seen.Clusters) == 0 {
		return fmt.Errorf("the fleet has no clusters to wait for at %s", source.Short(seen.Head))
	}

	warn(cmd.ErrOrStderr(), &seen.State)

	w := &waiter{Wait: &status.Wait{Fleet: seen, Position: isPosition, Branch: branch}, flags: f, out: cmd.OutOrStdout()}
	if f.asked != nil || f.namespace != "" {
		w.Only = f.waitsFor
	}
	for {
		if err := w.look(ctx); err != nil {
			return err
		}
		switch {
		case len(w.Missing) == 0:
			_, err := printable.Fprintf(w.out, "ok: %s %s\n", ofClusters(len(w.Clusters), len(w.Clusters)), w.goal())
			return err
		case !time.Now().Add(inspectInterval).Before(end):
			notes(cmd.ErrOrStderr(), explain(w.Fleet, record))
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
		if err := w.Fold(f.ref, f.choose); err != nil {
			return err
		}
		if err := unreachable(w.Fleet); err != nil {
			return err
		}
	}
}

// choose returns the clusters to wait for: of one object, those that it is sent to.
func (f *waitFlags) choose(s *propagate.State) ([]*fleet.Cluster, error) {
	clusters, err := chosen(s, f.clusters)
	if err != nil || f.asked == nil {
		return clusters, err
	}

	ids := status.Named(s, *f.asked, func(name string) bool {
		return slices.ContainsFunc(clusters, func(c *fleet.Cluster) bool { return c.Name == name })
	})
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s is sent to none of the clusters; 'fairlead why %s' says why", f.asked, f.asked)
	}
	if f.id, err = f.asked.One(ids); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(clusters, func(c *fleet.Cluster) bool { return !status.Has(s, f.id, c.Name) }), nil
}

// waitsFor reports whether an object is one to wait for.
func (f *waitFlags) waitsFor(id object.ID) bool {
	return (f.asked == nil || id == f.id) && (f.namespace == "" || id.Namespace == f.namespace)
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
	flags *waitFlags
	out   io.Writer
}

// mostNamed is how many clusters are named where many are meant.
const mostNamed = 3

// named lists clusters, or the first of many.
func named(clusters []string) string {
	if more := len(clusters) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(clusters[:mostNamed], ", "), more)
	}
	return strings.Join(clusters, ", ")
}

// look inspects the clusters once, and prints which have arrived since: a line for each
// of a few, and one for many.
func (w *waiter) look(ctx context.Context) error {
	arrivals, err := w.Look(ctx)
	if err != nil {
		return err
	}

	now := time.Now().Format(time.TimeOnly)
	if len(arrivals) > mostNamed {
		var clusters []string
		for _, a := range arrivals {
			clusters = append(clusters, a.Cluster)
		}
		_, err := printable.Fprintf(w.out, "%s %s are %s (%s)\n", now, named(clusters), w.goal(), ofClusters(len(w.Clusters)-len(w.Missing), len(w.Clusters)))
		return err
	}
	for _, a := range arrivals {
		what := report.Count(a.Objects, "object")
		if w.flags.asked != nil {
			what = object.ShortName(w.flags.id)
		}
		if _, err := printable.Fprintf(w.out, "%s %s is %s (%s)\n", now, a.Cluster, w.goal(), what); err != nil {
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

// overdue prints what is missing at the timeout. Clusters that lack the same share a
// line.
func (w *waiter) overdue(stderr io.Writer, timeout time.Duration) {
	err := w.CountBehind()
	if err != nil {
		printable.Fprintf(stderr, "fairlead: %v\n", err)
	}
	printable.Fprintf(stderr, "fairlead: not there after %s: %s %s\n", timeout, ofClusters(len(w.Clusters)-len(w.Missing), len(w.Clusters)), w.goal())

	clusters := map[string][]string{}
	var order []string
	add := func(what, cluster string) {
		if clusters[what] == nil {
			order = append(order, what)
		}
		clusters[what] = append(clusters[what], cluster)
	}
	lines, silent := member.WithoutContext(w.Silent, len(w.Clusters))
	for _, line := range lines {
		printable.Fprintf(stderr, "  %s\n", line)
	}
	for _, c := range w.Clusters {
		cells, missing := w.Missing[c.Name]
		switch {
		case !missing, w.Silent[c.Name] != nil && silent[c.Name] == nil:
			continue
		case w.Silent[c.Name] != nil:
			add(status.Cause(w.Silent[c.Name]), c.Name)
			continue
		}
		for _, cell := range cells {
			add(object.ShortName(cell.Object)+": "+lacks(cell), c.Name)
		}
	}

	for _, what := range order[:min(len(order), most)] {
		printable.Fprintf(stderr, "  %s: %s\n", named(clusters[what]), what)
	}
	if more := len(order) - most; more > 0 {
		printable.Fprintf(stderr, "  and %d more\n", more)
	}
}

// most is how many lines tell what is missing.
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

	if c.Failure != "" {
		why[len(why)-1] += ": " + c.Failure
	}

	return strings.Join(slices.DeleteFunc(why, func(s string) bool { return s == "" }), ", ")
}

func ofClusters(n, all int) string {
	return fmt.Sprintf("%d of %s", n, report.Count(all, "cluster"))
}
