// SPDX-License-Identifier: Apache-2.0

package propagate

import "slices"

// Deleted is what the commits of one minute deleted, and how many works the fleet
// had before that.
type Deleted struct {
	Minute int64 `json:"minute"` // since 1970
	Count  int   `json:"count"`
	Works  int   `json:"works"`
}

// hour is how many minutes the guard looks back (decision 45).
const hour = 60

// later is the time of a commit: its committer date, but never earlier than the
// commit before it, since clocks differ.
func (s *State) later(c Commit) int64 { return max(s.Time, c.Time) }

// lastHour are the deletions of the hour up to a time.
func lastHour(recent []Deleted, time int64) []Deleted {
	for i, d := range recent {
		if d.Minute > time/60-hour {
			return recent[i:]
		}
	}
	return nil
}

// deletedNow is what was deleted in the hour up to a time, with what a commit of
// that time deletes from a fleet with so many works. A minute is one entry, so the
// hour has sixty whatever the number of commits.
func deletedNow(recent []Deleted, time int64, count, works int) []Deleted {
	recent = lastHour(recent, time)
	if count == 0 {
		return recent
	}

	recent = slices.Clone(recent)
	if last := len(recent) - 1; last >= 0 && recent[last].Minute == time/60 {
		recent[last].Count += count
		recent[last].Works = max(recent[last].Works, works)
		return recent
	}
	return append(recent, Deleted{time / 60, count, works})
}

// together adds up what was deleted, and says how many works the fleet had when
// it had most: a fleet that only shrinks had them at the beginning.
func together(recent []Deleted) (count, works int) {
	for _, d := range recent {
		count += d.Count
		works = max(works, d.Works)
	}
	return count, works
}
