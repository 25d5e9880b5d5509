// SPDX-License-Identifier: Apache-2.0

package history

import (
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/render"
)

// Known is a state that a History has folded, with what its tree was rendered to. It does
// not change, so many may have it.
type Known struct {
	State propagate.State
	build *render.Build
}

// Known returns the state that this History has folded last, so that others of the same
// repository can share it; nil if its tree is not what was rendered last.
func (h *History) Known(state propagate.State) *Known {
	for _, r := range []*reading{&h.last, &h.accepted} {
		if r.build != nil && r.snapshot == state.Snapshot {
			return &Known{state, r.build}
		}
	}
	return nil
}

// Like has what is folded from now on share with a known state whatever is equal in it: in
// a process that has the state anyway, another fold costs the memory of what differs, and
// of the tree only that is rendered. It changes nothing of what is folded. nil ends it.
func (h *History) Like(k *Known) {
	h.like = k
	if k == nil {
		h.renderer.Like(nil)
		return
	}
	h.renderer.Like(k.build)
}

// intern has one copy of what a step has changed and the known state has.
func (h *History) intern(before, after propagate.State) propagate.State {
	if h.like == nil {
		return after
	}
	return propagate.Intern(&before, after, &h.like.State)
}
