// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
)

// Reasons of conditions that Flux has no word for.
const (
	ReasonCommitRefused        = "CommitRefused"
	ReasonConfirmationRequired = "ConfirmationRequired"
	ReasonClustersNotReady     = "ClustersNotReady"
	ReasonVerificationFailed   = "VerificationFailed"
	ReasonAuthenticationFailed = "AuthenticationFailed"
	ReasonGitOperationFailed   = "GitOperationFailed"

	// ReasonShardUnowned is that of clusters to which nothing is sent, since no replica has
	// taken their shard.
	ReasonShardUnowned = "ShardUnowned"

	ReasonInvalidSpec  = "InvalidSpec"
	ReasonInvalidURL   = meta.InvalidURLReason
	ReasonAccessDenied = "AccessDenied"
)

const (
	// HeldCondition is True while a suspension keeps something back.
	HeldCondition = "Held"
	// DispatchingCondition is False while nothing is sent to some cluster, because no replica
	// holds its shard. Without --enable-sharding there is none.
	DispatchingCondition = "Dispatching"
)

// ownedConditions are those that the controller writes.
var ownedConditions = []string{meta.ReadyCondition, meta.ReconcilingCondition, meta.StalledCondition, HeldCondition, DispatchingCondition}

const (
	// mostNamed is how many clusters a message names.
	mostNamed = 3
	// mostMessage is how long the message of one failure may be.
	mostMessage = 300
)

// reportStalled writes that a Fleet cannot be reconciled before it changes.
func reportStalled(f *v1alpha1.Fleet, e *StalledError) {
	message := printable.Line(e.Error())
	conditions.Delete(f, meta.ReconcilingCondition)
	conditions.MarkStalled(f, e.Reason, "%s", message)
	conditions.MarkFalse(f, meta.ReadyCondition, e.Reason, "%s", message)
	f.Status.ObservedGeneration = f.Generation
}

// reportFailed writes that what a Fleet names cannot be read.
func reportFailed(f *v1alpha1.Fleet, reason string, err error) {
	message := printable.Line(err.Error())
	conditions.Delete(f, meta.StalledCondition)
	conditions.MarkReconciling(f, meta.ProgressingWithRetryReason, "%s", message)
	conditions.MarkFalse(f, meta.ReadyCondition, reason, "%s", message)
}

// reportBegun writes that a Fleet is reconciled for the first time, or with another spec.
func reportBegun(f *v1alpha1.Fleet, message string) {
	conditions.Delete(f, meta.StalledCondition)
	if f.Status.ObservedGeneration == f.Generation && conditions.Has(f, meta.ReadyCondition) {
		return // the controller has restarted, which is no news of the fleet
	}
	conditions.MarkReconciling(f, meta.ProgressingReason, "%s", message)
	conditions.MarkUnknown(f, meta.ReadyCondition, meta.ProgressingReason, "%s", message)
}

// report writes what was observed to the status of a Fleet.
func report(f *v1alpha1.Fleet, seen *observation, now time.Time) {
	if seen.handled != "" {
		f.Status.LastHandledReconcileAt = seen.handled
	}
	if !seen.opened {
		reportFailed(f, reasonOf(seen.err), seen.err)
		return
	}

	r := &seen.result
	view := newView(r, seen.branch)
	if seen.tally != nil {
		view.tally = *seen.tally
	} else if !seen.shared {
		f.Status.Shards, f.Status.Members = nil, nil
		conditions.Delete(f, DispatchingCondition)
	}
	f.Status.Clusters, f.Status.Works = view.clusters(), view.works()
	f.Status.Refusal = view.refusal()
	if r.Head != "" {
		f.Status.LastAttemptedRevision = view.revision(r.Head)
	}
	if view.arrived() && f.Status.LastAppliedRevision != view.revision(r.Accepted) {
		f.Status.LastAppliedRevision = view.revision(r.Accepted)
		f.Status.History.Upsert("sha1:"+r.Accepted, now, 0, meta.ReconciliationSucceededReason, map[string]string{"revision": view.revision(r.Accepted)})
	}

	reportHeld(f)
	conditions.Delete(f, meta.StalledCondition)
	err := r.Err
	if seen.err != nil {
		err = seen.err
	}
	view.ready(f, err)
}

