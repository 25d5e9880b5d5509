// SPDX-License-Identifier: Apache-2.0

package fleet

import "slices"

// Nearest is the name that a misspelt one was probably meant to be: the one with
// the fewest letters that differ, "" if that is more than every third.
func Nearest(misspelt string, names []string) (best string) {
	slices.Sort(names)
	least := max(1, len(misspelt)/3) + 1
	for _, name := range names {
		if n := distance(misspelt, name); n < least {
			best, least = name, n
		}
	}
	return best
}

// distance is how many letters have to be added, left out or replaced to get from one
// word to the other.
func distance(from, to string) int {
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(from) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(to) {
			replaced := corner
			if from[i] != to[j] {
				replaced++
			}
			corner = row[j+1]
			row[j+1] = min(replaced, corner+1, row[j]+1)
		}
	}
	return row[len(to)]
}
