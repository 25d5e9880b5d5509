// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
)

const (
	first  = "1111111111111111111111111111111111111111"
	second = "2222222222222222222222222222222222222222"
)

var web = object.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}

func current(name string) reconcile.MemberStatus {
	return reconcile.MemberStatus{Cluster: name, Contacted: true}
}

func away(name string) reconcile.MemberStatus {
	return reconcile.MemberStatus{Cluster: name, Contacted: true, Waiting: 3,
		Err: &member.Error{Cluster: name, Op: "read", Reason: member.Unreachable, Err: errors.New("connection refused")}}
}

func busy(name string) reconcile.MemberStatus {
	return reconcile.MemberStatus{Cluster: name, Contacted: true, Pending: 2}
}

func failing(name string, reason member.Reason) reconcile.MemberStatus {
	err := &member.Error{Cluster: name, ID: web, Op: "apply", Reason: reason, Err: errors.New("quota exceeded")}
	return reconcile.MemberStatus{Cluster: name, Contacted: true, Failures: []dispatch.Outcome{{Cluster: name, ID: web, Err: err, Final: reason.Final()}}}
}

func at(commit string, members ...reconcile.MemberStatus) reconcile.Result {
	r := reconcile.Result{Head: commit, Accepted: commit, Round: 1, Members: members, Works: map[string]reconcile.Works{}}
	for _, m := range members {
		r.Works[m.Cluster] = reconcile.Works{Total: 10}
	}
	return r
}

func with(r reconcile.Result, change func(*reconcile.Result)) reconcile.Result {
	change(&r)
	return r
}

