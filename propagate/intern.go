// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"reflect"

	"github.com/fairlead/fairlead/ordered"
)

// Intern returns a state in which the bindings that are others than in before, and equal to
// those of like, are those of like: the two have one copy of them in memory. The state is
// equal to the one it is given.
func Intern(before *State, after State, like *State) State {
	for d := range ordered.Diff(before.Bindings, after.Bindings) {
		if !d.Has {
			continue
		}
		if b := like.Bindings.At(d.Key); b != nil && b != d.After && reflect.DeepEqual(b, d.After) {
			after.Bindings = after.Bindings.With(d.Key, b)
		}
	}
	return after
}

// samePolicy reports whether the same version of a policy is in effect. Of states that were
// not folded one from the other, each may have a copy.
func (a *Active) samePolicy(b *Active) bool {
	return a.Policy == b.Policy || reflect.DeepEqual(a.Policy, b.Policy)
}

func (a *Active) same(b *Active) bool { return a == b || reflect.DeepEqual(a, b) }
