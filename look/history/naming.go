// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"slices"
	"sync"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/source"
)

// derived returns the name of a fleet that gives itself none, as of a commit: it
// is that of the commit at which the fold begins, also for looks that begin later
// (decision 33). Before says that the fold began at the root until some commit
// said otherwise; it is the name from there, or "". A clone that lacks the
// beginning knows neither.
func (h *History) derived(commit string) (name, before string, err error) {
	commits, err := h.repo.History("", commit)
	if shallow := (*source.ShallowError)(nil); errors.As(err, &shallow) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}

	begin := max(slices.IndexFunc(commits, begins), 0)
	name = object.DerivedFleetName(commits[begin].Hash, h.path)
	if begin > 0 {
		before = object.DerivedFleetName(commits[0].Hash, h.path)
	}
	return name, before, nil
}

// Holds tells of commits whether they are of the history up to head. It walks the
// history as far as it is asked for, and may be asked from many goroutines.
func Holds(repo *source.Repo, head string) func(commit string) bool {
	var mu sync.Mutex
	seen, next := map[string]bool{}, head
	return func(commit string) bool {
		mu.Lock()
		defer mu.Unlock()
		if seen[commit] || next == "" || commit != head && !repo.Has(commit) {
			return seen[commit]
		}

		// What cannot be read is not known to be of it.
		next, _ = repo.Nearest(next, func(hash string) bool {
			seen[hash] = true
			return hash == commit
		})
		return seen[commit]
	}
}
