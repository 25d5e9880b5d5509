// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	fluxcontroller "github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/patch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller/webhook"
)

// reconciler starts, changes and drains the followers, and writes what they report.
type reconciler struct {
	client  client.Client
	reader  client.Reader // of the API server, not of the cache
	opt     Options
	metrics fluxcontroller.Metrics
	recorders

	*followers
	watchSources func()
}

// Reconcile brings the follower of a Fleet to its spec, and its status to what the
// follower has seen.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	began := time.Now()
	var f v1alpha1.Fleet
	if err := r.client.Get(ctx, req.NamespacedName, &f); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.remove(req.NamespacedName) // somebody has taken the finalizer away
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	defer r.metrics.RecordDuration(ctx, &f, began)
	if !f.DeletionTimestamp.IsZero() {
		return r.drain(ctx, &f)
	}
	if !controllerutil.ContainsFinalizer(&f, v1alpha1.Finalizer) {
		// Nothing is begun before it can be drained.
		before := f.DeepCopy()
		controllerutil.AddFinalizer(&f, v1alpha1.Finalizer)
		if err := r.client.Patch(ctx, &f, client.MergeFrom(before), client.FieldOwner(Name)); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.metrics.RecordSuspend(ctx, &f, f.Spec.Suspend)
	if f.Spec.Suspend {
		r.remove(req.NamespacedName)
		return ctrl.Result{}, nil
	}

	return r.follow(ctx, &f)
}

// drain ends the follower of a Fleet that is deleted, and lets it go. Nothing on any
// member is deleted.
func (r *reconciler) drain(ctx context.Context, f *v1alpha1.Fleet) (ctrl.Result, error) {
	name := client.ObjectKeyFromObject(f)
	r.remove(name)
	r.forget(name)
	if !controllerutil.ContainsFinalizer(f, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	if held, err := r.heldElsewhere(ctx, name); err != nil || held {
		return ctrl.Result{RequeueAfter: time.Second}, err
	}

	before := f.DeepCopy()
	controllerutil.RemoveFinalizer(f, v1alpha1.Finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.client.Patch(ctx, f, client.MergeFrom(before), client.FieldOwner(Name)))
}

// follow has a Fleet followed as it is specified now, and reports.
func (r *reconciler) follow(ctx context.Context, f *v1alpha1.Fleet) (result ctrl.Result, err error) {
	before := f.DeepCopy()
	patcher := patch.NewSerialPatcher(f, r.client)
	defer func() {
		r.metrics.RecordReadiness(ctx, f)
		if of := r.follower(client.ObjectKeyFromObject(f)); of != nil && !of.speaks() {
			return
		}
		failed := patcher.Patch(ctx, f, patch.WithOwnedConditions{Conditions: ownedConditions}, patch.WithForceOverwriteConditions{}, patch.WithFieldOwner(r.writer()))
		if failed == nil {
			r.announceReady(before, f)
		}
		if err = errors.Join(err, client.IgnoreNotFound(failed)); err != nil {
			result = ctrl.Result{}
		}
	}()

	name := client.ObjectKeyFromObject(f)
	version := r.version(f)
	if follower := r.upToDate(name, version); follower != nil {
		return r.report(ctx, f, follower), nil
	}
	own := r.secretsOf(name)
	s, err := r.resolve(ctx, f, own)
	var stalled *StalledError
	switch {
	case errors.As(err, &stalled):
		r.remove(name)
		reportStalled(f, stalled)
		return ctrl.Result{}, nil
	case err != nil:
		// The members are still served with what is known.
		reportFailed(f, reasonOf(err), err)
		return ctrl.Result{}, err
	}

	if s.notReviewed != nil {
		r.event(f, "", corev1.EventTypeWarning, ReasonPullRequestsFailed, shortened(s.notReviewed.Error()))
	}
	follower, begun := r.ensure(name, s, own, version)
	if begun || conditions.Has(f, meta.StalledCondition) {
		reportBegun(f, "Reading the history of "+s.repo)
	}
	return r.report(ctx, f, follower), nil
}

// report passes on a request to look now, and writes what the follower has seen.
func (r *reconciler) report(ctx context.Context, f *v1alpha1.Fleet, follower *follower) ctrl.Result {
	if token, ok := meta.ReconcileAnnotationValue(f.GetAnnotations()); ok && token != f.Status.LastHandledReconcileAt {
		follower.ask(token)
	}

	f.Status.WebhookPath = ""
	if h := follower.hook(); h.Token != "" {
		f.Status.WebhookPath = webhook.Path(h.Token, h.Namespace, h.Name)
	}

	again := r.shareStatus(ctx, f, follower)
	seen := follower.last()
	if !seen.opened && seen.err == nil {
		return ctrl.Result{RequeueAfter: again} // it is still opening
	}
	report(f, &seen, time.Now())
	return ctrl.Result{RequeueAfter: soonest(r.announce(f, follower), again)}
}

// soonest is the shorter of two waits; 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// announce makes events of what has happened, once all is quiet. It returns when to try
// again, 0 if there is nothing left.
func (r *reconciler) announce(f *v1alpha1.Fleet, of *follower) time.Duration {
	if text := of.takeNotReviewed(); text != "" {
		r.event(f, "", corev1.EventTypeWarning, ReasonPullRequestsFailed, text)
	}
	news, branch, wait := of.takeNews(r.opt.steady)
	for _, a := range news.announce() {
		r.event(f, branch+"@sha1:"+a.commit, a.kind, a.reason, a.message)
	}
	return wait
}

// isSource reports whether a Fleet follows a GitRepository.
func isSource(f *v1alpha1.Fleet, name types.NamespacedName) bool {
	from, ok := sourceOf(f)
	return ok && from == name
}
