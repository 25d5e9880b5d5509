// SPDX-License-Identifier: Apache-2.0

package render

import "fmt"

// What one unit may use and produce. Kustomize compares every object with every
// other in each kustomization that it passes through: 5,000 take it some ten
// seconds, and 50,000 would take it twenty minutes. There is no limit in seconds,
// as the same commit must come out alike on every machine.
const (
	maxUses    = 10_000 // kustomizations, each counted as often as it is used
	maxObjects = 5_000
	maxPairs   = 2 * maxObjects * maxObjects
	maxOutput  = 64 << 20
)

// toll is what kustomize has to do for a kustomization and all that it uses,
// each counted as often as it is used.
type toll struct {
	uses    int // kustomizations, itself included
	objects int
	pairs   int  // of objects that are compared
	told    bool // that it is too much
}

func (t *toll) add(used toll) {
	t.uses += used.uses
	t.objects += used.objects
	t.pairs += used.pairs
	t.told = t.told || used.told
}

// excess says what is too much; "" when nothing is.
func (t *toll) excess() string {
	switch {
	case t.uses > maxUses:
		return fmt.Sprintf("kustomization uses more than %d kustomizations", maxUses)
	case t.objects > maxObjects:
		return fmt.Sprintf("kustomization makes more than %d objects, and kustomize compares each with every other: split it, or leave what needs no kustomize outside as plain files", maxObjects)
	case t.pairs > maxPairs:
		return fmt.Sprintf("kustomization passes its %d objects through too many others, in each of which kustomize compares every one with every other: split it, or leave what needs no kustomize outside as plain files", t.objects)
	}
	return ""
}

// bounded keeps sums in range.
func (t toll) bounded() toll {
	return toll{min(t.uses, maxUses), min(t.objects, maxObjects), min(t.pairs, maxPairs), t.told}
}
