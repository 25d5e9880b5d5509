// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	coordinationv1api "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/lease/hub"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/reconcile/sharing"
	"github.com/fairlead/fairlead/reconcile/sharing/claims"
)

// leavePatience is how long a replica that ends tries to give back its Leases.
const leavePatience = 10 * time.Second

// shares is where the replicas write which of them has what.
type shares struct {
	leases     hub.Leases // nil if the replicas do not share the clusters
	configMaps sharing.ConfigMaps
}

// sharesOf returns the Leases and ConfigMaps of a namespace. What else is asked of the API
// server must not hold up a renewal, so they have a client of their own, without a limit.
func sharesOf(config *rest.Config, namespace string) (shares, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return shares{}, err
	}
	core, err := corev1.NewForConfig(config)
	if err != nil {
		return shares{}, err
	}
	return shares{leases.Leases(namespace), core.ConfigMaps(namespace)}, nil
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
	if f.shares.leases == nil {
		return nil, func() {}
	}

	replica = sharing.New(sharing.Options{
		Leases: f.shares.leases, ConfigMaps: f.shares.configMaps, Fleet: f.name.String(), Pod: f.opt.Pod, Shards: s.shards, Rules: f.opt.rules,
		Changed: f.sharesChanged, Failed: func(err error) { f.log.Error(nil, printable.Line(err.Error())) },
	})
	f.members.ways = replica
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
	select {
	case f.led <- struct{}{}:
	default:
	}
	f.tell()
}

// reviewWhileLeading is review, for as long as this replica leads.
func (f *follower) reviewWhileLeading(ctx context.Context, loop *reconcile.Loop, s settings) (end func()) {
	if f.shares.leases == nil {
		return f.review(ctx, loop, s)
	}

	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		endReview := func() {}
		defer func() { endReview() }()
		for reviews := false; ; {
			select {
			case <-ctx.Done():
				return
			case <-f.led:
			}
			leads := f.leads()
			switch {
			case leads && !reviews:
				endReview = f.review(ctx, loop, s)
			case !leads && reviews:
				endReview()
				endReview = func() {}
			}
			reviews = leads
		}
	}()
	return func() {
		cancel()
		<-ended
	}
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
	if f.shares.leases == nil {
		return true
	}
	replica := f.replica.Load()
	return replica != nil && replica.Leads()
}

// heldElsewhere reports whether another replica may still write to a cluster of a Fleet. If
// none does, its Leases are deleted, and then what the replicas have recorded.
func (fs *followers) heldElsewhere(ctx context.Context, fleet types.NamespacedName) (bool, error) {
	if fs.shares.leases == nil {
		return false, nil
	}

	selector := lease.LabelFleet + "=" + lease.FleetLabel(fleet.String())
	list, err := fs.shares.leases.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return false, err
	}
	for i := range list.Items {
		if isHeld(&list.Items[i], time.Now()) {
			return true, nil
		}
	}
	for i := range list.Items {
		if err := fs.shares.leases.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
			return false, err
		}
	}
	records, err := fs.shares.configMaps.List(ctx, metav1.ListOptions{LabelSelector: selector + "," + claims.LabelRecord})
	if err != nil {
		return false, err
	}
	for i := range records.Items {
		if err := fs.shares.configMaps.Delete(ctx, records.Items[i].Name, metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
			return false, err
		}
	}
	return false, nil
}

// isHeld reports whether a Lease has a holder that has renewed it lately, by the time of
// day: whoever has not for twice as long as it lasts is gone.
func isHeld(l *coordinationv1api.Lease, now time.Time) bool {
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || l.Spec.RenewTime == nil {
		return false
	}
	lasts := time.Minute
	if seconds := l.Spec.LeaseDurationSeconds; seconds != nil {
		lasts = 2 * time.Duration(*seconds) * time.Second
	}
	return now.Sub(l.Spec.RenewTime.Time) < lasts
}

// lookEverywhere has every replica look at a Fleet: a forge reports a push to one of them.
func (fs *followers) lookEverywhere(c client.Client, namespace, name string) {
	fs.look(namespace, name)
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	f := &v1alpha1.Fleet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	before := f.DeepCopy()
	f.Annotations = map[string]string{meta.ReconcileRequestAnnotation: time.Now().UTC().Format(time.RFC3339Nano)}
	if err := c.Patch(ctx, f, client.MergeFrom(before), client.FieldOwner(Name)); err != nil {
		fs.log.Error(nil, "the other replicas look later: "+shortened(err.Error()), "namespace", namespace, "name", name)
	}
}

// lookTimeout is how long it may take to have the other replicas look.
const lookTimeout = 5 * time.Second
