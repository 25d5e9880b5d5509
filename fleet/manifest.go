// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"sync"

	"github.com/fairlead/fairlead/object"
)

// manifest is the object of a template, at hand or where it can be read again.
type manifest struct {
	once   sync.Once
	load   func() map[string]any // nil where it is at hand
	object map[string]any
}

// Object is the whole object after defaulting (decision 25), without the fields that
// only a server writes. Nobody may write to it.
func (m *manifest) Object() map[string]any {
	if m == nil {
		return nil
	}
	m.once.Do(func() {
		if m.load != nil {
			m.object, m.load = m.load(), nil
		}
	})
	return m.object
}

// KindNames are the names of the kinds that the templates define.
func (s *Snapshot) KindNames() object.KindNames {
	kinds := object.KindNames{}
	for t := range s.Templates.Values() {
		if t.GroupKind() == object.CRD {
			kinds.Define(t.ID, t.Object())
		}
	}
	return kinds
}

// Unavailable is the panic of an object that was at hand when its snapshot was made, and
// cannot be read any more: nothing follows from that for the fleet. What looks at
// snapshots of a cache turns it into an error.
type Unavailable struct{ Err error }

// Error implements error.
func (u Unavailable) Error() string { return fmt.Sprintf("an object cannot be read again: %v", u.Err) }

// Unwrap returns what it could not be read for.
func (u Unavailable) Unwrap() error { return u.Err }

// Recovered reports whether what recover returned is a panic about what was computed. One
// about this machine goes on.
func Recovered(r any) bool {
	if lost, ok := r.(Unavailable); ok {
		panic(lost)
	}
	return r != nil
}
