// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/schedule"
)

// The laws of the fold, searched for a breach over random histories. A
// failing history shrinks and is printed as the files of its commits.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &randomHistory{tree: map[string]string{}, freezing: true}
		h.grow(t)
		var s, kept propagate.State
		snapshots := map[string]*fleet.Snapshot{}
		for n := range rapid.IntRange(2, 12).Draw(t, "commits") {
			kind := h.edit(t)
			c := h.commit(n)
			before := print(&s, nil)
			next := propagate.Step(s, c)
			if after := print(&s, nil); after != before {
				t.Fatalf("untouched: step %d altered its argument\n%s\n%s", n, before, after)
			}
			again := h.commit(n)
			repeated := propagate.Step(s, again)
			if a, b := print(&next, nil), print(&repeated, nil); a != b {
				t.Fatalf("repeatable: step %d\n%s\n%s", n, a, b)
			}
			if settled := propagate.Step(next, again); next.Refusal == nil && print(&settled, nil) != print(&next, nil) {
				t.Fatalf("settled: step %d\n%s\n%s", n, print(&next, nil), print(&settled, nil))
			}
			h.laws(t, kind, &s, &next)
			snapshots[c.Hash] = c.Snapshot
			if kept = propagate.Step(kept, c); print(&kept, nil) != print(&next, nil) {
				t.Fatalf("replay: step %d from a restored state\n%s\n%s\n%s", n, print(&kept, nil), print(&next, nil), h)
			}
			kept = restore(t, &kept, snapshots)
			h.accept(&next)
			s = next
		}
	})
}

// What happened is all that happened: whoever is told every step knows what
// each cluster runs at the end, and nothing is told that did not happen. Each
// cluster of the fleet has its reason to have a template, or not to.
func TestToldAsItHappened(t *testing.T) {
	told := map[propagate.ChangeType]bool{}
	causes := map[schedule.Cause]bool{}
	rapid.Check(t, func(t *rapid.T) {
		h := &randomHistory{tree: map[string]string{}}
		h.grow(t)
		var s propagate.State
		runs, left := map[string]object.Digest{}, map[string]object.Digest{}
		for n := range rapid.IntRange(2, 12).Draw(t, "commits") {
			h.edit(t)
			next := propagate.Step(s, h.commit(n))
			now := running(&next)
			for _, what := range propagate.Changes(&s, &next) {
				told[what.Type] = true
				to := propagate.ChangesOf(what.Object, &s, &next)
				if !slices.ContainsFunc(to, func(o propagate.Change) bool { return reflect.DeepEqual(o, what) }) {
					t.Fatalf("step %d: %v happened, but to %s only %v\n%s", n, what, what.Object, to, h)
				}
				if what.Cluster == "" {
					continue
				}
				at := what.Object.Key() + " on " + what.Cluster
				if kept, ok := left[at]; ok {
					runs[at] = kept
					delete(left, at)
				}
				had, has := runs[at]
				switch {
				case what.Type == propagate.ChangeDetached:
					left[at] = had
					delete(runs, at)
				case what.Type.Removes():
					if !has {
						t.Fatalf("step %d: %s %s, and nothing was there\n%s", n, at, what.Type, h)
					}
					delete(runs, at)
				case what.Type.Sends():
					if had == now[at] {
						t.Fatalf("step %d: %s %s, and it is the same\n%s", n, at, what.Type, h)
					}
					runs[at] = now[at]
				}
			}
			if !maps.Equal(runs, now) {
				t.Fatalf("step %d: told is %v, true is %v\n%s\n%s", n, runs, now, happened(&s, &next), h)
			}
			for b := range next.Bindings.Values() {
				for _, p := range next.Reasons(b) {
					causes[p.Cause] = true
					if w := b.Work(p.Cluster); p.Placed != (w != nil) || p.Placed != (p.Cause == "") || p.Text == "" {
						t.Fatalf("step %d: %s stands to %s %+v\n%s", n, b.ID, p.Cluster, p, h)
					}
				}
				if inGit := next.Snapshot.Templates.At(b.Key()) != nil; inGit && len(next.Trace(b.ID)) < 2 {
					t.Fatalf("step %d: the chain of %s is %v\n%s", n, b.ID, next.Trace(b.ID), h)
				}
			}
			s = next
		}
	})
	for _, w := range []propagate.ChangeType{propagate.ChangeCreated, propagate.ChangeUpdated, propagate.ChangeHeld, propagate.ChangeReleased, propagate.ChangeDeleted, propagate.ChangeDetached} {
		if !told[w] {
			t.Errorf("the search never came by %q", w)
		}
	}
	for _, c := range []schedule.Cause{schedule.CauseAffinity, schedule.CauseReplicas, propagate.CauseOwners} {
		if !causes[c] {
			t.Errorf("the search never came by the cause %q", c)
		}
	}
}

