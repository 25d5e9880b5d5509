// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"iter"

	"github.com/fairlead/fairlead/fleet"
)

// Trailer is a "Key: value" line at the end of a commit message.
type Trailer struct {
	Key, Value string
}

// Commit is one step's input: a first-parent commit of the tracked branch.
type Commit struct {
	Hash string

	// Derived is the name that the commit gives the fleet if it begins the fold, and
	// Formerly one that was derived for it until now; else "".
	Derived, Formerly string

	// Time is the committer date, in seconds since 1970.
	Time int64

	// Trailers are those of the commit's own message, and not of what it merges
	// (decision 46).
	Trailers []Trailer

	// Snapshot is nil when the tree could not be read, rendered or validated;
	// Problems then says why. A commit with the tree of the accepted one
	// carries its very Snapshot.
	Snapshot *fleet.Snapshot
	Problems []fleet.Problem
}

// values yields the trailers' values under key.
func (c Commit) values(key string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, t := range c.Trailers {
			if t.Key == key && !yield(t.Value) {
				return
			}
		}
	}
}
