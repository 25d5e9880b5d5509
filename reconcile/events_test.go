// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// A loop records what it did and what kept it from acting, each with the
// commit that the fleet was at.
func TestEventsOfALoop(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	files := quickstart(t)
	files["gone.yaml"] = configMap("gone", "1") + "---\n" + policyFor("ConfigMap", "gone")
	first := w.repo.Commit("first release", files)
	w.settle()

	create(t, w, "eu-1", "theirs", map[string]any{"text": "theirs"})
	create(t, w, "eu-1", "taken", map[string]any{"text": "theirs"})
	config := func(name, conflict string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop, annotations: {work.karmada.io/conflict-resolution: " + conflict + "}}\n"
	}
	files["policies/more.yaml"] = `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: more, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: theirs}, {apiVersion: v1, kind: ConfigMap, name: taken}]
  placement: {clusterAffinity: {clusterNames: [eu-1]}}
`
	files["apps/theirs.yaml"], files["apps/taken.yaml"] = config("theirs", "abort"), config("taken", "overwrite")
	second := w.repo.Commit("two that are there already", files)
	if err := w.once(); !errors.Is(err, reconcile.ErrNotConverged) {
		t.Fatal(err)
	}
	third := w.repo.Commit("broken", map[string]string{"broken.yaml": "broken: [\n"})
	_ = w.once()
	keep := strings.Replace(files["policies/more.yaml"], "spec:\n", "spec:\n  preserveResourcesOnDeletion: true\n", 1)
	fourth := w.repo.Commit("let go", map[string]string{"broken.yaml": sourcetest.Delete, "apps/theirs.yaml": sourcetest.Delete, "apps/taken.yaml": sourcetest.Delete,
		"gone.yaml": sourcetest.Delete, "policies/more.yaml": keep})
	w.settle()

	events := eventlog.NewReader(w.state)
	defer events.Close()
	found, err := events.Next()
	if err != nil {
		t.Fatal(err)
	}
	has := func(commit string, what eventlog.Type, cluster, object, text string) {
		t.Helper()
		if !slices.ContainsFunc(found, func(e eventlog.Event) bool {
			name := ""
			if e.Object != nil {
				name = e.Object.ID().String()
			}
			return e.Commit == commit && e.Type == what && e.Cluster == cluster && name == object && strings.Contains(e.Text, text) && !e.Time.IsZero()
		}) {
			t.Errorf("no event %s %s %s %s %q in\n%s", commit[:7], what, cluster, object, text, asJSON(t, found))
		}
	}
	has(first, eventlog.Applied, "us-1", "Deployment shop/web", "")
	has(second, eventlog.Adopted, "eu-1", "ConfigMap shop/taken", "")
	has(second, eventlog.Failed, "eu-1", "ConfigMap shop/theirs", "is not ours")
	has(third, eventlog.Refused, "", "", "broken.yaml:1")
	has(fourth, eventlog.LeftRunning, "eu-1", "ConfigMap shop/taken", "")
	has(fourth, eventlog.Deleted, "ap-1", "ConfigMap default/gone", "")
	if again, err := events.Next(); err != nil || len(again) != 0 {
		t.Errorf("nothing new happened: %v, %v", again, err)
	}
	if before := len(found); before == 0 || !slices.IsSortedFunc(found, func(a, b eventlog.Event) int { return a.Time.Compare(b.Time) }) {
		t.Errorf("%d events out of order", before)
	}
}

// A record that cannot be written keeps nothing from being done, and is said
// once.
func TestEventsThatCannotBeWritten(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	if err := os.Mkdir(filepath.Join(w.state, "events.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.repo.Commit("first release", quickstart(t))
	w.settle()
	w.wantImages("ap-1=1.0 eu-1=1.0 us-1=1.0")
	if said := w.said(); strings.Count(said, "the record of events is not written") != 1 {
		t.Errorf("it was said:\n%s", said)
	}
}

// A dry run did nothing that could be recorded.
func TestNoEventsOfADryRun(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("first release", quickstart(t))
	options := w.options()
	options.DryRun = true
	l, err := reconcile.Open(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Once(context.Background())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := eventlog.NewReader(w.state).Next(); err != nil || len(found) > 0 {
		t.Errorf("found %s, %v", asJSON(t, found), err)
	}
}