// running is the content that every cluster was last released.
func running(s *propagate.State) map[string]object.Digest {
	all := map[string]object.Digest{}
	for b := range s.Bindings.Values() {
		for _, w := range b.Works {
			if w.Released != nil {
				all[b.Key()+" on "+w.Cluster] = w.Released.Digest
			}
		}
	}
	return all
}

// randomHistory edits a small fleet, one kind of edit a commit.
type randomHistory struct {
	tree     map[string]string
	log      []string
	freezing bool              // units break too
	accepted map[string]string // the files that units were made of, the last time
}

var (
	lawClusters  = []string{"m1", "m2", "m3"}
	lawTemplates = []string{"web", "api", "job"}
	lawPolicies  = []string{"p", "q"}
	lawConfigs   = []string{"a", "b"}
)

// grow begins with everything there is.
func (h *randomHistory) grow(t *rapid.T) {
	for _, c := range lawClusters {
		h.cluster(t, c, "a")
	}
	for _, name := range lawTemplates {
		h.template(t, name)
	}
	for _, name := range lawPolicies {
		h.policy(t, name)
	}
	for _, name := range lawConfigs {
		h.config(t, name)
	}
	if h.freezing {
		h.tree["fairlead.yaml"] = "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {onBroken: FreezeUnit}\n"
	}
}

// edit changes one thing and says of which kind it is.
func (h *randomHistory) edit(t *rapid.T) string {
	kind := rapid.SampledFrom([]string{"template", "template", "policy", "policy", "brakes", "drop-template", "drop-policy", "drop-cluster", "cluster", "config", "drop-config", "gate", "broken", "nothing"}).Draw(t, "edit")
	switch kind {
	case "template":
		h.template(t, rapid.SampledFrom(lawTemplates).Draw(t, "template"))
	case "config":
		h.config(t, rapid.SampledFrom(lawConfigs).Draw(t, "config"))
	case "gate":
		h.tree["fairlead.yaml"] = fmt.Sprintf("apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {featureGates: {StaticPolicy: %v}}\n", rapid.Bool().Draw(t, "static"))
	case "drop-config":
		delete(h.tree, "d-"+rapid.SampledFrom(lawConfigs).Draw(t, "config")+".yaml")
	case "drop-template":
		delete(h.tree, "t-"+rapid.SampledFrom(lawTemplates).Draw(t, "template")+".yaml")
	case "policy", "brakes":
		h.policy(t, rapid.SampledFrom(lawPolicies).Draw(t, "policy"))
	case "drop-policy":
		delete(h.tree, "p-"+rapid.SampledFrom(lawPolicies).Draw(t, "policy")+".yaml")
	case "cluster":
		h.cluster(t, rapid.SampledFrom(lawClusters).Draw(t, "cluster"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "label"))
	case "drop-cluster":
		delete(h.tree, "c-"+rapid.SampledFrom(lawClusters).Draw(t, "cluster")+".yaml")
	}
	if _, drawn := h.tree["fairlead.yaml"]; kind == "gate" && h.freezing && drawn {
		h.tree["fairlead.yaml"] = strings.Replace(h.tree["fairlead.yaml"], "spec: {", "spec: {onBroken: FreezeUnit, ", 1)
	}
	if kind == "nothing" && h.freezing && rapid.Bool().Draw(t, "break") {
		kind = "break"
		files := slices.DeleteFunc(slices.Sorted(maps.Keys(h.tree)), func(name string) bool { return name == "fairlead.yaml" })
		h.tree[rapid.SampledFrom(files).Draw(t, "broken")] = broken + "it cannot be read\n"
	}
	h.log = append(h.log, kind)
	return kind
}

