// SPDX-License-Identifier: Apache-2.0

package web

import (
	"sync"
	"sync/atomic"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
)

// views keeps the overviews that were asked for last. The one of a commit is made once,
// however many ask for it.
type views struct {
	mu    sync.Mutex
	known []*view
}

// view is the overview of a commit, compared with what members had.
type view struct {
	commit, members string
	once            sync.Once
	made            atomic.Bool
	*overview
}

// maxViews is how many overviews are kept.
const maxViews = 8

// of returns the overview that a request is about.
func (v *views) of(q *request) *overview {
	return v.at(q.commit.Hash, q.state, q.line.log, q.members())
}

// at returns the overview of a state.
func (v *views) at(commit string, state *propagate.State, log *history.Log, members *Members) *overview {
	version := ""
	if members != nil {
		version = members.Version()
	}
	found, last := v.find(commit, version)
	found.once.Do(func() {
		if last != nil {
			found.overview = last.after(state, last.commit, commit, log, members)
		}
		if found.overview == nil {
			found.overview = newOverview(state, commit, log, members)
		}
		found.made.Store(true)
	})
	return found.overview
}

// find returns the view of a commit, and the one that was used last of those that were compared
// with the same and are made; nil if there is none.
func (v *views) find(commit, members string) (found, last *view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, known := range v.known {
		if known.commit == commit && known.members == members {
			copy(v.known[1:i+1], v.known[:i])
			v.known[0] = known
			return known, last
		}
		if last == nil && known.members == members && known.made.Load() {
			last = known
		}
	}
	added := &view{commit: commit, members: members}
	v.known = append([]*view{added}, v.known[:min(len(v.known), maxViews-1)]...)
	return added, last
}

// clear forgets everything.
func (v *views) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = nil
}
