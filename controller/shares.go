// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/lease/hub"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/reconcile/sharing"
)

// leavePatience is how long a replica that ends tries to give back its Leases.
const leavePatience = 10 * time.Second

// leasesOf returns the Leases of a namespace. What else is asked of the API server must
// not hold up a renewal, so they have a client of their own, without a limit.
func leasesOf(config *rest.Config, namespace string) (hub.Leases, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Leases(namespace), nil
}

// shardsOf is how many parts the clusters of a Fleet are divided into.
func shardsOf(f *v1alpha1.Fleet) int {
	if s := f.Spec.Sharding; s != nil && s.Shards != nil {
		return int(*s.Shards)
	}
	return v1alpha1.DefaultShards
}

// join begins to share the clusters with other replicas; nil without --enable-sharding.
// leave gives back what is held, once the loop is closed.
func (f *follower) join(s settings) (replica *sharing.Replica, leave func()) {
	if f.leases == nil {
		return nil, func() {}
	}

	replica = sharing.New(sharing.Options{
		Leases: f.leases, Fleet: f.name.String(), Pod: f.opt.Pod, Shards: s.shards, Rules: f.opt.rules,
		Changed: f.sharesChanged, Failed: func(err error) { f.log.Error(nil, printable.Line(err.Error())) },
	})
	f.members.replica = replica
	f.replica.Store(replica)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = replica.Run(ctx) // it ends when it is stopped
	}()

	return replica, func() {
		waiting, done := context.WithTimeout(context.Background(), leavePatience)
		defer done()
		if err := replica.Stop(waiting); err != nil {
			f.log.Info("the Leases of its shards were not given back in time, and expire")
		}
		f.replica.Store(nil)
		cancel()
		<-ended
	}
}

// sharesChanged has the loop begin a round, and the status reported.
func (f *follower) sharesChanged() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
	f.tell()
}

// speaks reports whether this replica says how the Fleet is: the one that leads, or each
// while none of them can read the repository.
func (f *follower) speaks() bool {
	if f.leads() {
		return true
	}
	replica := f.replica.Load()
	return replica == nil || replica.Live() == 0
}

// leads reports whether this replica does what only one does for the Fleet.
func (f *follower) leads() bool {
	if f.leases == nil {
		return true
	}
	replica := f.replica.Load()
	return replica != nil && replica.Leads()
}
