// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Decision 42, searched over random acknowledgements: in any order, with failures,
// with several commits between two of them. What moves is never taken from a cluster
// while nobody else has it, and what waits does not do so for ever.
func TestMovesNeverLoseACopy(t *testing.T) {
	moreChecks(t, 1000)
	rapid.Check(t, func(t *rapid.T) {
		h := &wildHistory{t: t, docs: map[string]wildDoc{}, emptied: map[string]bool{}}
		focused := h.chance("moves alone", 70)
		if !focused {
			h.grow()
		}
		m := &memberModel{t: t, h: h, copies: map[propagate.Place]object.Digest{}, moved: map[propagate.Place]bool{}}
		var s propagate.State
		var allow []propagate.Trailer
		var placed []string
		for n := range rapid.IntRange(3, 12).Draw(t, "commits") {
			for range rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "edits") {
				if !focused {
					h.edit()
				}
			}
			c := propagate.Commit{Hash: fmt.Sprintf("c%d", n+1), Time: int64(n) * 86400, Trailers: allow}
			var files map[string]string
			if focused {
				files = movingTree(h, &placed)
			} else {
				files = h.tree()
			}
			c.Snapshot, c.Problems = snapshot(files, true)
			h.tell(&c, files)
			next := propagate.Step(s, c)
			allow = nil
			if next.Refusal != nil && next.Refusal.Guard != nil && h.chance("confirmed", 70) {
				allow = []propagate.Trailer{trailerOf(next.Refusal.Guard)}
			}
			m.step(&s, &next)
			s = next
			for range rapid.IntRange(0, 6).Draw(t, "visits") {
				m.visit(&s, h.pick("cluster", clustersIn(&s)), 70)
			}
		}
		for range 3 {
			for _, cluster := range clustersIn(&s) {
				m.visit(&s, cluster, 100)
			}
		}
		m.settled(&s)
	})
}

// movingTree is a commit of a fleet in which nothing happens but moves: a Deployment
// and the ConfigMap that it takes along.
func movingTree(h *wildHistory, last *[]string) map[string]string {
	files := map[string]string{
		"web.yaml": fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  template: {spec: {containers: [{name: c, image: "i:%s", envFrom: [{configMapRef: {name: a}}]}]}}
`, h.pick("image", []string{"1", "1", "2"})),
		"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n",
	}
	var placed, held []string
	for _, name := range []string{"m1", "m2", "m3"} {
		if h.chance("in the fleet "+name, 92) {
			taint := ""
			if h.chance("taint "+name, 4) {
				taint = ", taints: [{key: out, effect: NoExecute}]"
			}
			files[name+".yaml"] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {syncMode: Push%s}\n", name, taint)
		}
		if h.chance("placed "+name, 35) {
			placed = append(placed, name)
		}
		if h.chance("held "+name, 10) && files[name+".yaml"] != "" {
			held = append(held, name)
		}
	}
	if *last != nil && h.chance("where it was", 50) {
		placed = *last
	}
	if placed == nil {
		placed = []string{h.pick("place", []string{"m1", "m2", "m3"})}
	}
	*last = placed
	files["policy.yaml"] = fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  propagateDeps: true
  placement: {clusterAffinity: {clusterNames: [%s]}}
  suspension: {dispatchingOnClusters: {clusterNames: [%s]}}
`, strings.Join(placed, ", "), strings.Join(held, ", "))
	if held == nil {
		files["policy.yaml"] = strings.Replace(files["policy.yaml"], "  suspension: {dispatchingOnClusters: {clusterNames: []}}\n", "", 1)
	}
	return files
}

func clustersIn(s *propagate.State) []string {
	all := []string{"none"}
	if s.Snapshot == nil {
		return all
	}
	for name := range s.Snapshot.Clusters.All() {
		all = append(all, name)
	}
	return all
}

// memberModel is what clusters have, and does to it what dispatch would.
type memberModel struct {
	t      *rapid.T
	h      *wildHistory
	copies map[propagate.Place]object.Digest
	// moved are places that were lost to others, as two states tell by themselves.
	moved map[propagate.Place]bool
}