// reportHeld writes the condition Held.
func reportHeld(f *v1alpha1.Fleet) {
	if f.Status.Works.Held == 0 {
		conditions.Delete(f, HeldCondition)
		return
	}
	conditions.MarkTrue(f, HeldCondition, meta.SuspendedReason, "%s held: `fairlead get holds` says by what, since when and until when", count(f.Status.Works.Held, "work"))
}

// view is a Result with how many clusters are in which state.
type view struct {
	*reconcile.Result
	branch string
	tally
}

// tally counts clusters by state.
type tally struct {
	all int
	of  map[reconcile.ClusterState]int
	// bad are those that failed, and then those that are unknown; perhaps not all of them.
	bad []string // "us-1: connection refused"
}

func newView(r *reconcile.Result, branch string) *view {
	return &view{r, branch, tallyOf(r)}
}

// tallyOf counts the members of a Result.
func tallyOf(r *reconcile.Result) tally {
	t := tally{all: len(r.Members), of: map[reconcile.ClusterState]int{}}
	var failed, unknown []string
	for _, m := range r.Members {
		s := m.State(r.Works[m.Cluster])
		t.of[s]++
		switch s {
		case reconcile.ClusterFailed:
			failed = append(failed, m.Cluster+": "+shortened(m.Failure().Error()))
		case reconcile.ClusterUnknown:
			unknown = append(unknown, m.Cluster+": "+shortened(m.Failure().Error()))
		}
	}
	t.bad = append(failed, unknown...)
	return t
}

// arrived reports whether every cluster has everything that is not held.
func (v *view) arrived() bool {
	return v.Accepted != "" && v.done() == v.all
}

// done counts the clusters that have everything that is not held.
func (t *tally) done() int {
	return t.of[reconcile.ClusterCurrent] + t.of[reconcile.ClusterHeld]
}

func (v *view) revision(commit string) string { return v.branch + "@sha1:" + commit }

func (t *tally) clusters() *v1alpha1.ClusterCounts {
	return &v1alpha1.ClusterCounts{
		Total:      t.all,
		Current:    t.of[reconcile.ClusterCurrent],
		InProgress: t.of[reconcile.ClusterInProgress],
		Held:       t.of[reconcile.ClusterHeld],
		Pending:    t.of[reconcile.ClusterPending],
		Failed:     t.of[reconcile.ClusterFailed],
		Unknown:    t.of[reconcile.ClusterUnknown],
		Summary:    fmt.Sprintf("%d/%d", t.done(), t.all),
	}
}

func (v *view) works() *v1alpha1.WorkCounts {
	var all v1alpha1.WorkCounts
	for _, w := range v.Works {
		all.Total += w.Total
		all.Held += w.Held
		all.Deferred += w.Deferred
		all.Blocked += w.Blocked
	}
	return &all
}

// refusal returns why the head is not the fleet's commit, nil if it is.
func (v *view) refusal() *v1alpha1.RefusalStatus {
	r := v.Refusal
	if r == nil {
		return nil
	}

	status := &v1alpha1.RefusalStatus{Revision: v.revision(r.Commit), Reason: ReasonCommitRefused}
	for i, p := range r.Problems {
		if i == mostNamed {
			status.Message += fmt.Sprintf("; and %d more", len(r.Problems)-i)
			break
		}
		if i > 0 {
			status.Message += "; "
		}
		status.Message += shortened(p.Error())
	}
	if r.Guard != nil {
		status.Reason, status.Trailer = ReasonConfirmationRequired, r.Guard.Trailer()
	}

	return status
}