// What the status of a Fleet says of what its loop has seen.
func TestStatus(t *testing.T) {
	refused := func(guard *propagate.Guard, problem string) func(*reconcile.Result) {
		return func(r *reconcile.Result) {
			r.Head = second
			r.Refusal = &propagate.Refusal{Commit: second, Guard: guard, Problems: []fleet.Problem{{Origin: fleet.Origin{File: "policies/web.yaml", Line: 12}, Message: problem}}}
		}
	}

	for _, test := range []struct {
		name    string
		applied string // the revision that was applied before
		result  reconcile.Result
		err     error
		spec    v1alpha1.FleetSpec
		want    string
	}{
		{name: "everything is there", result: at(first, current("eu-1"), current("us-1")), want: `
Ready=True ReconciliationSucceeded: Applied revision: main@sha1:1111111111111111111111111111111111111111 on 2 of 2 clusters
2/2 applied main@sha1:1111111111111111111111111111111111111111 observed`},

		{name: "something is held", result: with(at(first, current("eu-1"), current("us-1")), func(r *reconcile.Result) { r.Works["us-1"] = reconcile.Works{Total: 10, Held: 6} }), want: `
Held=True Suspended: 6 works held: ` + "`fairlead get holds`" + ` says by what, since when and until when
Ready=True ReconciliationSucceeded: Applied revision: main@sha1:1111111111111111111111111111111111111111 on 2 of 2 clusters, 6 works held
2/2 applied main@sha1:1111111111111111111111111111111111111111 observed`},

		{name: "a commit is on its way", applied: first, result: at(second, current("eu-1"), busy("us-1")), want: `
Ready=Unknown Progressing: Applying revision: main@sha1:2222222222222222222222222222222222222222, on 1 of 2 clusters so far
Reconciling=True Progressing: Applying revision: main@sha1:2222222222222222222222222222222222222222, on 1 of 2 clusters so far
1/2 applied main@sha1:1111111111111111111111111111111111111111`},

		{name: "drift is reverted", applied: first, result: at(first, current("eu-1"), busy("us-1")), want: `
Ready=True ReconciliationSucceeded: Applied revision: main@sha1:1111111111111111111111111111111111111111 on 1 of 2 clusters
1/2 applied main@sha1:1111111111111111111111111111111111111111 observed`},

		{name: "a cluster is away", applied: first, result: at(second, current("eu-1"), away("us-1")), want: `
Ready=False ClustersNotReady: 1 of 2 clusters not ready: us-1: read on us-1: connection refused
Reconciling=True ProgressingWithRetry: 1 of 2 clusters not ready: us-1: read on us-1: connection refused
1/2 applied main@sha1:1111111111111111111111111111111111111111`},

		{name: "a cluster may be away", applied: first, result: at(second, current("eu-1"), away("us-1")), spec: v1alpha1.FleetSpec{Readiness: v1alpha1.ReadinessSpec{MaxUnavailable: ptr(intstr.FromString("50%"))}}, want: `
Ready=True ReconciliationSucceeded: Applied revision: main@sha1:2222222222222222222222222222222222222222 on 1 of 2 clusters
1/2 applied main@sha1:1111111111111111111111111111111111111111 observed`},

		{name: "five clusters refuse something", result: at(first, failing("a", member.Forbidden), failing("b", member.Invalid), failing("c", member.Foreign), failing("d", member.Unavailable), failing("e", member.Invalid)), want: `
Ready=False ClustersNotReady: 5 of 5 clusters not ready: a: apply Deployment shop/web on a: quota exceeded; b: apply Deployment shop/web on b: quota exceeded; c: apply Deployment shop/web on c: quota exceeded; and 2 more
Reconciling=True ProgressingWithRetry: 5 of 5 clusters not ready: a: apply Deployment shop/web on a: quota exceeded; b: apply Deployment shop/web on b: quota exceeded; c: apply Deployment shop/web on c: quota exceeded; and 2 more
0/5`},

		{name: "an object waits for another cluster", applied: first, result: at(second, current("eu-1"), failing("us-1", member.Waiting)), want: `
Ready=Unknown Progressing: Applying revision: main@sha1:2222222222222222222222222222222222222222, on 1 of 2 clusters so far
Reconciling=True Progressing: Applying revision: main@sha1:2222222222222222222222222222222222222222, on 1 of 2 clusters so far
1/2 applied main@sha1:1111111111111111111111111111111111111111`},

		{name: "the head is refused", applied: first, result: with(at(first, current("eu-1")), refused(nil, "unknown field spec.placment")), want: `
Ready=False CommitRefused: commit 2222222: policies/web.yaml:12: unknown field spec.placment; the fleet stays as of 1111111
Reconciling=True ProgressingWithRetry: commit 2222222: policies/web.yaml:12: unknown field spec.placment; the fleet stays as of 1111111
1/1 applied main@sha1:1111111111111111111111111111111111111111`},

		{name: "the repository does not answer", applied: first, result: with(at(first, current("eu-1")), func(r *reconcile.Result) {
			r.Err = &reconcile.FetchError{Err: errors.New("dial tcp: i/o timeout")}
		}), want: `
Ready=False GitOperationFailed: dial tcp: i/o timeout
Reconciling=True ProgressingWithRetry: dial tcp: i/o timeout
1/1 applied main@sha1:1111111111111111111111111111111111111111`},

		{name: "the credentials are refused", err: fmt.Errorf("clone: %w", source.ErrAuthentication), want: `
Ready=False AuthenticationFailed: clone: ` + source.ErrAuthentication.Error() + `
Reconciling=True ProgressingWithRetry: clone: ` + source.ErrAuthentication.Error()},

		{name: "a part is broken", applied: first, result: with(at(first, current("eu-1")), func(r *reconcile.Result) {
			r.Frozen = []fleet.Finding{{Origin: fleet.Origin{File: "apps/web/kustomization.yaml", Line: 3}, Message: "no such file"}}
		}), want: `
Ready=False BuildFailed: apps/web/kustomization.yaml:3: no such file; that part of the fleet stays as it was
Reconciling=True ProgressingWithRetry: apps/web/kustomization.yaml:3: no such file; that part of the fleet stays as it was
1/1 applied main@sha1:1111111111111111111111111111111111111111`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &v1alpha1.Fleet{ObjectMeta: metav1.ObjectMeta{Generation: 7}, Spec: test.spec}
			if test.applied != "" {
				f.Status.LastAppliedRevision = "main@sha1:" + test.applied
			}
			controller.Report(f, test.result, test.err, time.Unix(0, 0))
			if got := statusText(f); got != strings.TrimPrefix(test.want, "\n") {
				t.Errorf("got:\n%s\nwant:%s", got, test.want)
			}
		})
	}
}

// A Fleet that cannot be reconciled as it is stays so, and is not tried again.
func TestStalled(t *testing.T) {
	f := &v1alpha1.Fleet{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	controller.ReportStalled(f, &controller.StalledError{Reason: controller.ReasonInvalidURL, Err: errors.New("url ftp://x: scheme is not supported")})
	want := "Ready=False InvalidURL: url ftp://x: scheme is not supported\nStalled=True InvalidURL: url ftp://x: scheme is not supported\n observed"
	if got := statusText(f); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func statusText(f *v1alpha1.Fleet) string {
	var lines []string
	for _, name := range []string{"Dispatching", "Held", "Ready", "Reconciling", "Stalled"} {
		for _, c := range f.Status.Conditions {
			if c.Type == name {
				lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
			}
		}
	}

	last := ""
	if f.Status.Clusters != nil {
		last = f.Status.Clusters.Summary
	}
	if f.Status.LastAppliedRevision != "" {
		last += " applied " + f.Status.LastAppliedRevision
	}
	if f.Status.ObservedGeneration == f.Generation {
		last += " observed"
	}
	if last != "" {
		lines = append(lines, last)
	}
	return strings.Join(lines, "\n")
}

func ptr[T any](v T) *T { return &v }
