// SPDX-License-Identifier: Apache-2.0

package ordered

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A Map behaves like a Go map with sorted keys, older versions never change,
// and Diff equals a comparison of the two Go maps.
func TestMapAgainstGoMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[a-e]{1,3}`)
		var m Map[int]
		model := map[string]int{}
		old, oldModel := m, maps.Clone(model)
		for range rapid.IntRange(0, 60).Draw(t, "edits") {
			k := key.Draw(t, "key")
			switch rapid.IntRange(0, 9).Draw(t, "edit") {
			case 0:
				old, oldModel = m, maps.Clone(model)
			case 1, 2, 3:
				m = m.Without(k)
				delete(model, k)
			default:
				v := rapid.IntRange(0, 3).Draw(t, "value")
				m = m.With(k, v)
				model[k] = v
			}
		}

		same(t, m, model)
		same(t, old, oldModel)
		same(t, Of(model), model)
		if got, want := shape(Of(model).root), shape(m.root); got != want {
			t.Fatalf("Of makes %s, With %s", got, want)
		}

		var want []Change[int]
		keys := maps.Clone(model)
		maps.Copy(keys, oldModel)

		for _, k := range slices.Sorted(maps.Keys(keys)) {
			b, had := oldModel[k]
			a, has := model[k]
			if had != has || a != b {
				want = append(want, Change[int]{k, b, a, had, has})
			}
		}

		if got := slices.Collect(Diff(old, m)); !slices.Equal(got, want) {
			t.Fatalf("Diff = %v, want %v", got, want)
		}

		start := key.Draw(t, "start")
		for k := range m.From(start) {
			if k < start {
				t.Fatalf("From(%q) yields %q", start, k)
			}
		}
	})
}

func same(t *rapid.T, m Map[int], model map[string]int) {
	t.Helper()
	if m.Len() != len(model) {
		t.Fatalf("Len = %d, want %d", m.Len(), len(model))
	}

	var keys []string
	for k, v := range m.All() {
		keys = append(keys, k)
		if model[k] != v || m.At(k) != v {
			t.Fatalf("%q = %d, want %d", k, v, model[k])
		}
	}

	if !slices.IsSorted(keys) {
		t.Fatalf("keys out of order: %q", keys)
	}
}

// The shape depends only on the keys, not on the order of the edits.
func TestShapeIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfDistinct(rapid.StringMatching(`[a-z]{1,4}`), rapid.ID).Draw(t, "keys")
		shuffled := rapid.Permutation(keys).Draw(t, "shuffled")
		var a, b Map[int]
		for i := range keys {
			a, b = a.With(keys[i], 0), b.With(shuffled[i], 0)
		}

		if s, z := shape(a.root), shape(b.root); s != z {
			t.Fatalf("%s\n%s", s, z)
		}
	})
}

func shape(n *node[int]) string {
	if n == nil {
		return "."
	}
	return fmt.Sprintf("(%s %s %s)", shape(n.left), n.key, shape(n.right))
}

// Diff finds one edit of a large map without visiting the rest.
func TestDiffCostFollowsTheChange(t *testing.T) {
	var m Map[int]
	for i := range 100_000 {
		m = m.With(fmt.Sprint("key-", i), i)
	}

	edited := m.With("key-777", -1)
	allocs := testing.AllocsPerRun(10, func() {
		n := 0
		for range Diff(m, edited) {
			n++
		}
		if n != 1 {
			t.Fatalf("%d changes, want 1", n)
		}
	})

	if allocs > 10 {
		t.Errorf("Diff of one edit allocates %v times", allocs)
	}
}