// ready writes the conditions Ready and Reconciling.
func (v *view) ready(f *v1alpha1.Fleet, err error) {
	unavailable, most := v.of[reconcile.ClusterUnknown], allowed(f, v.all)
	switch {
	case err != nil:
		reportFailed(f, reasonOf(err), err)
	case f.Status.Refusal != nil:
		r := f.Status.Refusal
		message := fmt.Sprintf("commit %s: %s", source.Short(v.Refusal.Commit), r.Message)
		if r.Trailer != "" && !strings.Contains(message, r.Trailer) {
			message += "; to confirm it, push a commit whose message ends with: " + r.Trailer
		}
		reportFailed(f, r.Reason, errors.New(message+v.remains()))
	case len(v.Frozen) > 0:
		reportFailed(f, meta.BuildFailedReason, fmt.Errorf("%s; that part of the fleet stays as it was", shortened(v.Frozen[0].String())))
	case v.Accepted == "":
		reportFailed(f, ReasonCommitRefused, errors.New("no commit was accepted yet"))
	case v.of[reconcile.ClusterFailed] > 0 || unavailable > most:
		reportFailed(f, ReasonClustersNotReady, errors.New(v.notReady()))
	case v.of[reconcile.ClusterInProgress]+v.of[reconcile.ClusterPending] > 0 && f.Status.LastAppliedRevision != v.revision(v.Accepted):
		message := fmt.Sprintf("Applying revision: %s, on %d of %d clusters so far", v.revision(v.Accepted), v.done(), v.all)
		conditions.MarkReconciling(f, meta.ProgressingReason, "%s", message)
		conditions.MarkUnknown(f, meta.ReadyCondition, meta.ProgressingReason, "%s", message)
	case v.of[reconcile.ClusterInProgress]+v.of[reconcile.ClusterPending] > 0 && conditions.IsTrue(f, meta.ReadyCondition) && f.Status.ObservedGeneration == f.Generation:
		// Drift is reverted, or a controller that has lost its state reads what is there.
	default:
		conditions.Delete(f, meta.ReconcilingCondition)
		conditions.MarkTrue(f, meta.ReadyCondition, meta.ReconciliationSucceededReason, "%s", v.applied())
		f.Status.ObservedGeneration = f.Generation
	}
}

// applied reads "Applied revision: main@sha1:… on 12 of 12 clusters, 6 works held".
func (v *view) applied() string {
	message := fmt.Sprintf("Applied revision: %s on %d of %s", v.revision(v.Accepted), v.done(), count(v.all, "cluster"))
	if held := v.works().Held; held > 0 {
		message += ", " + count(held, "work") + " held"
	}
	return message
}

// remains says what the members have meanwhile.
func (v *view) remains() string {
	if v.Accepted == "" {
		return ""
	}
	return "; the fleet stays as of " + source.Short(v.Accepted)
}

// notReady names the first clusters that are not ready, and their errors.
func (t *tally) notReady() string {
	n := t.of[reconcile.ClusterFailed] + t.of[reconcile.ClusterUnknown]
	parts := slices.Clone(t.bad[:min(len(t.bad), mostNamed)])
	if more := n - len(parts); more > 0 && len(parts) > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.TrimSuffix(fmt.Sprintf("%d of %s not ready: %s", n, count(t.all, "cluster"), strings.Join(parts, "; ")), ": ")
}

// allowed returns how many clusters may be unreachable.
func allowed(f *v1alpha1.Fleet, clusters int) int {
	most := f.Spec.Readiness.MaxUnavailable
	if most == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(most, clusters, false)
	if err != nil {
		return 0
	}
	return n
}

// reasonOf returns the reason for an error of a round, or of opening the loop.
func reasonOf(err error) string {
	var fetch *reconcile.FetchError
	var secret *SecretError
	var verification *source.VerificationError
	switch {
	case errors.As(err, &verification):
		return ReasonVerificationFailed
	case errors.Is(err, source.ErrAuthentication), errors.As(err, &secret):
		return ReasonAuthenticationFailed
	case errors.As(err, &fetch):
		return ReasonGitOperationFailed
	}

	return ReasonGitOperationFailed
}

// shortened is a message on one line, cut.
func shortened(message string) string {
	message = printable.Line(message)
	if len(message) <= mostMessage {
		return message
	}
	return strings.ToValidUTF8(message[:mostMessage], "") + "…"
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
