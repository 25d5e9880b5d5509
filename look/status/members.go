// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/printable"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
)

// inFlight is how many members are queried at once.
const inFlight = 32

// Members connects to the members of a fleet.
type Members struct {
	contexts *push.Contexts
	timeout  time.Duration

	mu      sync.Mutex
	readers map[string]*push.Reader
}

// NewMembers connects through the contexts of a kubeconfig, each named after its
// cluster. timeout is how long a member has to answer.
func NewMembers(contexts *push.Contexts, timeout time.Duration) *Members {
	return &Members{contexts: contexts, timeout: timeout, readers: map[string]*push.Reader{}}
}

// Namespace returns the namespace of a cluster's context.
func (m *Members) Namespace(cluster string) string { return m.contexts.Namespace(cluster) }

// Each calls question for clusters, many at once, and returns the errors by cluster.
func (m *Members) Each(ctx context.Context, clusters []*fleet.Cluster, question func(context.Context, string, *push.Reader) error) map[string]error {
	var mu sync.Mutex
	failed := map[string]error{}
	var all sync.WaitGroup
	slots := make(chan struct{}, inFlight)
	for _, c := range clusters {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := push.Within(ctx, m.timeout)
			defer cancel()
			r, err := m.Reader(c)
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

// Reader returns the reader of a cluster. It is created once.
func (m *Members) Reader(c *fleet.Cluster) (*push.Reader, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.readers[c.Name]; r != nil {
		return r, nil
	}

	config, err := m.contexts.For(c.Name)
	if err != nil && c.Spec.SyncMode == clusterv1alpha1.Pull {
		err = fmt.Errorf("it is a pull cluster, and to query it: %w", err)
	}
	if err != nil {
		return nil, &unreachable{err}
	}
	r, err := push.NewReader(config)
	if err != nil {
		return nil, &unreachable{err}
	}

	m.readers[c.Name] = r
	return r, nil
}

// unreachable is the error of a cluster that there is no way to connect to: its
// context is missing or invalid.
type unreachable struct{ err error }

func (e *unreachable) Error() string { return e.err.Error() }
func (e *unreachable) Unwrap() error { return e.err }

// NoneAsked returns an error if there is no way to connect to any of the clusters,
// else nil.
func NoneAsked(asked int, failed map[string]error) error {
	if asked == 0 || len(failed) < asked {
		return nil
	}

	for _, err := range failed {
		if way := (*unreachable)(nil); !errors.As(err, &way) {
			return nil
		}
	}

	lines, _ := member.WithoutContext(failed, asked)
	if len(lines) == 1 {
		return fmt.Errorf("no cluster could be asked: %s; a context is named like its cluster", lines[0])
	}
	return errors.New("no cluster could be asked: --kubeconfig needs a context for each, named like it")
}

// Cause returns the reason of a member's error, in one line.
func Cause(err error) string {
	var e *member.Error
	switch {
	case !errors.As(err, &e):
		return OneLine(err.Error())
	case e.Reason == member.Unreachable:
		return "it does not answer: " + OneLine(e.Err.Error())
	}
	return OneLine(e.Err.Error())
}

// OneLine makes a text from a cluster safe to print.
func OneLine(text string) string { return strings.TrimSpace(printable.Line(text)) }
