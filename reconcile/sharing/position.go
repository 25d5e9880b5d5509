// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"strconv"
	"strings"

	"github.com/fairlead/fairlead/reconcile"
)

// A position is how far something is folded: a commit, and where the members were observed
// the moment of the last entry of the log as well: 4d1f8e2…@1732435200. Leases say so of
// what was sent, so that nobody goes back behind an observation either.

// position is that of a commit, after the observations of a moment; 0 is none.
func position(commit string, at int64) string {
	if at == 0 || commit == "" {
		return commit
	}
	return commit + "@" + strconv.FormatInt(at, 10)
}

// parsePosition is the inverse of position.
func parsePosition(s string) (commit string, at int64, ok bool) {
	commit, moment, logged := strings.Cut(s, "@")
	if !logged {
		return s, 0, true
	}
	at, err := strconv.ParseInt(moment, 10, 64)
	return commit, at, err == nil && at > 0 && at < latest
}

// latest is later than any moment, in seconds since 1970.
const latest = 1 << 33

// folded is what the Leases know of the history: a line, and what is observed on it.
type folded struct {
	line *reconcile.Line
}

func (f folded) Head() string {
	at, _ := f.line.Observed()
	return position(f.line.Head(), at)
}

// Position orders by commit, and at one commit by moment. What is observed later than what
// is folded is not known.
func (f folded) Position(s string) (int, bool) {
	commit, at, ok := parsePosition(s)
	if seen, _ := f.line.Observed(); !ok || at > seen {
		return -1, false
	}
	on, ok := f.line.Position(commit)
	if !ok {
		return -1, false
	}
	return on*latest + int(at), true
}

// Replaces reports whether a position may be left behind: the branch says so of its commit,
// or the log does not have its moment any more.
func (f folded) Replaces(s string) bool {
	commit, at, ok := parsePosition(s)
	if !ok {
		return false
	}
	seen, all := f.line.Observed()
	if at > seen && !all {
		return false // what comes next in the log may be it
	}
	_, on := f.line.Position(commit)
	return on && at > seen || f.line.Replaces(commit)
}
