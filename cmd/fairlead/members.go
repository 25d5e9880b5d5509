// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
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

// chosen returns the clusters of the fleet that words select: by name, by glob,
// and by wave=N of any policy's waves. Without words it returns all.
func chosen(s *propagate.State, words []string) ([]*fleet.Cluster, error) {
	names := map[string]bool{}
	for _, word := range words {
		found, err := clustersCalled(s, word)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			names[name] = true
		}
	}

	var clusters []*fleet.Cluster
	for c := range s.Snapshot.Clusters.Values() {
		if len(words) == 0 || names[c.Name] {
			clusters = append(clusters, c)
		}
	}

	return clusters, nil
}

func clustersCalled(s *propagate.State, word string) (found []string, err error) {
	if text, ok := strings.CutPrefix(word, "wave="); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, usagef("-c %s: waves are numbered from 1", word)
		}
		if found = inWave(s, n); len(found) == 0 {
			return nil, fmt.Errorf("-c: no policy has a wave %d", n)
		}
		return found, nil
	}
	if _, ok := s.Snapshot.Clusters.Get(word); ok {
		return []string{word}, nil
	}

	for c := range s.Snapshot.Clusters.Values() {
		ok, err := path.Match(word, c.Name)
		if err != nil {
			return nil, usagef("-c %q: %w", word, err)
		}
		if ok {
			found = append(found, c.Name)
		}
	}

	if len(found) == 0 && strings.ContainsAny(word, "*?[") {
		return nil, fmt.Errorf("-c: no cluster of the fleet matches %q", word)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("-c: the fleet has no cluster %q", word)
	}

	return found, nil
}

// inWave returns the clusters of wave n of any policy.
func inWave(s *propagate.State, n int) (names []string) {
	for p := range s.Snapshot.Policies.Values() {
		if waves := s.Snapshot.WavesOf(p); n <= len(waves) {
			names = append(names, waves[n-1]...)
		}
	}
	return names
}
