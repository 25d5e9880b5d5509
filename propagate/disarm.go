// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// rules adds findings about edits that send nothing today and change what later
// commits do (decision 39). Without them a plan says that nothing changes.
func (p *planner) rules() {
	for d := range ordered.Diff(p.base.snapshot().Policies, p.head.snapshot().Policies) {
		if d.Had {
			p.losesTemplates(d.Before, d.After)
		}
		if d.Has && (!d.Had || !reflect.DeepEqual(d.Before.Spec.ResourceSelectors, d.After.Spec.ResourceSelectors)) {
			p.selectsNothing(d.After)
		}
		if d.Had && d.Has {
			p.conflictChanged(d.Before, d.After)
			p.preserveChanged(d.Before, d.After)
			p.holdsChanged(d.Before, d.After)
			p.wavesChanged(d.Before, d.After)
		}
	}
	p.gatesChanged()
	p.fleetWavesChanged()
}

func (p *planner) rule(code string, severity fleet.Severity, policy *fleet.Policy, at fleet.Origin, format string, args ...any) {
	p.findings = append(p.findings, fleet.Finding{Code: code, Severity: severity, Policy: policy.Ref, Origin: at,
		Message: policy.Ref.String() + " " + fmt.Sprintf(format, args...)})
}

// losesTemplates tells of templates that stay in git and have no policy any more.
func (p *planner) losesTemplates(before, after *fleet.Policy) {
	var lost []object.ID
	copies := 0
	for id := range p.base.index.claimedBy(before.Ref) {
		b := p.head.Bindings.At(id.Key())
		if _, stays := p.head.snapshot().Templates.Get(id.Key()); !stays || b != nil && b.Claim != nil {
			continue
		}
		lost = append(lost, id)
		for i := range b.works() {
			if b.Works[i].Released != nil {
				copies++
			}
		}
	}

	if len(lost) == 0 {
		return
	}

	which := lost[0].String()
	if more := len(lost) - 1; more > 0 {
		which += fmt.Sprintf(" and %s more", count(more, "template"))
	}
	code, how, at := fleet.FindingPolicyUnmatched, "no longer matches", before.Origin
	if after == nil {
		code, how = fleet.FindingPolicyRemoved, "is removed"
	} else {
		at = after.At("spec.resourceSelectors")
	}
	p.rule(code, fleet.SeverityCaution, before, at, "%s: no policy has %s any more; %s, and later edits do not arrive", how, which, staying(copies))
}

func staying(copies int) string {
	if copies == 1 {
		return "1 copy stays as it is"
	}
	return fmt.Sprintf("%d copies stay as they are", copies)
}

// works are those of a binding that may be missing.
func (b *Binding) works() []Work {
	if b == nil {
		return nil
	}
	return b.Works
}

// selectsNothing tells of selectors that no template matches, with what may have
// been meant.
func (p *planner) selectsNothing(policy *fleet.Policy) {
	for i := range policy.Selectors {
		s := &policy.Selectors[i]
		if p.matched(s) {
			continue
		}
		path := fmt.Sprintf("spec.resourceSelectors[%d]", i)
		p.rule(fleet.FindingSelectsNothing, fleet.SeverityCaution, policy, policy.AtAny(path, "spec.resourceSelectors"), "selects nothing with %s%s", s.Text(), p.meant(s))
	}
}

func (p *planner) matched(s *fleet.Selector) bool {
	for t := range p.head.index.selected(*s) {
		if s.Matches(t) {
			return true
		}
	}
	return false
}

