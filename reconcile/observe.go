// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

const (
	// observeTimeout is how long a member has to answer when it is observed.
	observeTimeout = 10 * time.Second
	// observers is how many requests to observe members run at once.
	observers = 32
)

// observe takes in what is observed of the members, under the gate Failover or during
// an eviction; otherwise it sends no requests. Members are observed in the background,
// so that a silent one does not hold up commits: a round takes in what was found since
// the last one.
func (l *Loop) observe(ctx context.Context, wait bool) error {
	if !l.state.Watched() {
		l.observing = nil
		return nil
	}

	found := l.found(ctx, wait)
	if l.opt.Shares != nil {
		return l.share(ctx, found)
	}
	if found == nil {
		return nil
	}

	next := propagate.Observe(l.state, propagate.Observations{
		At:     l.moment(),
		Ready:  l.steady(found.ready),
		Health: found.health,
		Gone:   l.confirmed(),
	})
	if next.Seen == l.state.Seen && len(changedKeys(&l.state, &next)) == 0 {
		return nil
	}

	l.state = next
	return l.save()
}

// found returns what was observed since it was asked last, and begins to observe again;
// nil if nothing is known yet, unless it is to wait.
func (l *Loop) found(ctx context.Context, wait bool) *observation {
	if l.observing == nil {
		l.observing = l.startObserving(ctx)
	}
	if wait {
		found := <-l.observing
		l.observing = nil
		return &found
	}

	select {
	case found := <-l.observing:
		l.observing = nil
		return &found
	default:
		return nil
	}
}

// observation is what was observed of the members at one time.
type observation struct {
	ready  map[string]metav1.ConditionStatus
	health map[propagate.Place]propagate.Health
	of     map[propagate.Place]object.Digest // the content whose health that is
}

// startObserving reads the readiness of every member, and the health of the works on
// which something depends.
func (l *Loop) startObserving(ctx context.Context) <-chan observation {
	state := l.state
	found := observation{map[string]metav1.ConditionStatus{}, map[propagate.Place]propagate.Health{}, map[propagate.Place]object.Digest{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, observers)
	ask := func(cluster string, question func(context.Context, member.Observer)) {
		o := l.dispatcher.Observer(cluster)
		if o == nil {
			return
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, observeTimeout)
			defer cancel()
			question(ctx, o)
		})
	}
	for cluster, c := range state.Snapshot.Clusters.All() {
		if !l.owns(c) {
			continue
		}
		ask(cluster, func(ctx context.Context, o member.Observer) {
			ready, err := o.Ready(ctx)
			mu.Lock()
			defer mu.Unlock()
			found.ready[cluster] = condition(ready, err)
		})
	}

	for _, p := range state.Watches() {
		if c := state.Snapshot.Clusters.At(p.Cluster); c == nil || !l.owns(c) {
			continue
		}
		// The health of an object without its new content says nothing about that.
		mu.Lock()
		found.health[p] = propagate.UnknownHealth
		mu.Unlock()
		ref, ok := refOf(&state, p)
		if !ok || !l.dispatcher.Acknowledged(p.Cluster, p.ID) {
			continue
		}
		ask(p.Cluster, func(ctx context.Context, o member.Observer) {
			object, err := o.Read(ctx, ref)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && object != nil {
				found.health[p], _ = state.Health(object) // unknown, where the script fails
				found.of[p] = released(&state, p)
			}
		})
	}

	done := make(chan observation, 1)
	go func() {
		all.Wait()
		done <- found
	}()

	return done
}

// released is the content of a work that was released to its cluster; zero without one.
func released(s *propagate.State, p propagate.Place) object.Digest {
	w := s.Bindings.At(p.Key()).Work(p.Cluster)
	if w == nil || w.Released == nil {
		return object.Digest{}
	}
	return w.Released.Digest
}

// refOf returns the reference of a work that was released to its cluster.
func refOf(s *propagate.State, p propagate.Place) (member.Ref, bool) {
	w := s.Bindings.At(p.Key()).Work(p.Cluster)
	if w == nil || w.Released == nil {
		return member.Ref{}, false
	}
	gv, err := schema.ParseGroupVersion(w.Released.APIVersion)
	return member.Ref{GroupVersionKind: gv.WithKind(p.Kind), Namespace: p.Namespace, Name: p.Name}, err == nil
}

func condition(ready bool, err error) metav1.ConditionStatus {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, member.Throttled):
		return "" // it was not queried: its readiness is unchanged
	case err != nil:
		return metav1.ConditionUnknown
	case ready:
		return metav1.ConditionTrue
	}

	return metav1.ConditionFalse
}

// steady returns the readiness of the clusters for which it has not changed for long
// enough, so that a flapping cluster has no effect. A first observation of Ready counts
// at once.
func (l *Loop) steady(ready map[string]metav1.ConditionStatus) map[string]metav1.ConditionStatus {
	now, believed := l.opt.Clock.Elapsed(), map[string]metav1.ConditionStatus{}
	for cluster, status := range ready {
		if status == "" {
			continue
		}
		was, seen := l.ready[cluster]
		if !seen || was.status != status {
			was = readiness{status, now}
			l.setReady(cluster, was)
		}
		if !seen && status == metav1.ConditionTrue || now-was.since >= l.opt.Steady {
			believed[cluster] = status
		}
	}

	return believed
}

// confirmed returns the objects that are gone, of those that others wait for.
func (l *Loop) confirmed() (gone []propagate.Place) {
	for _, p := range l.state.Leaving() {
		if l.dispatcher.Gone(p.Cluster, p.ID) {
			gone = append(gone, p)
		}
	}
	return gone
}
