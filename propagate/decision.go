// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/schedule"
)

// inputs are what a decision about one template reads.
type inputs struct {
	before *State // this step
	after  *State // as far as it is decided

	commit string // the hash that new decisions bear

	// now is the moment of what was observed, in seconds since 1970; 0 in a
	// step that folds a commit, which takes no time.
	now     int64
	removed map[Place]bool // objects that are confirmed to be removed

	// changed are clusters, before and after, about which more changed than
	// their room.
	changed []*schedule.Cluster
	fresh   map[string]bool              // what is placed anew, by ID.Key()
	answers map[*fleet.Template]*answers // of scripts, each run once
	cost    *cost
}

func newInputs(before, after *State, commit string) *inputs {
	return &inputs{before: before, after: after, commit: commit,
		removed: map[Place]bool{}, fresh: map[string]bool{}, answers: map[*fleet.Template]*answers{}, cost: &cost{}}
}

// claims are the claims on templates, as both snapshots make them.
func (in *inputs) claims() claims {
	return claims{in.before.snapshot(), in.after.snapshot(), &in.after.index}
}

// failover is what was observed up to now.
func (in *inputs) failover() failover {
	return failover{in.after.snapshot(), in.after.Seen, in.now, in.removed}
}

// holds is a commit whose tree has what a unit is in this step: an earlier one
// where the unit is frozen.
func (in *inputs) holds(unit string) string {
	if commit := in.after.Frozen[unit]; commit != "" {
		return commit
	}
	return in.commit
}

// decision makes the binding of one template. It writes nothing but that
// binding, so a reader can make one to see what would be decided.
type decision struct {
	*inputs
	old      *Binding // before this step; nil without
	template *fleet.Template
	needed   need // by its owners

	verdict   verdict // set by claim
	activates bool    // set by claim
	b         *Binding
}

// claim decides who has the template, and whether that makes it active. It is
// first, as a template that no policy has and no owner needs has no binding.
func (d *decision) claim() {
	c := d.claims()
	d.verdict = c.claim(d.old, d.template)
	d.activates = c.activates(d.verdict)
}

// waits reports whether the template has no binding yet: it waits for a policy,
// or for the overrides that its policy depends on.
func (d *decision) waits() bool {
	p := d.verdict.policy
	return d.forOwners() && len(d.needed.on) == 0 && (p == nil || d.after.snapshot().WaitsFor(p))
}

// forOwners reports whether the template was never active on its own, and is
// not now: it goes where its owners need it, with its current content.
func (d *decision) forOwners() bool {
	return !d.activates && (d.old == nil || d.old.attached())
}

// decide makes the binding, once claim has decided who has the template.
func (d *decision) decide() *Binding {
	if d.forOwners() {
		d.attach()
		d.work()
		return d.b
	}

	d.b = &Binding{ID: d.template.ID, Claim: d.verdict.ref()}
	d.b.Unmatched = !d.activates && (d.old.Unmatched || d.verdict.policy == nil && d.verdict.touched)

	// Every stage below uses what is active, which can be older than what is in
	// git.
	d.activate()

	// These fields act in this step, pending or not. Only where the claim moved
	// do they depend on what became active.
	d.immediate()

	// What is pending is the difference between git and what is active.
	d.pending()

	// Scripts count the replicas to place and name the objects to require.
	d.interpret()

	// Targets that are given up have to be known before others are chosen.
	d.evict()
	d.schedule()

	// Without a target nothing is required.
	d.require()

	// The works need everything above.
	d.work()
	return d.b
}

// ref names the claiming policy, nil without one.
func (v verdict) ref() *fleet.PolicyRef {
	if v.policy == nil {
		return nil
	}
	return &v.policy.Ref
}