// meant is the kind or the name that a selector may have meant.
func (p *planner) meant(s *fleet.Selector) string {
	kinds, names := map[string]bool{}, map[string]bool{}
	for t := range p.head.snapshot().Templates.Values() {
		kinds[t.Kind] = true
		if t.Kind == s.Kind {
			names[t.Name] = true
		}
	}

	near := ""
	switch {
	case !kinds[s.Kind]:
		near = fleet.Nearest(s.Kind, slices.Collect(maps.Keys(kinds)))
	case s.Name != "" && !names[s.Name]:
		near = fleet.Nearest(s.Name, slices.Collect(maps.Keys(names)))
	}
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

func (p *planner) conflictChanged(before, after *fleet.Policy) {
	was, is := before.Spec.ConflictResolution, after.Spec.ConflictResolution
	switch {
	case was == is:
	case is == policyv1alpha1.ConflictOverwrite:
		p.rule(fleet.FindingConflictChanged, fleet.SeverityCaution, after, after.At("spec.conflictResolution"), "takes over objects that are not the fleet's (conflictResolution %s -> %s)", was, is)
	default:
		p.rule(fleet.FindingConflictChanged, fleet.SeverityNotice, after, after.At("spec.conflictResolution"), "no longer takes over objects that are not the fleet's (conflictResolution %s -> %s)", was, is)
	}
}

func (p *planner) preserveChanged(before, after *fleet.Policy) {
	was, is := fleet.ImmediateOf(before).Keeps(), fleet.ImmediateOf(after).Keeps()
	at := after.At("spec.preserveResourcesOnDeletion")
	switch {
	case was && !is:
		p.rule(fleet.FindingPreserveChanged, fleet.SeverityCaution, after, at, "no longer leaves running what is removed (preserveResourcesOnDeletion true -> false)")
	case !was && is:
		p.rule(fleet.FindingPreserveChanged, fleet.SeverityNotice, after, at, "leaves running what is removed (preserveResourcesOnDeletion false -> true)")
	}
}

// holdsChanged tells what changed about holds that stay.
func (p *planner) holdsChanged(before, after *fleet.Policy) {
	by := map[string][]string{} // clusters, by what changed
	for _, cluster := range held(after) {
		if !slices.Contains(held(before), cluster) {
			continue
		}
		was, _ := before.Note(cluster)
		is, _ := after.Note(cluster)
		if text := noteChange(was, is); text != "" {
			by[text] = append(by[text], cluster)
		}
	}

	for _, text := range slices.Sorted(maps.Keys(by)) {
		p.rule(fleet.FindingHoldChanged, fleet.SeverityNotice, after, after.At("metadata.annotations."+fleetv1alpha1.AnnotationHolds), "changes the hold of %s: %s", strings.Join(by[text], ", "), text)
	}
}

// held are what a policy suspends: names of clusters, or AllClusters.
func held(p *fleet.Policy) []string {
	everywhere, names := p.Suspended()
	if everywhere {
		return []string{fleetv1alpha1.AllClusters}
	}
	return names
}

func noteChange(was, is fleetv1alpha1.Hold) string {
	var changes []string
	for _, f := range []struct{ name, was, is string }{
		{"by", was.By, is.By}, {"reason", was.Reason, is.Reason}, {"until", was.Until, is.Until}, {"ticket", was.Ticket, is.Ticket},
	} {
		if f.was != f.is {
			changes = append(changes, fmt.Sprintf("%s %q -> %q", f.name, f.was, f.is))
		}
	}
	return strings.Join(changes, ", ")
}

func (p *planner) wavesChanged(before, after *fleet.Policy) {
	if !reflect.DeepEqual(before.Waves, after.Waves) {
		p.rule(fleet.FindingWavesChanged, fleet.SeverityNotice, after, after.At("metadata.annotations."+fleetv1alpha1.AnnotationWaves), "changes its waves: %s -> %s", waves(before.Waves), waves(after.Waves))
	}
}

// fleetWavesChanged is about the waves of fairlead.yaml, which many policies have.
func (p *planner) fleetWavesChanged() {
	before, after := p.base.snapshot().Settings.Waves(), p.head.snapshot().Settings.Waves()
	if p.base.Snapshot == nil || reflect.DeepEqual(before, after) {
		return
	}

	p.findings = append(p.findings, fleet.Finding{Code: fleet.FindingWavesChanged, Severity: fleet.SeverityNotice, Origin: p.settingsOrigin(),
		Message: fmt.Sprintf("the waves of policies without waves of their own change (spec.waves): %s -> %s", waves(before), waves(after))})
}

func waves(all [][]string) string {
	if len(all) == 0 {
		return "none"
	}
	var parts []string
	for _, wave := range all {
		parts = append(parts, strings.Join(wave, ","))
	}
	return strings.Join(parts, " | ")
}

func (p *planner) gatesChanged() {
	for _, name := range slices.Sorted(maps.Keys(fleet.Gates())) {
		was, is := p.base.snapshot().Gate(name), p.head.snapshot().Gate(name)
		if p.base.Snapshot == nil || was == is {
			continue
		}
		p.findings = append(p.findings, fleet.Finding{Code: fleet.FindingGateChanged, Severity: fleet.SeverityCaution, Origin: p.settingsOrigin(),
			Message: fmt.Sprintf("feature gate %s: %v -> %v", name, was, is)})
	}
}
