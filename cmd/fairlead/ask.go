// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
)

// memberFlags are those of the look commands that ask the members.
type memberFlags struct {
	kubeconfig string
	timeout    time.Duration
}

func (f *memberFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "file with a context for each cluster that is asked, named like it (default: where kubectl looks)")
	flags.DurationVar(&f.timeout, "request-timeout", 10*time.Second, "how long a cluster has to answer")
}

// askers is how many members are asked at once.
const askers = 32

// asking reaches the members of a fleet.
type asking struct {
	memberFlags
	contexts *dispatch.Contexts

	mu      sync.Mutex
	readers map[string]*dispatch.Reader
}

func (f *memberFlags) open() (*asking, error) {
	if f.timeout <= 0 {
		return nil, usagef("--request-timeout must be more than 0")
	}
	contexts, err := dispatch.LoadContexts(f.kubeconfig)
	if err != nil {
		return nil, err
	}
	return &asking{memberFlags: *f, contexts: contexts, readers: map[string]*dispatch.Reader{}}, nil
}

// each puts a question to clusters, many at once. It returns why those gave no
// answer that did not; none of them ends the command.
func (a *asking) each(ctx context.Context, clusters []*propagate.Cluster, question func(context.Context, string, *dispatch.Reader) error) map[string]error {
	var mu sync.Mutex
	failed := map[string]error{}
	var all sync.WaitGroup
	slots := make(chan struct{}, askers)
	for _, c := range clusters {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := dispatch.Within(ctx, a.timeout)
			defer cancel()
			r, err := a.reader(c)
			if err == nil {
				err = question(ctx, c.Name, r)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[c.Name] = err
			}
		})
	}
	all.Wait()
	return failed
}

// reader is the way to ask a cluster; it is found once.
func (a *asking) reader(c *propagate.Cluster) (*dispatch.Reader, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.readers[c.Name]; r != nil {
		return r, nil
	}
	config, err := a.contexts.For(c.Name)
	if err != nil && c.Spec.SyncMode == clusterv1alpha1.Pull {
		err = fmt.Errorf("it is a pull cluster, and to ask it: %w", err)
	}
	if err != nil {
		return nil, &noWay{err}
	}
	r, err := dispatch.NewReader(config)
	if err != nil {
		return nil, &noWay{err}
	}
	a.readers[c.Name] = r
	return r, nil
}

// noWay is why a cluster could not even be asked: that is not the cluster's.
type noWay struct{ err error }

func (e *noWay) Error() string { return e.err.Error() }
func (e *noWay) Unwrap() error { return e.err }

// nobodyAsked is the error of a command that has no way to any cluster.
func nobodyAsked(asked int, failed map[string]error) error {
	if asked == 0 || len(failed) < asked {
		return nil
	}
	for _, err := range failed {
		if way := (*noWay)(nil); !errors.As(err, &way) {
			return nil
		}
	}
	return errors.New("no cluster could be asked: --kubeconfig needs a context for each, named like it")
}

// silent says on stderr, one line for each, which clusters gave no answer.
func silent(stderr io.Writer, failed map[string]error) {
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		fmt.Fprintf(stderr, "fairlead: %s: %s\n", name, cause(failed[name]))
	}
}

// cause is why a member did not answer a question.
func cause(err error) string {
	var e *dispatch.Error
	switch {
	case !errors.As(err, &e):
		return oneLine(err.Error())
	case e.Reason == dispatch.Unreachable:
		return "it does not answer: " + oneLine(e.Err.Error())
	}
	return oneLine(e.Err.Error())
}

// oneLine is what a cluster says, as it can be shown: it may hold anything,
// also what moves a terminal's cursor.
func oneLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text))
}
