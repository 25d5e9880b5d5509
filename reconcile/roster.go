// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/fleet"
)

// roster has the members of the fleet. Only the round writes it, and reads it without
// the lock; Status reads it from any goroutine.
type roster struct {
	mu        sync.Mutex
	members   map[string]*fleet.Cluster
	terms     map[string]int   // Shares.Term of the members, as they were connected to
	unreached map[string]error // clusters that Options.Members cannot connect to
	ready     map[string]readiness
	again     map[string]bool // clusters that are to be connected to again; "" is all
}

// readiness is the observed readiness of a cluster, and since when, by Clock.Elapsed.
type readiness struct {
	status metav1.ConditionStatus
	since  time.Duration
}

func newRoster() roster {
	return roster{members: map[string]*fleet.Cluster{}, terms: map[string]int{}, unreached: map[string]error{}, ready: map[string]readiness{}, again: map[string]bool{}}
}

func (r *roster) setReached(name string, c *fleet.Cluster, term int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[name], r.terms[name] = c, term
	delete(r.unreached, name)
}

func (r *roster) setUnreached(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unreached[name] = err
}

func (r *roster) setReady(name string, is readiness) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready[name] = is
}

// forgetReady drops what was observed of clusters.
func (r *roster) forgetReady(drop func(cluster string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.ready, func(name string, _ readiness) bool { return drop(name) })
}

// forget drops the clusters that left the fleet.
func (r *roster) forget(left func(name string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.members, func(name string, _ *fleet.Cluster) bool { return left(name) })
	maps.DeleteFunc(r.terms, func(name string, _ int) bool { return left(name) })
	maps.DeleteFunc(r.unreached, func(name string, _ error) bool { return left(name) })
}
