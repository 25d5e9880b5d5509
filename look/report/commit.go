// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/source"
)

// CommitInfo is a commit as reports print it.
type CommitInfo struct {
	Commit  string    `json:"commit"`
	Subject string    `json:"subject"`
	Author  string    `json:"author"`
	Date    time.Time `json:"date"` // when it was written
}

// NewCommitInfo returns nil for nil, a commit that was not walked.
func NewCommitInfo(c *source.Commit) *CommitInfo {
	if c == nil {
		return nil
	}
	return &CommitInfo{c.Hash, c.Subject, c.Author, c.Authored}
}

// commitInfos returns the walked commits of hashes; it is empty, not nil, if there
// are none.
func commitInfos(t *history.Timeline, hashes []string) []CommitInfo {
	all := []CommitInfo{}
	for _, hash := range hashes {
		if c := NewCommitInfo(t.Commit(hash)); c != nil {
			all = append(all, *c)
		}
	}
	return all
}

// told reads "e55a9f0, 2 days ago: web 1.18.2".
func (c *CommitInfo) told(now time.Time) string {
	if c == nil {
		return "an unknown commit"
	}
	return fmt.Sprintf("%s, %s: %s", source.Short(c.Commit), age(now.Sub(c.Date)), c.Subject)
}

// age reads "2 days ago".
func age(d time.Duration) string {
	for _, unit := range []struct {
		name string
		long time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if n := int(d / unit.long); n > 0 {
			return Count(n, unit.name) + " ago"
		}
	}

	return "just now"
}
