// SPDX-License-Identifier: Apache-2.0

package propagate

import "cmp"

// TrailerAllowRewrite accepts that the branch was rewritten since a commit.
const TrailerAllowRewrite = "Fairlead-Allow-Rewrite"

// Rewrite goes from old to the fold of a rewritten branch in one step (fold
// rule 5): what old had released and the new line does not want departs, and
// the guard counts it. Where the new line let go of it itself, it says whether
// that stays; else the brakes say. A confirmation is looked for in c, the new
// line's head with all the trailers of the line.
func Rewrite(old, line State, c Commit) State {
	st := &step{commit: c, prev: &old, next: line}
	for key, b := range old.Bindings.All() {
		now := line.Bindings.At(key)
		keep := b.Brakes.Keeps()
		if now != nil {
			keep = now.Brakes.Keeps()
		}
		st.departAs(b, now, func(cluster string) bool {
			if g := cmp.Or(line.Departed.At(key).on(cluster), line.Left.At(key).on(cluster)); g != nil {
				return g.Preserve
			}
			return keep
		})
	}
	for key, a := range old.Departed.All() {
		for _, g := range a.Clusters {
			if now := st.next.Bindings.At(key); now != nil && now.Work(g.Cluster) != nil {
				continue
			}
			if st.next.Departed.At(key).on(g.Cluster) == nil {
				st.next.Departed = st.next.Departed.With(key, st.next.Departed.At(key).with(a.ID, a.APIVersion, g))
			}
		}
	}
	if line.Snapshot == nil {
		return line
	}
	st.units()
	if guard := st.guard(); guard != nil {
		return old.refuse(c, guard, guard.problems())
	}
	return st.next
}
