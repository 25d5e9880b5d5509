// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
)

// memberFlags are the flags of the look commands that query the members.
type memberFlags struct {
	kubeconfig string
	timeout    time.Duration
}

func (f *memberFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig with a context named after each cluster (default: the one that kubectl uses)")
	flags.DurationVar(&f.timeout, "request-timeout", 10*time.Second, "how long to wait for the answer of a cluster")
}

func (f *memberFlags) open() (*status.Members, error) {
	if f.timeout <= 0 {
		return nil, usagef("--request-timeout must be greater than 0")
	}
	contexts, err := push.LoadContexts(f.kubeconfig)
	if err != nil {
		return nil, err
	}
	return status.NewMembers(contexts, f.timeout), nil
}

// inspectInterval is how often the clusters are inspected; the tests shorten it.
var inspectInterval = 2 * time.Second

// status folds the history up to --ref and finds the clusters to inspect.
func (f *lookFlags) status(ctx context.Context, members *memberFlags, only []string) (*status.Fleet, error) {
	states, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	m, err := members.open()
	if err != nil {
		return nil, err
	}

	fleet := status.Open(states, m, time.Now)
	return fleet, fleet.Fold(f.ref, choosing(only))
}

// notes prints notes on stderr, one line each.
func notes(stderr io.Writer, lines []string) {
	for _, line := range lines {
		printable.Fprintf(stderr, "fairlead: %s\n", line)
	}
}

// silent reports on stderr, one line each, the clusters of all that gave no answer.
func silent(stderr io.Writer, failed map[string]error, all int) {
	lines, failed := member.WithoutContext(failed, all)
	notes(stderr, lines)
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		printable.Fprintf(stderr, "fairlead: %s: %s\n", name, status.Cause(failed[name]))
	}
}

// choosing returns a function that finds the clusters of -c in a state.
func choosing(words []string) func(*propagate.State) ([]*fleet.Cluster, error) {
	return func(s *propagate.State) ([]*fleet.Cluster, error) { return chosen(s, words) }
}

// chosen returns the clusters of the fleet that words select, as [status.Choose] does.
func chosen(s *propagate.State, words []string) ([]*fleet.Cluster, error) {
	clusters, err := status.Choose(s, words)
	if word := (*status.WordError)(nil); errors.As(err, &word) {
		return nil, &usageError{err}
	}
	return clusters, err
}
