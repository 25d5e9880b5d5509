// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"maps"
	"slices"
)

// Affected counts the units of b that are new, or read something that differs
// between prev's tree and fsys.
func (b *Build) Affected(prev *Build, fsys fs.FS) (n int) {
	for name, u := range b.units.All() {
		if before := prev.units.At(name); before == nil || before.root != u.root || !before.current(fsys) {
			n++
		}
	}
	return n
}

// Own picks a unit, and the files that only it reads.
func (b *Build) Own(i int) (name string, own []string) {
	var names []string
	for name := range b.units.All() {
		if name != settingsFile {
			names = append(names, name)
		}
	}

	if len(names) == 0 {
		return "", nil
	}

	name = names[i%len(names)]
	for _, file := range b.Reads(name) {
		others := 0
		for _, u := range b.units.All() {
			if _, reads := u.reads[file]; reads {
				others++
			}
		}

		if s := b.units.At(name).reads[file]; others == 1 && s != absent && s != directory {
			own = append(own, file)
		}
	}

	return name, own
}

// Reads returns all paths that a unit looked at.
func (b *Build) Reads(unit string) []string {
	return slices.Sorted(maps.Keys(b.units.At(unit).reads))
}

// Broken reports whether a unit is broken.
func (b *Build) Broken(unit string) bool { return b.frozen[unit] }

// Has reports whether there is such a unit.
func (b *Build) Has(unit string) bool { return b.units.At(unit) != nil }
