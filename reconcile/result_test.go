// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// A round's result says, without a sentence to be read, what a condition, an
// event or a metric is made of.
func TestARoundHasAResult(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	first := w.repo.Commit("first release", quickstart(t))
	l := w.open()
	defer l.Close()
	round := func() reconcile.Result {
		t.Helper()
		_ = l.Once(context.Background()) // what it sent has been answered
		r, err := l.Round(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	r := round()
	if r.Head != first || r.Accepted != first || r.Refusal != nil || len(r.Members) != 3 {
		t.Errorf("first release: %+v", r)
	}
	for _, m := range r.Members {
		if !m.Converged() {
			t.Errorf("%s: %v %v", m.Cluster, m.Err, m.Failures)
		}
	}
	if len(r.Acts) == 0 {
		t.Error("there are no acts")
	}
	for _, a := range r.Acts {
		if a.Verb != dispatch.OpApply || a.Commit != first || a.Cluster == "" || a.Object.Name == "" || a.Err != nil {
			t.Errorf("act %+v", a)
		}
	}
	for b := range r.State.Bindings.Values() {
		for _, work := range b.Works {
			if got := l.Acknowledged(work.Cluster)[b.ID]; got != work.Released.Digest {
				t.Errorf("%s has acknowledged %s of %s, released is %s", work.Cluster, got, b.ID, work.Released.Digest)
			}
		}
	}
	if r.State.Commit != first || r.State.Bindings.Len() == 0 || l.Acknowledged("nowhere") != nil {
		t.Errorf("the state is that of %s, with %d bindings", r.State.Commit, r.State.Bindings.Len())
	}
	if r = round(); len(r.Acts) != 0 {
		t.Errorf("acts are told twice: %v", r.Acts)
	}

	broken := w.repo.Commit("broken", map[string]string{"broken.yaml": "broken: [\n"})
	if r = round(); r.Head != broken || r.Accepted != first || r.Refusal == nil || r.Refusal.Commit != broken {
		t.Errorf("broken: %+v", r)
	}

	create(t, w, "eu-1", "theirs", map[string]any{"text": "theirs"})
	mended := w.repo.Commit("one that is there already", map[string]string{
		"broken.yaml": sourcetest.Delete,
		"theirs.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: shop}\n---\n" + `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: theirs, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: theirs}]
  placement: {clusterAffinity: {clusterNames: [eu-1]}}
`,
	})
	r = round()
	failed := slices.IndexFunc(r.Members, func(m reconcile.MemberStatus) bool { return m.Cluster == "eu-1" })
	if r.Accepted != mended || failed < 0 || r.Members[failed].Err != nil || len(r.Members[failed].Failures) != 1 || !errors.Is(r.Members[failed].Failures[0].Err, member.Foreign) {
		t.Errorf("a foreign object: %+v", r)
	}
	if !slices.ContainsFunc(r.Acts, func(a reconcile.Act) bool { return a.Cluster == "eu-1" && a.Object.Name == "theirs" && a.Err != nil }) {
		t.Errorf("the failed act is not told: %+v", r.Acts)
	}

	w.repo.Commit("a cluster that cannot be reached", map[string]string{"clusters/new.yaml": "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: new}\nspec: {syncMode: Push}\n"})
	round()
	status := l.Status()
	if i := slices.IndexFunc(status, func(m reconcile.MemberStatus) bool { return m.Cluster == "new" }); i < 0 || status[i].Err == nil {
		t.Errorf("a cluster that no context is for: %+v", status)
	}
}
