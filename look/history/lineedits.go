// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"
)

// mostDiffed is the size of a file beyond which it is one edit as a whole.
const mostDiffed = 1 << 20

// editsOf returns the places in which a file differs. A file that comes or goes, or is
// too large, is one edit.
func editsOf(before, after []byte) []edit {
	whole := []edit{{line: 1, from: 0, to: len(lines(after)), oldFrom: 0, oldUpTo: len(lines(before))}}
	if before == nil || after == nil || len(before) > mostDiffed || len(after) > mostDiffed {
		return whole
	}

	all, ok := parseEdits(diff.Diff("before", before, "after", after))
	if !ok || len(all) == 0 {
		return whole
	}
	return all
}

// parseEdits returns the edits of a unified diff, and whether it is one.
func parseEdits(unified []byte) (all []edit, ok bool) {
	var old, at int // the next line of each side
	within := false // of a hunk
	open := false   // the last edit may go on
	for _, line := range bytes.SplitAfter(unified, []byte("\n")) {
		switch {
		case bytes.HasPrefix(line, []byte("@@ ")):
			var was, is int
			if _, err := fmt.Sscanf(string(line), "@@ -%d,%d +%d,%d @@", &old, &was, &at, &is); err != nil {
				return nil, false
			}
			old, at = old-min(was, 1), at-min(is, 1) // a side without lines counts from 0
			within, open = true, false
		case !within || len(line) == 0:
			continue
		case line[0] == ' ':
			old, at, open = old+1, at+1, false
		case line[0] == '-', line[0] == '+':
			if !open {
				all = append(all, edit{line: at + 1, from: at, oldFrom: old})
				open = true
			}
			if line[0] == '-' {
				old++
			} else {
				at++
			}
			all[len(all)-1].to, all[len(all)-1].oldUpTo = at, old
		}
	}
	return all, true
}
