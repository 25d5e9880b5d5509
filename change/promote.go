// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
)

// Promote resumes the next wave of clusters, or all waves up to one.
type Promote struct {
	Policy, Namespace string // "" is every policy with waves
	Next              bool
	To                string // a number, counted from 1, or a name of fairlead.yaml
}

// Name returns the name from which a branch name is derived.
func (f *Promote) Name() string {
	switch {
	case f.Policy != "":
		return "promote-" + path.Base(f.Policy)
	case f.To != "":
		return "promote-to-wave-" + f.To
	}
	return "promote-next"
}

// Check requires a target: the next wave, or a number.
func (f *Promote) Check() error {
	n, err := strconv.Atoi(f.To)
	switch {
	case f.Next == (f.To != ""):
		return optionf("specify --next or --to WAVE")
	case err == nil && n < 1:
		return optionf("--to %d: waves are counted from 1", n)
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
	wave := next(p.now, p.waves)
	switch {
	case f.To != "":
		if wave, err = s.wave(p, f.To); err != nil {
			return err
		}
	case len(p.waves) == 0 && everywhere:
		return fmt.Errorf("%s is suspended everywhere and has no waves, so there is no next cluster: name one with fairlead resume, or list the waves in spec.waves of %s or in the annotation %s", p.title, fleet.SettingsFile, fleetv1alpha1.AnnotationWaves)
	case len(p.waves) == 0 && len(held) > 0:
		c.subject = "fleet: promote " + p.title + " to " + held[0]
		return s.release(p, held[:1], "", c)
	}

	clusters := suspendedIn(p.now, p.waves, wave)
	if len(clusters) == 0 {
		c.tell(p, "%s", nothingLeft(p, f.upTo(wave)))
		return nil
	}

	c.subject = c.on(fmt.Sprintf("fleet: promote %s to wave %d", p.title, wave), clusters)
	return s.release(p, clusters, fmt.Sprintf(" (wave %d of %d)", wave, len(p.waves)), c)
}

// every promotes all policies with suspended clusters in the waves up to f.To, or
// without it up to the earliest wave in which any of them has one.
func (f *Promote) every(s *Session, c *Edit) error {
	wave, named, err := f.everyTo(s)
	if err != nil {
		return err
	}

	names := map[string]int{}
	var refs []fleet.PolicyRef
	for p := range s.in.Snapshot.Policies.Values() {
		names[p.Ref.Name]++
		if f.Namespace != "" && p.Ref.Namespace != f.Namespace {
			continue
		}
		if named && len(p.Waves) > 0 {
			continue // its own waves have no names
		}
		refs = append(refs, p.Ref)
		if n := next(p, s.in.Snapshot.WavesOf(p)); f.Next && n > 0 && (wave == 0 || n < wave) {
			wave = n
		}
	}

	without := 0
	var clusters []string
	for _, ref := range refs {
		p := s.in.Snapshot.Policies.At(ref.Key())
		waves := s.in.Snapshot.WavesOf(p)
		if len(waves) == 0 && len(report.Held(p)) > 0 {
			without++
		}
		if wave == 0 || len(suspendedIn(p, waves, wave)) == 0 {
			continue
		}
		found, err := s.policyOf(ref, titleOf(ref, names[ref.Name] == 1))
		if err != nil {
			return err
		}
		released := suspendedIn(found.now, found.waves, wave)
		if err := s.release(found, released, fmt.Sprintf(" (wave %d of %d of %s)", min(wave, len(found.waves)), len(found.waves), found.title), c); err != nil {
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

// everyTo is the number of the wave that f.To means for every policy, 0 for the next
// one. named reports whether it is a name of fairlead.yaml.
func (f *Promote) everyTo(s *Session) (wave int, named bool, err error) {
	if f.To == "" {
		return 0, false, nil
	}
	if wave, err = strconv.Atoi(f.To); err == nil {
		return wave, false, nil
	}
	if wave = s.in.Snapshot.Settings.Wave(f.To); wave == 0 {
		return 0, false, fmt.Errorf("spec.waves of %s has no wave %q", fleet.SettingsFile, f.To)
	}
	return wave, true, nil
}

// upTo is the wave up to which clusters were looked for, 0 for all.
func (f *Promote) upTo(wave int) int {
	if f.Next {
		return 0
	}
	return wave
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
func next(p *fleet.Policy, waves [][]string) int {
	for i := range waves {
		if len(suspendedIn(p, waves, i+1)) > 0 {
			return i + 1
		}
	}
	return 0
}

// suspendedIn lists the suspended clusters of the waves up to one.
func suspendedIn(p *fleet.Policy, waves [][]string, wave int) (clusters []string) {
	everywhere, names := p.Suspended()
	for _, of := range waves[:min(wave, len(waves))] {
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
	for _, wave := range p.waves {
		waves = append(waves, wave...)
	}

	if _, others := split(names, waves); len(others) > 0 {
		text += "; suspended and in none of its waves: " + strings.Join(others, " ")
	}

	return text
}
