// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// TrailerSkip in the message of a commit has an earlier one, which it names by its full
// hash, refused unread (fold rule 3): the last way out of a commit that cannot be read
// at all. Only the messages of first-parent commits count.
const TrailerSkip = "Fairlead-Skip"

// skips are the commits that a commit's own message names.
func skips(c *source.Commit) (hashes []string) {
	for _, t := range c.Trailers {
		if t.Key == TrailerSkip {
			hashes = append(hashes, t.Value)
		}
	}
	return hashes
}

// skipped maps each of the commits that a later one skips to that one.
func skipped(commits []*source.Commit) map[string]string {
	by, earlier := map[string]string{}, map[string]bool{}
	for _, c := range commits {
		for _, hash := range skips(c) {
			if earlier[hash] && by[hash] == "" {
				by[hash] = c.Hash
			}
		}
		earlier[c.Hash] = true
	}
	return by
}

// Unsettled counts the first of these commits at which the fold is not the one that
// ends there, because a later one skips one of them. Such a state is not kept.
func Unsettled(commits []*source.Commit) (n int) {
	earlier := map[string]bool{}
	for i, c := range commits {
		for _, hash := range skips(c) {
			if earlier[hash] {
				n = i
			}
		}
		earlier[c.Hash] = true
	}
	return n
}

// SkipsEarlier reports whether one of these commits skips one that comes before all of
// them. A state that was folded with it is not that of this history any more, and is
// folded again from the beginning.
func (h *History) SkipsEarlier(commits []*source.Commit) (bool, error) {
	among := map[string]bool{}
	for _, c := range commits {
		for _, hash := range skips(c) {
			if among[hash] || commits[0].Parent == "" {
				continue
			}
			found, err := h.repo.Nearest(commits[0].Parent, func(on string) bool { return on == hash })
			if found != "" || err != nil {
				return found != "", err
			}
		}
		among[c.Hash] = true
	}
	return false, nil
}

// input reads a commit, unless it is skipped.
func (h *History) input(c *source.Commit, on *propagate.State, skipped map[string]string) (propagate.Commit, error) {
	return h.unlessSkipped(c, on, skipped, func(h *History, on *propagate.State) (propagate.Commit, error) { return h.Read(c, on) })
}

// unlessSkipped is input with another way of reading the commit.
func (h *History) unlessSkipped(c *source.Commit, on *propagate.State, skipped map[string]string, read func(*History, *propagate.State) (propagate.Commit, error)) (propagate.Commit, error) {
	by := skipped[c.Hash]
	if by == "" {
		return read(h, on)
	}

	in, err := h.unread(c, on)
	in.Problems = []fleet.Problem{{Message: fmt.Sprintf("it is skipped, and was not read: commit %s says so (%s)", source.Short(by), TrailerSkip)}}
	return in, err
}
