// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"path"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// Resume lifts a hold.
type Resume struct{ Hold }

// Name returns the name from which a branch name is derived.
func (f *Resume) Name() string { return "resume-" + path.Base(f.Policy) }

// Check requires clusters, or All.
func (f *Resume) Check() error { return f.check() }

// Edit removes clusters from the policy's suspension.
func (f *Resume) Edit(s *Session) (Edit, error) {
	p, err := s.policy(f.Namespace, f.Policy)
	if err != nil {
		return Edit{}, err
	}

	c := Edit{policies: []*Policy{p}}
	everywhere, held := p.now.Suspended()
	switch {
	case !everywhere && len(held) == 0:
		c.tell(p, "%s suspends nothing", p.title)
	case f.All:
		c.subject = "fleet: resume " + p.title + " everywhere"
		what := strings.Join(held, " ")
		if everywhere {
			what = "everywhere"
		}
		c.tell(p, "resumed %s", what)
		err = errors.Join(p.doc.ResumeAll(), p.doc.ForgetAll())
	default:
		err = f.some(s, p, &c)
	}

	return c, err
}

func (f *Resume) some(s *Session, p *Policy, c *Edit) error {
	clusters, err := s.expand(p, f.Clusters)
	if err != nil {
		return err
	}

	everywhere, held := p.now.Suspended()
	if everywhere {
		held = clusters
	}
	resumed, others := split(clusters, held)
	if len(others) > 0 {
		c.tell(p, "%s does not suspend %s", p.title, strings.Join(others, " "))
	}
	if len(resumed) == 0 {
		return nil
	}

	c.subject = c.on("fleet: resume "+p.title, resumed)
	c.tell(p, "resumed %s", strings.Join(resumed, " "))
	return s.lift(p, resumed)
}

// lift removes clusters and their notes from a policy's suspension.
func (s *Session) lift(p *Policy, clusters []string) error {
	everywhere, held := p.now.Suspended()
	if everywhere {
		return s.name(p, clusters)
	}
	if err := p.doc.Resume(clusters...); err != nil {
		return err
	}
	if _, left := split(held, clusters); len(left) == 0 {
		return p.doc.ForgetAll()
	}

	return p.doc.Forget(clusters...)
}

// name replaces a hold on every cluster by one on those that the policy can
// reach, except for some.
func (s *Session) name(p *Policy, but []string) error {
	_, left := split(s.state.Reaches(p.now), but)
	if len(left) == 0 {
		return errors.Join(p.doc.ResumeAll(), p.doc.ForgetAll())
	}

	s.note("%s was suspended everywhere: the other clusters that it can reach are named now; one that joins later is not held", p.title)
	if err := p.doc.HoldOnly(left...); err != nil {
		return err
	}

	if all, ok := p.now.Holds[fleetv1alpha1.AllClusters]; ok {
		others := slices.DeleteFunc(left, func(name string) bool { _, own := p.now.Holds[name]; return own })
		if err := p.doc.Note(all, others...); err != nil {
			return err
		}
	}

	return p.doc.Forget(append(slices.Clone(but), fleetv1alpha1.AllClusters)...)
}
