// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// Whether one process folds a line of commits that are refused or await confirmation,
// or each of them a process of its own: the states are the same (R06).
func TestRestartsInALineChangeNothing(t *testing.T) {
	refused, held := 0, 0
	for seed := range uint64(3) {
		g := sourcetest.New(t)
		randomLine(g, rand.New(rand.NewPCG(seed, 1)))
		repo, err := source.Open(g.Dir)
		if err != nil {
			t.Fatal(err)
		}

		one := history.New(repo, ".")
		commits, err := one.Commits("", g.Head())
		if err != nil {
			t.Fatal(err)
		}
		var whole []string
		last, err := one.Fold(propagate.State{}, commits, func(_ *source.Commit, s propagate.State) error {
			whole = append(whole, told(t, &s))
			if s.Refusal != nil && s.Refusal.Guard == nil {
				refused++
			} else if s.Refusal != nil {
				held++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		state := propagate.State{}
		for i, c := range commits {
			// What a process knows of the last commit is gone.
			if state, err = history.New(repo, ".").Fold(state, commits[i:i+1], nil); err != nil {
				t.Fatal(err)
			}
			if got := told(t, &state); got != whole[i] {
				t.Fatalf("seed %d, commit %d (%s) is\n%s\nafter a restart, and else\n%s", seed, i, c.Subject, got, whole[i])
			}
		}
		if last.Refusal != nil {
			t.Errorf("seed %d ends refused: %v", seed, last.Refusal.Problems)
		}
	}
	if refused < 15 || held < 5 {
		t.Errorf("%d commits refused and %d held: too few to tell", refused, held)
	}
}

// told is what a state decides.
func told(t *testing.T, s *propagate.State) string {
	t.Helper()
	b, err := json.Marshal(struct {
		Commit, Accepted string
		Refusal          *propagate.Refusal
		Bindings         []*propagate.Binding
	}{s.Commit, s.Accepted, s.Refusal, all(s)})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func all(s *propagate.State) (bindings []*propagate.Binding) {
	for b := range s.Bindings.Values() {
		bindings = append(bindings, b)
	}
	return bindings
}

// randomLine commits a fleet, and edits that break it, delete too much of it and mend it.
func randomLine(g *sourcetest.Repo, rng *rand.Rand) {
	template := func(n int, value string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {a: '%s'}\n", n, value)
	}
	begin := map[string]string{
		"fairlead.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: 0}\n", "clusters.yaml": twoClusters,
		"policy.yaml":          "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p, namespace: default}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n",
		"k/kustomization.yaml": "resources: [c9.yaml]\nnamePrefix: k-\n", "k/c9.yaml": template(9, "1"),
	}
	for n := range 6 {
		begin[fmt.Sprintf("c%d.yaml", n)] = template(n, "1")
	}
	g.Commit("begin", begin)

	for range 40 {
		n := rng.IntN(6)
		name := fmt.Sprintf("c%d.yaml", n)
		switch rng.IntN(9) {
		case 0:
			g.Commit("break", map[string]string{name: "broken: ["})
		case 1:
			g.Commit("delete", map[string]string{name: "# nothing\n"})
		case 2:
			g.Commit("twice", map[string]string{name: template((n+1)%6, "2")})
		case 3:
			g.Commit("kustomization", map[string]string{"k/kustomization.yaml": fmt.Sprintf("resources: [c9.yaml]\nnamePrefix: k%d-\n", rng.IntN(3))})
		case 4:
			g.Commit("another kustomization", map[string]string{fmt.Sprintf("k%d/kustomization.yaml", n): "resources: [../k]\nnameSuffix: -s\n"})
		default:
			g.Commit("edit", map[string]string{name: template(n, fmt.Sprint(rng.IntN(3)))})
		}
	}
	begin["c0.yaml"] += "# mended\n"
	for n := range 6 {
		begin[fmt.Sprintf("k%d/kustomization.yaml", n)] = sourcetest.Delete
	}
	g.Commit("mend", begin)
}
