// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
)

const (
	// lookTime is how long a member has to answer when it is looked at.
	lookTime = 10 * time.Second
	// looks is how many requests look at members at once.
	looks = 32
)

// observe takes in what can be seen of the members, under the gate Failover
// or while an eviction is under way; otherwise nothing is asked. The members
// are asked in the background, so that a silent one holds no commit up: a
// round takes in what was found since the last.
func (l *Loop) observe(ctx context.Context, wait bool) error {
	if !l.state.Watched() {
		l.looking = nil
		return nil
	}
	if l.looking == nil {
		l.looking = l.look(ctx)
	}
	var found sighting
	select {
	case found = <-l.looking:
	default:
		if !wait {
			return nil
		}
		found = <-l.looking
	}
	l.looking = nil
	next := propagate.Observe(l.state, propagate.Observations{
		At:     l.moments.now(),
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

// sighting is what one look at the members found.
type sighting struct {
	ready  map[string]metav1.ConditionStatus
	health map[propagate.Place]propagate.Health
}

// look asks every member whether it is ready, and about the works whose
// health decides something.
func (l *Loop) look(ctx context.Context) <-chan sighting {
	state := l.state
	found := sighting{map[string]metav1.ConditionStatus{}, map[propagate.Place]propagate.Health{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, looks)
	ask := func(cluster string, question func(context.Context, dispatch.Observer)) {
		o := l.dispatcher.Observer(cluster)
		if o == nil {
			return
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, lookTime)
			defer cancel()
			question(ctx, o)
		})
	}
	for cluster := range state.Snapshot.Clusters.All() {
		ask(cluster, func(ctx context.Context, o dispatch.Observer) {
			ready, err := o.Ready(ctx)
			mu.Lock()
			defer mu.Unlock()
			found.ready[cluster] = condition(ready, err)
		})
	}
	for _, p := range state.Watches() {
		// What has not got its content yet says nothing about it.
		mu.Lock()
		found.health[p] = propagate.UnknownHealth
		mu.Unlock()
		ref, ok := standing(&state, p)
		if !ok || !l.dispatcher.Acknowledged(p.Cluster, p.ID) {
			continue
		}
		ask(p.Cluster, func(ctx context.Context, o dispatch.Observer) {
			object, err := o.Read(ctx, ref)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && object != nil {
				found.health[p], _ = state.Health(object) // unknown, where the script fails
			}
		})
	}
	done := make(chan sighting, 1)
	go func() {
		all.Wait()
		done <- found
	}()
	return done
}

// standing is where a work stands that was released to its cluster.
func standing(s *propagate.State, p propagate.Place) (dispatch.Ref, bool) {
	w := s.Bindings.At(p.Key()).Work(p.Cluster)
	if w == nil || w.Released == nil {
		return dispatch.Ref{}, false
	}
	gv, err := schema.ParseGroupVersion(w.Released.APIVersion)
	return dispatch.Ref{GroupVersionKind: gv.WithKind(p.Kind), Namespace: p.Namespace, Name: p.Name}, err == nil
}

func condition(ready bool, err error) metav1.ConditionStatus {
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case err != nil:
		return metav1.ConditionUnknown
	case ready:
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// steady are the clusters that have been as they are for long enough: one
// that comes and goes is believed neither way. The first look is believed.
func (l *Loop) steady(ready map[string]metav1.ConditionStatus) map[string]metav1.ConditionStatus {
	now, believed := l.opt.Elapsed(), map[string]metav1.ConditionStatus{}
	for cluster, status := range ready {
		if status == "" {
			continue
		}
		was, seen := l.ready[cluster]
		if !seen || was.status != status {
			was = readiness{status, now}
			l.ready[cluster] = was
		}
		if !seen && status == metav1.ConditionTrue || now-was.since >= l.opt.Steady {
			believed[cluster] = status
		}
	}
	return believed
}

// readiness is how a cluster was seen, and since when, as Elapsed counts.
type readiness struct {
	status metav1.ConditionStatus
	since  time.Duration
}

// confirmed are the objects that others wait for, and that are gone.
func (l *Loop) confirmed() (gone []propagate.Place) {
	for _, p := range l.state.Leaving() {
		if l.dispatcher.Gone(p.Cluster, p.ID) {
			gone = append(gone, p)
		}
	}
	return gone
}
