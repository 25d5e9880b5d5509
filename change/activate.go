// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"path"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"

	"github.com/fairlead/fairlead/source"
)

// Activate puts the deferred changes of a policy into effect.
type Activate struct {
	Policy, Namespace string
	Value             string // of the annotation; "" is the short hash of the parent commit
}

// Name returns the name from which a branch name is derived.
func (f *Activate) Name() string { return "activate-" + path.Base(f.Policy) }

// Check accepts every value.
func (f *Activate) Check() error { return nil }

// Edit gives the policy's annotation fairlead.dev/activate a new value.
func (f *Activate) Edit(s *Session) (Edit, error) {
	p, err := s.policy(f.Namespace, f.Policy)
	if err != nil {
		return Edit{}, err
	}
	value, err := f.newValue(s, p)
	if err != nil {
		return Edit{}, err
	}
	if err := p.doc.Activate(value); err != nil {
		return Edit{}, err
	}

	waiting := 0
	for b := range s.state.Bindings.Values() {
		if b.Claim != nil && *b.Claim == p.now.Ref && b.Pending != nil {
			waiting++
		}
	}

	if waiting == 0 {
		s.note("nothing waits for %s", p.title)
	}
	c := Edit{policies: []*Policy{p}, subject: "fleet: activate " + p.title}
	c.tell(p, "activated %s with %s", p.title, value)
	return c, nil
}

// newValue returns a value that differs from that of the annotation: only a change
// of it activates.
func (f *Activate) newValue(s *Session, p *Policy) (string, error) {
	if f.Value != "" && f.Value == p.now.Activate {
		return "", fmt.Errorf("%s: the annotation %s is %q already, and only a change of it activates", p.now.Origin, fleetv1alpha1.AnnotationActivate, f.Value)
	}
	if f.Value != "" {
		return f.Value, nil
	}

	base := source.Short(s.base.Hash)
	value := base
	for n := 2; value == p.now.Activate; n++ {
		value = fmt.Sprintf("%s-%d", base, n)
	}

	return value, nil
}