func worksOf(s *propagate.State, key string) map[string]*propagate.Work {
	all := map[string]*propagate.Work{}
	if b := s.Bindings.At(key); b != nil {
		for i := range b.Works {
			all[b.Works[i].Cluster] = &b.Works[i]
		}
	}
	return all
}

// step notes what moves. Where somebody accepted that nobody has it, it is lost and
// not moved: the last place is given up, or what gains it is held or blocked.
func (m *memberModel) step(before, after *propagate.State) {
	if after.Refusal != nil {
		return
	}
	for b := range before.Bindings.Values() {
		was, is := worksOf(before, b.Key()), worksOf(after, b.Key())
		gains, lost := false, []string(nil)
		for c, w := range is {
			gains = gains || (was[c] == nil || was[c].Released == nil) && !w.Held && w.Blocked == ""
		}
		for c := range was {
			if is[c] == nil {
				lost = append(lost, c)
			}
		}
		for _, c := range lost {
			m.moved[propagate.Place{Cluster: c, ID: b.ID}] = gains
		}
		for p := range m.moved {
			if p.ID == b.ID && (len(lost) > 0 && !gains || is[p.Cluster] != nil) {
				delete(m.moved, p)
			}
		}
	}
}

// visit brings a cluster nearer to the state. Each of its requests may fail.
func (m *memberModel) visit(s *propagate.State, cluster string, percent int) {
	for b := range s.Bindings.Values() {
		w := b.Work(cluster)
		if w == nil || w.Held || w.Blocked != "" || percent < 100 && !m.h.chance("apply "+b.Key(), percent) {
			continue
		}
		m.copies[propagate.Place{Cluster: cluster, ID: b.ID}] = w.Want.Digest
	}
	for a := range s.Tombstones.Values() {
		p := propagate.Place{Cluster: cluster, ID: a.ID}
		_, there := m.copies[p]
		removal := s.Removal(cluster, a.ID)
		if worksOf(s, a.Key())[cluster] != nil || removal == nil || removal.Preserve || !there || percent < 100 && !m.h.chance("delete "+a.Key(), percent) {
			continue
		}
		if m.missing(s, p) == nil {
			m.remove(s, p)
		}
	}
}

func (m *memberModel) missing(s *propagate.State, p propagate.Place) (missing []propagate.Awaited) {
	for _, a := range s.Awaits(p.Cluster, p.ID) {
		if digest, there := m.copies[a.Place]; a.Content == nil || !there || digest != a.Content.Digest {
			missing = append(missing, a)
		}
	}
	return missing
}

func (m *memberModel) remove(s *propagate.State, p propagate.Place) {
	delete(m.copies, p)
	if !m.moved[p] || s.Bindings.At(p.Key()) == nil || expelled(s.Snapshot.Clusters.At(p.Cluster)) {
		return
	}
	for other := range m.copies {
		if other.ID == p.ID {
			return
		}
	}
	m.t.Fatalf("%s moved away from %s, which had the only copy\n%s\n%s", p.ID, p.Cluster, m.h.story(), print(s, nil))
}

func expelled(c *fleet.Cluster) bool {
	return slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
}

// settled expects that what is there still, and should not be, waits for somebody who
// cannot have it: who is held or blocked, or is not in the fleet.
func (m *memberModel) settled(s *propagate.State) {
	for p := range m.copies {
		removal := s.Removal(p.Cluster, p.ID)
		if removal == nil || removal.Preserve || worksOf(s, p.Key())[p.Cluster] != nil || s.Snapshot.Clusters.At(p.Cluster) == nil {
			continue
		}
		missing := m.missing(s, p)
		if len(missing) == 0 {
			m.t.Fatalf("%s is on %s, and nothing keeps it there\n%s", p.ID, p.Cluster, m.h.story())
		}
		for _, a := range missing {
			if w := worksOf(s, a.Key())[a.Cluster]; w != nil && !w.Held && w.Blocked == "" {
				m.t.Fatalf("%s stays on %s for %s, which has all that it can have\n%s", p.ID, p.Cluster, a.For(p.ID), m.h.story())
			}
		}
	}
}
