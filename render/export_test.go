// SPDX-License-Identifier: Apache-2.0

package render

import "io/fs"

// Affected counts the units of b that are new, or read something in prev's
// tree that is different in fsys.
func (b *Build) Affected(prev *Build, fsys fs.FS) (n int) {
	for name, u := range b.units.All() {
		if before := prev.units.At(name); before == nil || before.root != u.root || !before.current(fsys) {
			n++
		}
	}
	return n
}
