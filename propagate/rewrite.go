// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"

	"github.com/fairlead/fairlead/fleet"
)

// TrailerAllowRewrite accepts that the branch was rewritten since a commit.
const TrailerAllowRewrite = "Fairlead-Allow-Rewrite"

// Rewrite goes from old to the fold of a rewritten branch in one step (fold
// rule 5): what old had released and the new line does not want is removed, and
// the guard counts it. Where the new line removed it itself, its tombstone says
// whether the copy is left running; else the immediate fields do. The trailer
// that confirms is searched in c, the new line's head with all the trailers of
// the line. If it fails, the old state stays.
func Rewrite(old, line State, c Commit) (next State) {
	defer recovered(func() { next = old.refuse(c, nil, []fleet.Problem{defect}) })

	next = line
	next.remember(&old)
	r := &removals{prev: &old, next: &next, commit: c.Hash}
	for key, b := range old.Bindings.All() {
		now := line.Bindings.At(key)
		keep := b.inForce().Keeps()
		if now != nil {
			keep = now.inForce().Keeps()
		}

		r.addAs(b, now, func(cluster string) bool {
			if removal := cmp.Or(line.Tombstones.At(key).on(cluster), line.Detached.At(key).on(cluster)); removal != nil {
				return removal.Preserve
			}
			return keep
		})
	}

	r.inherit(&old)

	if line.Snapshot == nil {
		return line
	}
	if guard, _ := newGuard(&old, &next, c, r.deletions); guard != nil {
		return old.refuse(c, guard, guard.problems())
	}
	return next
}

// inherit takes over the tombstones of another line, where nothing is wanted and
// this line has none.
func (r *removals) inherit(old *State) {
	for key, tombstone := range old.Tombstones.All() {
		for _, removal := range tombstone.Clusters {
			if r.next.Bindings.At(key).workOn(removal.Cluster) != nil || r.next.Tombstones.At(key).on(removal.Cluster) != nil {
				continue
			}
			r.next.Tombstones = r.next.Tombstones.With(key, r.next.Tombstones.At(key).with(tombstone.ID, tombstone.APIVersion, removal))
		}
	}
}
