// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"maps"
	"slices"
)

// SortedIDs returns the IDs of a set, sorted by Key.
func SortedIDs(set map[ID]bool) []ID {
	return slices.SortedFunc(maps.Keys(set), func(a, b ID) int { return cmp.Compare(a.Key(), b.Key()) })
}