func (h *randomHistory) cluster(t *rapid.T, name, label string) {
	h.tree["c-"+name+".yaml"] = fmt.Sprintf(`apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: %s, labels: {zone: %s}}
spec: {syncMode: Push, region: %s}
status: {resourceSummary: {allocatable: {pods: "%d"}}}
`, name, label, label, rapid.IntRange(0, 4).Draw(t, "room"))
}

func (h *randomHistory) template(t *rapid.T, name string) {
	h.tree["t-"+name+".yaml"] = fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, labels: {tier: %s}}
spec:
  replicas: %d
  template: {spec: {containers: [{name: c, image: "i:%d", envFrom: [{configMapRef: {name: %s}}]}]}}
`, name, rapid.SampledFrom([]string{"one", "two"}).Draw(t, "tier"), rapid.IntRange(0, 5).Draw(t, "replicas"), rapid.IntRange(1, 3).Draw(t, "image"), rapid.SampledFrom(lawConfigs).Draw(t, "config"))
}

func (h *randomHistory) config(t *rapid.T, name string) {
	h.tree["d-"+name+".yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {v: \"%d\"}\n", name, rapid.IntRange(1, 3).Draw(t, "value"))
}

func (h *randomHistory) policy(t *rapid.T, name string) {
	selector := rapid.SampledFrom([]string{"", ", name: web", ", labelSelector: {matchLabels: {tier: one}}", ", name: nobody"}).Draw(t, "selector")
	placement := rapid.SampledFrom([]string{
		"", "  placement: {clusterAffinity: {clusterNames: [m1, m2]}}\n", "  placement: {clusterAffinity: {labelSelector: {matchLabels: {zone: a}}}}\n",
		"  placement: {replicaScheduling: {replicaSchedulingType: Divided}}\n", "  placement: {clusterAffinity: {exclude: [m1]}, replicaScheduling: {replicaSchedulingType: Divided}}\n",
		"  placement: {replicaScheduling: {replicaDivisionPreference: Aggregated}}\n",
		"  placement: {replicaScheduling: {weightPreference: {dynamicWeight: AvailableReplicas}}, spreadConstraints: [{maxGroups: 2}]}\n",
		"  placement: {spreadConstraints: [{maxGroups: 2}, {spreadByField: region, maxGroups: 1}]}\n",
		"  placement: {clusterAffinities: [{affinityName: a, labelSelector: {matchLabels: {zone: a}}}, {affinityName: b, labelSelector: {matchLabels: {zone: b}}}]}\n",
	}).Draw(t, "placement")
	brakes := rapid.SampledFrom([]string{
		"", "  suspension: {dispatching: true}\n", "  suspension: {dispatchingOnClusters: {clusterNames: [m2]}}\n", "  preserveResourcesOnDeletion: true\n",
	}).Draw(t, "brakes")
	brakes += rapid.SampledFrom([]string{"", "  propagateDeps: true\n"}).Draw(t, "deps")
	brakes += rapid.SampledFrom([]string{"", "", "  activationPreference: Lazy\n"}).Draw(t, "activation")
	h.tree["p-"+name+".yaml"] = fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: %s, namespace: default}\nspec:\n  priority: %d\n  resourceSelectors:\n  - {apiVersion: apps/v1, kind: Deployment%s}\n%s%s",
		name, rapid.IntRange(0, 2).Draw(t, "priority"), selector, placement, brakes)
}

func (h *randomHistory) commit(n int) propagate.Commit {
	c := propagate.Commit{Hash: fmt.Sprintf("c%d", n), Time: int64(n) * 2 * 3600}
	if h.log[len(h.log)-1] == "broken" {
		c.Problems = []fleet.Problem{{Message: "broken"}}
		return c
	}
	c.Snapshot, c.Problems = readOn(h.tree, h.accepted)
	return c
}

// accept notes what a unit that breaks keeps.
func (h *randomHistory) accept(s *propagate.State) {
	if s.Refusal == nil {
		h.accepted = mended(h.tree, h.accepted)
	}
}

// laws compares a state with the one before it.
func (h *randomHistory) laws(t *rapid.T, kind string, before, after *propagate.State) {
	decided := func(s *propagate.State) string {
		return print(&propagate.State{Bindings: s.Bindings, Tombstones: s.Tombstones, Detached: s.Detached}, nil)
	}
	if after.Refusal != nil {
		if after.Accepted != before.Accepted || decided(after) != decided(before) {
			t.Fatalf("fail closed: a refused commit changed something\n%s", h)
		}
		return
	}
	if kind == "break" && before.Refusal == nil && before.Commit != "" && decided(after) != decided(before) {
		t.Fatalf("fail closed: a broken unit changed something\n%s", h)
	}
	works := 0
	for b := range after.Bindings.Values() {
		works += len(b.Works)
		h.binding(t, before.Bindings.At(b.Key()), b, after)
	}
	if works != after.Works {
		t.Fatalf("%d works are counted as %d\n%s", works, after.Works, h)
	}
	if before.Refusal != nil {
		return // the step also has the edits of the commits that were refused
	}
	if kind == "policy" || kind == "drop-policy" {
		h.noSurprise(t, before, after)
	}
	if kind == "drop-policy" || kind == "nothing" {
		h.noSideDelete(t, before, after)
	}
}

// binding holds what is true of every single one.
func (h *randomHistory) binding(t *rapid.T, was, is *propagate.Binding, s *propagate.State) {
	var sum int64
	for i := range is.Works {
		w := &is.Works[i]
		if i > 0 && is.Works[i-1].Cluster >= w.Cluster {
			t.Fatalf("works out of order\n%s", h)
		}
		if _, ok := s.Snapshot.Clusters.Get(w.Cluster); !ok {
			t.Fatalf("%s has a work on %s, which is not in the fleet\n%s", is.ID, w.Cluster, h)
		}
		if s.Removal(w.Cluster, is.ID) != nil && w.Released != nil {
			t.Fatalf("%s runs on %s and has departed from it\n%s", is.ID, w.Cluster, h)
		}
		sum += w.Want.Replicas
		if !w.Held {
			if w.Released != w.Want {
				t.Fatalf("%s on %s is not held and not released\n%s", is.ID, w.Cluster, h)
			}
			continue
		}
		if was == nil {
			continue
		}
		if old := was.Work(w.Cluster); old != nil && old.Released != w.Released {
			t.Fatalf("held: %s on %s was released to\n%s", is.ID, w.Cluster, h)
		}
	}
	if is.Kind != "Deployment" {
		h.dependency(t, is, s)
		return
	}
	divided := is.Active.Policy.Spec.Placement.ReplicaScheduling != nil
	wanted, _ := is.Active.Template.Object()["spec"].(map[string]any)["replicas"].(int64)
	if divided && is.Claim != nil && is.Scheduled.Reason == "Success" && sum != wanted && wanted > 0 {
		t.Fatalf("%s wants %d replicas and gets %d\n%s", is.ID, wanted, sum, h)
	}
}

// noSurprise: under StaticPolicy a change of policies alone changes no content
// and no target of what is in effect, except of templates that changed while
// nothing matched them, as every one did that was never active.
func (h *randomHistory) noSurprise(t *rapid.T, before, after *propagate.State) {
	if before.Snapshot == nil || before.Snapshot.Settings == nil || !before.Snapshot.Settings.Spec.FeatureGates[fleet.GateStaticPolicy] {
		return
	}
	for b := range before.Bindings.Values() {
		if b.Unmatched || b.Kind != "Deployment" || b.Active.Policy.Ref == (fleet.PolicyRef{}) {
			continue
		}
		now := after.Bindings.At(b.Key())
		if now == nil && len(b.Works) == 0 {
			continue // it waited for a policy that is gone
		}
		if now == nil || len(now.Works) != len(b.Works) {
			t.Fatalf("no surprise: %s moved\n%s", b.ID, h)
		}
		for i := range b.Works {
			if b.Works[i].Cluster != now.Works[i].Cluster || b.Works[i].Want.Digest != now.Works[i].Want.Digest {
				t.Fatalf("no surprise: %s changes on %s\n%s", b.ID, b.Works[i].Cluster, h)
			}
		}
	}
}

// dependency: what a workload needs stands or waits beside it, and is held
// only where every one that needs it is.
func (h *randomHistory) dependency(t *rapid.T, is *propagate.Binding, s *propagate.State) {
	for i := range is.Works {
		w := &is.Works[i]
		needed, free := false, false
		for owner := range s.Bindings.Values() {
			o := owner.Work(w.Cluster)
			if o == nil {
				continue
			}
			direct := slices.Contains(owner.Requires, is.ID)
			released := o.Held && o.Released != nil && slices.Contains(o.Released.Requires, is.ID)
			needed = needed || direct || released
			free = free || direct && !o.Held
		}
		if !needed {
			t.Fatalf("nobody needs %s on %s\n%s", is.ID, w.Cluster, h)
		}
		if _, exists := s.Snapshot.Templates.Get(is.Key()); exists && w.Held == free {
			t.Fatalf("%s on %s: held %v, needed freely %v\n%s", is.ID, w.Cluster, w.Held, free, h)
		}
	}
}

// noSideDelete: a policy that goes deletes nothing, unless another one claims
// the template and moves it, or its hold goes with it, as under StaticPolicy it
// does.
func (h *randomHistory) noSideDelete(t *rapid.T, before, after *propagate.State) {
	moved := false
	for b := range before.Bindings.Values() {
		now := after.Bindings.At(b.Key())
		moved = moved || now != nil && now.Claim != nil && (b.Claim == nil || *now.Claim != *b.Claim)
		for _, w := range b.Works {
			moved = moved || w.Held && now != nil && now.Work(w.Cluster) != nil && !now.Work(w.Cluster).Held
		}
	}
	for b := range before.Bindings.Values() {
		if b.Kind == "ConfigMap" && moved {
			continue // what its owner takes along follows the owner
		}
		now := after.Bindings.At(b.Key())
		if now == nil && len(b.Works) == 0 {
			continue // it waited for a policy that is gone
		}
		if now == nil {
			t.Fatalf("no side delete: %s is gone\n%s", b.ID, h)
		}
		if now.Claim != nil && (b.Claim == nil || *now.Claim != *b.Claim) {
			continue
		}
		for _, w := range b.Works {
			if now.Work(w.Cluster) == nil {
				t.Fatalf("no side delete: %s left %s\n%s", b.ID, w.Cluster, h)
			}
		}
	}
}

// String is the tree as it stands, and the edits that led to it.
func (h *randomHistory) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "edits: %s\n", strings.Join(h.log, ", "))
	for _, name := range slices.Sorted(maps.Keys(h.tree)) {
		fmt.Fprintf(&b, "-- %s --\n%s", name, h.tree[name])
	}
	return b.String()
}
