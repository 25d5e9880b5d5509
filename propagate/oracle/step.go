// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"
	"sort"
)

type step struct {
	commit   string
	old      *State
	next     *State
	was, now *fleet
	// removed are the bindings of templates that this commit removed, as they
	// would be if it had not (rule 12).
	removed map[string]*Binding
}

// Step folds a commit.
func (r *Reader) Step(s *State, c Commit) *State {
	refused := *s
	refused.Commit, refused.Verdict, refused.Deletes = c.Hash, "refused", ""
	refused.Time = max(s.Time, c.Time)
	if c.Files == nil {
		return &refused
	}
	now, err := r.fleet(c.Files)
	if err != nil {
		return &refused
	}
	was := s.fleet
	if was == nil {
		was = &fleet{}
	} else if now.holdsStrangers(was) {
		return &refused
	}
	st := &step{commit: c.Hash, old: s, was: was, now: now, removed: map[string]*Binding{}}
	st.next = &State{
		Commit: c.Hash, Accepted: c.Hash, Time: refused.Time, fleet: now, hour: s.hour,
		Bindings: map[string]*Binding{},
		Departed: map[string]map[string]Gone{},
		Left:     map[string]map[string]Gone{},
	}
	for _, definitions := range []bool{true, false} { // they bring what others need
		for key, t := range now.templates {
			if (t.kind == "CustomResourceDefinition") == definitions {
				st.next.Bindings[key] = st.decide(t, was.templates[key])
			}
		}
	}
	for key, t := range was.templates {
		if now.templates[key] == nil {
			st.removed[key] = st.asIfItStayed(t)
		}
	}
	st.works()
	works := 0
	for _, b := range st.next.Bindings {
		works += len(b.Works)
	}
	if works > 2_000_000 { // what a step may cost is limited
		return &refused
	}
	st.level()
	st.depart()
	st.inherit()
	st.used()
	if deletes, tooMuch := st.guard(); tooMuch {
		allowed := false
		for _, a := range c.Allows {
			allowed = allowed || a == deletes
		}
		if !allowed {
			held := refused
			held.Verdict, held.Deletes = "held", deletes
			return &held
		}
		st.next.hour = nil
	}
	return st.next
}

// holdsStrangers reports whether a hold names a cluster that the fleet does not have
// and that it did not name before (decision 36).
func (f *fleet) holdsStrangers(was *fleet) bool {
	strangers := func(names, before []string) bool {
		for _, name := range names {
			if !f.has(name) && !slices.Contains(before, name) {
				return true
			}
		}
		return false
	}
	for key, p := range f.policies {
		var before []string
		if q := was.policies[key]; q != nil {
			before = q.brakes.On
		}
		if strangers(p.brakes.On, before) {
			return true
		}
	}
	for key, t := range f.templates {
		var before []string
		if q := was.templates[key]; q != nil {
			before = q.own.On
		}
		if strangers(t.own.On, before) {
			return true
		}
	}
	return false
}

// decide is everything about a template but its works: who claims it, what of
// it is active, what waits, what holds it, and where it goes by itself.
func (st *step) decide(t, before *template) *Binding {
	was := st.old.Bindings[t.key]
	switch {
	case was == nil:
		was = &Binding{}
	case was.Removed: // it is created anew; what ran on knows its content
		was = &Binding{template: was.template, TemplateCommit: was.TemplateCommit, Works: was.Works}
	}
	b := &Binding{}
	*b = *was
	b.Works = map[string]*Work{}
	if !was.Own && was.Claim == "" && len(was.Works) == 0 {
		b.template = nil // nobody knew it
	}
	b.own = t.own
	c := st.claim(was, t, before)
	b.Claim = ""
	if c.by != nil {
		b.Claim = c.by.key
	}
	st.activate(b, t, c)
	st.pend(b, was, t, c)
	st.brake(b, was, t, c)
	switch {
	case !b.Own:
		b.placement = placement{}
	case c.by == nil:
		b.placement = st.now.lose(was.placement)
	default:
		changed := was.Claim == "" || b.TemplateCommit == st.commit || b.PolicyCommit == st.commit
		b.placement = st.place(was.placement, b, changed)
	}
	b.Targets, b.Scheduled = b.placement.targets, b.placement.reason
	return b
}

// claim is who has a template in this step.
type claim struct {
	by, winner *policy // the claimer, and who would win from scratch
	// touched is that it was created or updated, or that its policy was
	// activated on purpose, which counts as that.
	touched bool
	// waited is that it was created or updated while nothing matched, and is
	// claimed now.
	waited bool
}

