// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/fairlead/fairlead/fleet"

// deferred lists what waits for its template to change: what would happen if
// the policies that would claim it were activated now.
func (p *planner) deferred() {
	for b := range p.head.Bindings.Values() {
		p.waiting(b)
	}
}

// Waiting is what waits for the template of a binding to change: what would
// happen, by cluster, if the policy that claims it were activated now.
func (s *State) Waiting(b *Binding) []Cell {
	p := newPlanner(s, s)
	p.waiting(b)
	return p.cells
}

// waiting lists what waits for one template to change.
func (p *planner) waiting(b *Binding) {
	t := p.head.snapshot().Templates.At(b.Key())
	if b.Pending == nil || b.Pending.Policy == nil || t == nil {
		return
	}
	policy, ok := p.head.snapshot().Policies.Get(b.Pending.Policy.Key())
	if !ok || p.head.snapshot().WaitsFor(policy) {
		return
	}

	// A step that activates the policy would make the same decision.
	d := &decision{
		inputs:    newInputs(p.head, p.head, p.head.Accepted),
		old:       b,
		template:  t,
		needed:    needOf(b.ID, p.head.owners(b.ID)),
		verdict:   verdict{policy: policy},
		activates: true,
	}
	would := d.decide()

	for _, cluster := range clustersOf(b, would) {
		p.defers(b, would, policy, cluster)
	}
}

// defers adds the cell of what would happen on one cluster.
func (p *planner) defers(b, would *Binding, policy *fleet.Policy, cluster string) {
	c := Cell{Object: b.ID, APIVersion: would.Active.Template.APIVersion, Cluster: cluster, Policy: policy.Ref,
		Disposition: Deferred, Because: []Because{{"static-policy", policy.Origin}}}
	if policy.Lazy() {
		c.Because[0].Code = "lazy-policy"
	}

	was, is := b.Work(cluster), would.Work(cluster)
	var runs, wants *Content
	if was != nil {
		runs = was.Want
	}

	switch {
	case is != nil:
		wants = is.Want
		c.Action = p.action(runs, wants)
	case would.inForce().Keeps():
		c.Action = ActionPreserve
	default:
		c.Action = ActionDelete
	}

	if c.Action == ActionNone {
		return
	}

	c.Runs, c.Wants, c.Already = runs, wants, p.base != p.head && p.base.Bindings.At(b.Key()) == b
	c.Replicas = replicaChange(would, runs, runs, wants)
	p.cells = append(p.cells, c)
}
