// SPDX-License-Identifier: Apache-2.0

package render

import "fmt"

// Limits of one unit. In each kustomization that objects pass through,
// kustomize compares every object with every other: 5,000 objects take it about
// ten seconds, 50,000 would take twenty minutes. The limits are not in seconds,
// because a commit must give the same result on every machine.
const (
	maxUses    = 10_000 // kustomizations, counted each time they are used
	maxObjects = 5_000
	maxPairs   = 2 * maxObjects * maxObjects
	maxOutput  = 64 << 20
)

// cost is the work of building a kustomization and everything it uses. What is
// used twice counts twice.
type cost struct {
	uses     int // kustomizations, including itself
	objects  int
	pairs    int  // of objects to compare
	reported bool // an exceeded limit was already reported
}

func (t *cost) add(used cost) {
	t.uses += used.uses
	t.objects += used.objects
	t.pairs += used.pairs
	t.reported = t.reported || used.reported
}

// exceeded names the limit that is exceeded and says what to do; "" if none is.
func (t *cost) exceeded() string {
	switch {
	case t.uses > maxUses:
		return fmt.Sprintf("kustomization uses more than %d kustomizations", maxUses)
	case t.objects > maxObjects:
		return fmt.Sprintf("kustomization makes more than %d objects, and kustomize compares each with every other: split it, or move what does not need kustomize into plain files outside", maxObjects)
	case t.pairs > maxPairs:
		return fmt.Sprintf("kustomization passes its %d objects through too many others, in each of which kustomize compares every one with every other: split it, or move what does not need kustomize into plain files outside", t.objects)
	}

	return ""
}

// clamped keeps sums in range.
func (t cost) clamped() cost {
	return cost{min(t.uses, maxUses), min(t.objects, maxObjects), min(t.pairs, maxPairs), t.reported}
}