// claim is rules 11 and 14.
func (st *step) claim(was *Binding, t, before *template) claim {
	c := claim{touched: before == nil || before.update != t.update}
	if t.labels["resourcetemplate.karmada.io/claimed-by"] != "" {
		return c // somebody else has it
	}
	c.winner = st.now.winner(t)
	c.by = st.now.policies[was.Claim]
	if c.by != nil && c.by.matches(t) == 0 {
		if before != nil && c.by.matches(before) > 0 {
			c.touched = true // it was its labels that left the claim
		}
		c.by = nil
	}
	if st.now.static {
		switch {
		case c.by != nil:
			c.touched = c.touched || st.onPurpose(c.by)
		case c.winner != nil:
			c.touched = c.touched || st.onPurpose(c.winner)
			c.waited = was.unmatched
		}
		if c.touched || c.waited {
			c.by = c.winner
		}
		return c
	}
	if c.by == nil {
		c.by = c.winner
	} else if p := st.now.preemptor(t, c.by); p != nil && st.now.preemption {
		c.by = p
	}
	c.touched = c.touched || c.by != nil && st.onPurpose(c.by)
	return c
}

// activate is rule 13.
func (st *step) activate(b *Binding, t *template, c claim) {
	delays := c.by != nil && (c.by.lazy || st.now.static)
	active := c.by != nil && (c.touched || !delays || c.waited && !c.by.lazy)
	if c.by == nil && c.touched {
		b.unmatched = true
	}
	if !active && b.Own {
		return
	}
	// What requires a template that was never active has it as it is.
	if b.template == nil || b.template.content != t.content {
		b.TemplateCommit = st.commit
	}
	b.template = t
	if !active {
		return
	}
	if !b.Own || b.policy.delayed != c.by.delayed || b.policy.key != c.by.key {
		b.PolicyCommit = st.commit
	}
	b.Own, b.policy, b.Policy, b.unmatched = true, c.by, c.by.key, false
}

// pend says what waits, measured against the claimer, and under StaticPolicy
// against the policy that would win (rules 11 and 13).
func (st *step) pend(b, was *Binding, t *template, c claim) {
	measure := c.by
	if st.now.static {
		measure = c.winner
	}
	b.Reason, b.Since = "", ""
	switch {
	case measure != nil && b.settled(measure, t):
	case measure != nil && measure.lazy:
		b.Reason = "LazyPolicyPending"
	case measure != nil:
		b.Reason = "StaticPolicyPending"
	case b.Own && b.template.update != t.update:
		b.Reason = "NoMatchingPolicy"
	}
	if b.Reason != "" {
		b.Since = st.commit
		if was.Reason == b.Reason {
			b.Since = was.Since
		}
	}
}

// onPurpose: the annotation appeared on a policy that was there, or changed
// its value (rule 13).
func (st *step) onPurpose(p *policy) bool {
	before := st.was.policies[p.key]
	return before != nil && p.activate != "" && p.activate != before.activate
}

// settled reports whether nothing of a policy and a template waits: what is active
// is no different (rule 13).
func (b *Binding) settled(p *policy, t *template) bool {
	return b.Own && b.policy.delayed == p.delayed && b.template.update == t.update
}

// brake is rule 12.
func (st *step) brake(b, was *Binding, t *template, c claim) {
	switch {
	case !b.Own && c.by == nil:
		b.Brakes = Brakes{}
	case !b.Own:
		b.Brakes = c.by.brakes
	case c.by == nil && st.now.static && c.winner != nil:
		b.Brakes = c.winner.brakes
	case c.by == nil:
		// the last ones stay
	case b.settled(c.by, t):
		b.Brakes = c.by.brakes
	case was.Claim != c.by.key:
		b.Brakes = was.Brakes.plus(c.by.brakes)
	default:
		if before := st.was.policies[c.by.key]; before == nil || before.braked != c.by.braked {
			b.Brakes = c.by.brakes
		}
	}
}

// asIfItStayed is the binding that a removed template would have.
func (st *step) asIfItStayed(t *template) *Binding {
	b := st.decide(t, t)
	if was := st.old.Bindings[t.key]; was != nil && was.Claim != "" && st.now.policies[was.Claim] == nil {
		*b = *was // its policy went with it
		b.own = t.own
		b.Works = map[string]*Work{}
	}
	b.Removed = true
	return b
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
