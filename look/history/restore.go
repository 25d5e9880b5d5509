// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/render"
	"github.com/fairlead/fairlead/source"
)

// Engine is the version of what determines digests: the rules and the rendering.
var Engine = fmt.Sprintf("%d.%d", propagate.Version, render.Version)

// Restore restores a saved state: it reads the commits whose content is in effect.
// The next commit is read on top of the accepted one.
func Restore(saved *propagate.Saved, history *History) (propagate.State, error) {
	if saved.Derived == "" && saved.Commit != "" {
		// A checkpoint of a version in which fleets had no names.
		var err error
		if saved.Derived, _, err = history.derived(saved.Commit); err != nil {
			return propagate.State{}, err
		}
	}

	snapshots := map[string]*fleet.Snapshot{}
	if saved.Accepted == "" {
		return saved.Restore(snapshots)
	}
	accepted, err := history.Accepted(saved.Accepted, saved.Frozen)
	if err != nil {
		return propagate.State{}, err
	}

	snapshots[saved.Accepted] = accepted
	for _, commit := range saved.Needs(accepted) {
		if snapshots[commit], err = history.Snapshot(commit); err != nil {
			return propagate.State{}, err
		}
		if saved.Redigested && !snapshots[commit].Whole() {
			return propagate.State{}, fmt.Errorf("units were frozen at commit %s, and their content at that time is not kept", source.Short(commit))
		}
	}

	state, err := saved.Restore(snapshots)
	if err != nil {
		return state, err
	}
	return history.intern(propagate.State{}, state), nil
}
