// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"path"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
)

// Promote resumes the next wave of clusters, or all waves up to one.
type Promote struct {
	Policy, Namespace string // "" is every policy with waves
	Next              bool
	To                int // counted from 1
}

// Name returns the name from which a branch name is derived.
func (f *Promote) Name() string {
	switch {
	case f.Policy != "":
		return "promote-" + path.Base(f.Policy)
	case f.To > 0:
		return fmt.Sprintf("promote-to-wave-%d", f.To)
	}
	return "promote-next"
}

// Check requires a target: the next wave, or a number.
func (f *Promote) Check() error {
	switch {
	case f.Next == (f.To != 0):
		return optionf("specify --next or --to WAVE")
	case f.To < 0:
		return optionf("--to %d: waves are counted from 1", f.To)
	}
	return nil
}

// Edit lifts the holds of the wave.
func (f *Promote) Edit(s *Session) (Edit, error) {
	var c Edit
	if f.Policy != "" {
		err := f.one(s, &c)
		return c, err
	}
	err := f.every(s, &c)
	return c, err
}

// one promotes the named policy.
func (f *Promote) one(s *Session, c *Edit) error {
	p, err := s.policy(f.Namespace, f.Policy)
	if err != nil {
		return err
	}

	everywhere, held := p.now.Suspended()
	switch {
	case f.To > 0:
		if _, err := p.wave(fmt.Sprint(f.To)); err != nil {
			return err
		}
	case len(p.now.Waves) == 0 && everywhere:
		return fmt.Errorf("%s is suspended everywhere and has no waves, so there is no next cluster: name one with fairlead resume, or list the waves in the annotation %s", p.title, fleetv1alpha1.AnnotationWaves)
	case len(p.now.Waves) == 0 && len(held) > 0:
		c.subject = "fleet: promote " + p.title + " to " + held[0]
		return s.release(p, held[:1], "", c)
	}

	wave := f.To
	if f.Next {
		wave = next(p.now)
	}
	clusters := suspendedIn(p.now, wave)
	if len(clusters) == 0 {
		c.tell(p, "%s", nothingLeft(p, f.To))
		return nil
	}

	c.subject = c.on(fmt.Sprintf("fleet: promote %s to wave %d", p.title, wave), clusters)
	return s.release(p, clusters, fmt.Sprintf(" (wave %d of %d)", wave, len(p.now.Waves)), c)
}

// every promotes all policies with suspended clusters in the waves up to f.To, or
// without it up to the earliest wave in which any of them has one.
func (f *Promote) every(s *Session, c *Edit) error {
	wave := f.To
	names := map[string]int{}
	var refs []fleet.PolicyRef
	for p := range s.in.Snapshot.Policies.Values() {
		names[p.Ref.Name]++
		if f.Namespace != "" && p.Ref.Namespace != f.Namespace {
			continue
		}
		refs = append(refs, p.Ref)
		if n := next(p); f.Next && n > 0 && (wave == 0 || n < wave) {
			wave = n
		}
	}

	without := 0
	var clusters []string
	for _, ref := range refs {
		p := s.in.Snapshot.Policies.At(ref.Key())
		if len(p.Waves) == 0 && len(report.Held(p)) > 0 {
			without++
		}
		if wave == 0 || len(suspendedIn(p, wave)) == 0 {
			continue
		}
		found, err := s.policyOf(ref, titleOf(ref, names[ref.Name] == 1))
		if err != nil {
			return err
		}
		released := suspendedIn(found.now, wave)
		if err := s.release(found, released, fmt.Sprintf(" (wave %d of %d of %s)", min(wave, len(found.now.Waves)), len(found.now.Waves), found.title), c); err != nil {
			return err
		}
		_, more := split(released, clusters)
		clusters = append(clusters, more...)
	}

	if without > 0 {
		s.note("%s with a suspension and without waves: unchanged", report.Count(without, "polic"))
	}
	if len(c.policies) == 0 {
		c.Said = append(c.Said, "no policy has a suspended cluster in "+upTo(wave))
		return nil
	}

	slices.Sort(clusters)
	c.subject = c.on(fmt.Sprintf("fleet: promote to wave %d", wave), clusters)
	return nil
}

func upTo(wave int) string {
	if wave == 0 {
		return "its waves"
	}
	return fmt.Sprintf("waves 1 to %d", wave)
}

// release lifts the holds of a promotion.
func (s *Session) release(p *Policy, clusters []string, wave string, c *Edit) error {
	c.policies = append(c.policies, p)
	c.tell(p, "resumed %s%s", strings.Join(clusters, " "), wave)
	return s.lift(p, clusters)
}

// next returns the first wave that has a suspended cluster, or 0.
func next(p *fleet.Policy) int {
	for i := range p.Waves {
		if len(suspendedIn(p, i+1)) > 0 {
			return i + 1
		}
	}
	return 0
}

// suspendedIn lists the suspended clusters of the waves up to one.
func suspendedIn(p *fleet.Policy, wave int) (clusters []string) {
	everywhere, names := p.Suspended()
	for _, of := range p.Waves[:min(wave, len(p.Waves))] {
		for _, name := range of {
			if everywhere || slices.Contains(names, name) {
				clusters = append(clusters, name)
			}
		}
	}

	return clusters
}

// nothingLeft explains why there is nothing to promote.
func nothingLeft(p *Policy, to int) string {
	_, names := p.now.Suspended()
	text := fmt.Sprintf("%s suspends no cluster of %s", p.title, upTo(to))
	if len(names) == 0 {
		return p.title + " suspends nothing"
	}

	var waves []string
	for _, wave := range p.now.Waves {
		waves = append(waves, wave...)
	}

	if _, others := split(names, waves); len(others) > 0 {
		text += "; suspended and in none of its waves: " + strings.Join(others, " ")
	}

	return text
}
