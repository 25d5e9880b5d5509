// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
)

// Commits and observations in any order, under the gate Failover: an
// observation alters no argument, is taken in once, in the same way by a
// restored state, and never takes the last copy of anything.
func TestFailoverLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &randomHistory{tree: map[string]string{"gates.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {featureGates: {Failover: true}}\n"}}
		h.grow(t)
		var s propagate.State
		snapshots := map[string]*fleet.Snapshot{}
		at := int64(0)
		for n := range rapid.IntRange(2, 16).Draw(t, "steps") {
			at += int64(rapid.SampledFrom([]int{1, 60, 700}).Draw(t, "time"))
			restored := propagate.State{}
			if s.Commit != "" {
				restored = restore(t, &s, snapshots)
			}
			before := print(&s, nil)
			step := h.step(t, n, at, s)
			next, kept := step(s), step(restored)
			if s.Accepted != next.Accepted {
				snapshots[next.Accepted] = next.Snapshot
			}
			if print(&s, nil) != before {
				t.Fatalf("untouched: step %d altered its argument\n%s", n, h)
			}
			if a, b := print(&next, nil), print(&kept, nil); a != b {
				t.Fatalf("replay: step %d from a restored state\n%s\n%s\n%s", n, a, b, h)
			}
			if again := step(next); next.Refusal == nil && h.log[len(h.log)-1] == "observe" && settled(&next) && print(&again, nil) != print(&next, nil) {
				t.Fatalf("settled: step %d\n%s\n%s\n%s", n, print(&next, nil), print(&again, nil), h)
			}
			h.evictions(t, &s, &next)
			s = next
		}
	})
}

// settled reports whether nothing is being moved: a move that begins can end in the
// very next look.
func settled(s *propagate.State) bool { return s.Evictions == 0 }

// step is a commit or an observation.
func (h *randomHistory) step(t *rapid.T, n int, at int64, s propagate.State) func(propagate.State) propagate.State {
	if n > 0 && rapid.Bool().Draw(t, "observe") {
		h.log = append(h.log, "observe")
		o := propagate.Observations{At: at, Ready: map[string]metav1.ConditionStatus{}, Health: map[propagate.Place]propagate.Health{}}
		for _, c := range lawClusters {
			o.Ready[c] = rapid.SampledFrom([]metav1.ConditionStatus{"True", "True", "False", "Unknown"}).Draw(t, "ready")
		}
		for _, p := range s.Watches() {
			o.Health[p] = rapid.SampledFrom([]propagate.Health{propagate.Healthy, propagate.Unhealthy, propagate.UnknownHealth}).Draw(t, "health")
		}
		for _, p := range s.Leaving() {
			if rapid.Bool().Draw(t, "gone") {
				o.Gone = append(o.Gone, p)
			}
		}
		return func(s propagate.State) propagate.State { return propagate.Observe(s, o) }
	}
	if kind := h.edit(t); kind == "gate" {
		delete(h.tree, "fairlead.yaml")
	}
	for _, name := range slices.Sorted(maps.Keys(h.tree)) {
		text := h.tree[name]
		if strings.HasPrefix(name, "p-") && strings.Contains(text, "propagateDeps: true") && !strings.Contains(text, "failover") {
			h.tree[name] = text + fmt.Sprintf("  failover: {application: {decisionConditions: {tolerationSeconds: 60}, purgeMode: %s}}\n",
				rapid.SampledFrom([]string{"Gracefully", "Directly", "Never"}).Draw(t, "purge"))
		}
	}
	if name := "c-" + rapid.SampledFrom(lawClusters).Draw(t, "tainted") + ".yaml"; h.tree[name] != "" && rapid.Bool().Draw(t, "taint") {
		const taint = " taints: [{key: broken, effect: NoExecute}],"
		if without := strings.Replace(h.tree[name], taint, "", 1); without != h.tree[name] {
			h.tree[name] = without
		} else {
			h.tree[name] = strings.Replace(h.tree[name], "syncMode: Push,", "syncMode: Push,"+taint, 1)
		}
	}
	c := h.commit(n)
	return func(s propagate.State) propagate.State { return propagate.Step(s, c) }
}

// evictions hold what is true while things are moved.
func (h *randomHistory) evictions(t *rapid.T, before, after *propagate.State) {
	count := 0
	for b := range after.Bindings.Values() {
		count += len(b.Evictions)
		for _, e := range b.Evictions {
			for _, target := range b.Targets {
				if target.Name == e.Cluster {
					t.Fatalf("%s is taken from %s and goes there\n%s", b.ID, e.Cluster, h)
				}
			}
		}
	}
	if count != after.Evictions {
		t.Fatalf("%d evictions are counted as %d\n%s", count, after.Evictions, h)
	}
	if h.log[len(h.log)-1] != "observe" {
		return
	}
	for b := range before.Bindings.Values() {
		if b.Kind != "Deployment" {
			continue // what its owners take along goes with them
		}
		now := after.Bindings.At(b.Key())
		direct := false
		for _, e := range now.Evictions {
			direct = direct || e.Purge == "Directly"
		}
		if runs(b) && !runs(now) && !direct {
			t.Fatalf("the last copy of %s went by an observation\n%s\n%s\n%s", b.ID, print(before, nil), print(after, nil), h)
		}
	}
}

// runs reports whether a binding was released anywhere.
func runs(b *propagate.Binding) bool {
	for _, w := range b.Works {
		if w.Released != nil {
			return true
		}
	}
	return false
}
