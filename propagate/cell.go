// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// binding plans the works of one binding, and what is worth saying about it.
func (p *planner) binding(before, after *Binding) {
	for _, cluster := range clustersOf(before, after) {
		if _, inFleet := p.head.snapshot().Clusters.Get(cluster); !inFleet {
			continue // nothing is sent to a cluster that left
		}

		var was, is *Work
		if before != nil {
			was = before.Work(cluster)
		}
		if was == nil {
			was = detachedWork(p.base, cmp.Or(after, before).ID, cluster)
		}
		if after != nil {
			is = after.Work(cluster)
		}

		if is == nil {
			p.removed(before, after, was)
			continue
		}
		p.stays(before, after, was, is)
	}

	if after != nil && after != before {
		p.bindingFindings(before, after)
	}
}

// clustersOf are the clusters on which bindings have works, by name.
func clustersOf(bindings ...*Binding) []string {
	names := map[string]bool{}
	for _, b := range bindings {
		if b == nil {
			continue
		}
		for _, w := range b.Works {
			names[w.Cluster] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// removed plans a work that is not wanted any more.
func (p *planner) removed(before, after *Binding, was *Work) {
	if was.Released == nil {
		return // it was held from the beginning: nothing is there
	}

	c := Cell{Object: before.ID, APIVersion: was.Released.APIVersion, Cluster: was.Cluster, Policy: before.Active.Policy.Ref,
		Action: ActionDelete, Disposition: Now, Runs: was.Released}

	removal := p.head.Removal(was.Cluster, before.ID)
	c.Because = append(c.Because, p.why.removed(before, after, was.Cluster))
	policy := p.why.policy(before)
	if removal != nil && removal.Preserve {
		c.Action = ActionPreserve
		c.Because = append(c.Because, p.why.preserved(before))
	}

	for _, a := range p.head.Awaits(was.Cluster, before.ID) {
		c.After = append(c.After, a.For(before.ID))
	}

	stays := was.Released // as it is, only without our marks
	if c.Action == ActionDelete {
		stays = nil
	}
	c.Replicas = replicaChange(before, was.Released, stays, stays)
	c.DependsOn = after.dependsOn()
	p.cells = append(p.cells, c)

	held := was.Held && !before.evicts(was.Cluster) || after != nil && after.inForce().Hold(was.Cluster)
	switch {
	case c.Action == ActionPreserve && after != nil:
		p.departs(before, was.Cluster, fleet.FindingOrphanOnMove, p.why.preserved(before).Origin, "%s leaves %s, where its copy keeps running: it is preserved on deletion")
	case c.Action == ActionDelete && held && after != nil && !before.attached():
		p.departs(before, was.Cluster, fleet.FindingDropSuspended, policy.At("spec.suspension"), "%s is deleted on %s, where it is suspended: its placement no longer selects the cluster")
	case c.Action == ActionDelete && held && !before.attached():
		p.departs(before, was.Cluster, fleet.FindingDeleteSuspended, policy.At("spec.suspension"), "%s is deleted on %s, where it is suspended: suspension holds updates, not deletions")
	}
}

// departs adds a cluster to the finding about a template that leaves it, one for all
// clusters. format has the template and the clusters.
func (p *planner) departs(b *Binding, cluster, code string, at fleet.Origin, format string) {
	of := departure{b.ID, code, at}
	i, known := p.departures[of]
	if !known {
		i = len(p.findings)
		p.departures[of] = i
		p.find(b, "", fleet.Finding{Code: code, Severity: fleet.SeverityCaution, Origin: at})
	}

	f := &p.findings[i]
	f.Clusters = append(f.Clusters, cluster)
	slices.Sort(f.Clusters)
	f.Message = fmt.Sprintf(format, b.ID, someOf(f.Clusters))
}

// departure is a template that leaves clusters, and what is said of it.
type departure struct {
	object.ID
	code string
	at   fleet.Origin
}

// stays plans a work that is wanted.
func (p *planner) stays(before, after *Binding, was, is *Work) {
	var runs *Content
	if was != nil {
		runs = was.Released
	}

	c := Cell{Object: after.ID, APIVersion: is.Want.APIVersion, Cluster: is.Cluster, Policy: after.Active.Policy.Ref,
		Action: p.action(runs, is.Want), Disposition: Now, Runs: runs, Wants: is.Want, Already: waitsAsBefore(was, is)}

	switch {
	case is.Blocked != "":
		c.Action, c.Disposition = ActionUpdate, Blocked
		if runs == nil {
			c.Action = ActionCreate
		}
		c.Because = append(c.Because, p.why.blocked(is))
		p.find(after, is.Cluster, fleet.Finding{Code: fleet.FindingOverrideFailed, Severity: fleet.SeverityError,
			Message: fmt.Sprintf("%s on %s: %s", after.ID, is.Cluster, is.Blocked)})
	case is.Held && after.attached():
		c.Disposition = Held // with its owners
		if before == after { // what changes says so below
			c.Because = append(c.Because, p.why.owner(p.head, after))
		}
	case is.Held && after.evicts(is.Cluster):
		c.Disposition = Held
		c.Because = append(c.Because, p.why.evicted(after, is.Cluster))
	case is.Held:
		c.Disposition = Held
		c.Because = append(c.Because, p.why.suspended(after, is.Cluster))
	case c.Action == ActionNone && p.remarked(was, is):
		c.Action = ActionUpdate
		c.Because = append(c.Because, p.why.keeps(before, after, is))
	case c.Action == ActionNone:
		return
	case was != nil && was.Held && before.evicts(is.Cluster):
		c.Because = append(c.Because, p.why.evicted(before, is.Cluster))
	case was != nil && was.Held && after.attached():
		c.Disposition = Released // with an owner
	case was != nil && was.Held:
		c.Disposition = Released
		c.Because = append(c.Because, Because{"resumed", p.why.suspended(before, is.Cluster).Origin})
	}

	if before != after {
		c.Because = append(c.Because, p.why.changed(before, after, was, is)...)
	}
	if c.Disposition == Now && runs != nil && runs.Replicas > is.Want.Replicas {
		for _, a := range p.head.AwaitsShare(after, is) {
			c.After = append(c.After, a.For(after.ID))
		}
	}
	c.Replicas = replicaChange(after, runs, is.Released, is.Want)
	c.DependsOn = after.dependsOn()
	p.cells = append(p.cells, c)
}

// waitsAsBefore reports whether a work was kept back before, with the same to send.
func waitsAsBefore(was, is *Work) bool {
	return was != nil && was.Held == is.Held && was.Blocked == is.Blocked && (is.Held || is.Blocked != "") &&
		was.Want.digest() == is.Want.digest() && was.Released.digest() == is.Released.digest()
}

// remarked reports whether the file of a work is published again for nothing but the
// marks that keep its object from being pruned.
func (p *planner) remarked(was, is *Work) bool {
	return was != nil && was.Released != nil && !was.Held && was.Blocked == "" && was.Preserve != is.Preserve && p.head.Pulls(is.Cluster)
}

// action is what brings a cluster from one content to the other. Works share contents, so it
// is found once for many clusters.
func (p *planner) action(runs, want *Content) Action {
	if runs == nil || runs.Digest == want.Digest {
		return action(runs, want)
	}

	way := [2]*Content{runs, want}
	known, ok := p.actions[way]
	if !ok {
		known = action(runs, want)
		p.actions[way] = known
	}
	return known
}

func action(runs, want *Content) Action {
	switch {
	case runs == nil:
		return ActionCreate
	case runs.Digest == want.Digest:
		return ActionNone
	case runs.Template == nil || want.Template == nil:
		return ActionUpdate
	}

	if sameRules(runs.Rules, want.Rules) && sameButShare(runs, want) {
		return ActionScale
	}
	return ActionUpdate
}

// sameButShare reports whether two contents differ in their shares alone.
func sameButShare(a, b *Content) bool {
	if a.Replicas == b.Replicas {
		return false
	}

	x, err := withoutShare(a)
	if err != nil {
		return false
	}
	y, err := withoutShare(b)
	return err == nil && object.DigestJSON(x) == object.DigestJSON(y)
}

// withoutShare is a content with the same share, whatever it has: also where
// it wants no replicas and so is no workload.
func withoutShare(c *Content) (map[string]any, error) {
	if c.reviser == nil {
		return c.Template.Share(1), nil
	}
	return shared(c.Template, whole(1), c.reviser)
}

// replicaChange is nil for what has no replicas, and had none. Where a script
// counted before and no longer does, 0 is not known to be right.
func replicaChange(b *Binding, before, after, asked *Content) *ReplicaChange {
	r := &ReplicaChange{}
	for _, f := range []struct {
		to      *int64
		content *Content
	}{{&r.Before, before}, {&r.After, after}, {&r.Asked, asked}} {
		if f.content != nil {
			*f.to = f.content.Replicas
		}
	}

	_, workload := b.replicas()
	if !workload && (*r == ReplicaChange{} || !b.Active.Template.Divides()) {
		return nil
	}
	return r
}

// dependsOn is the DependsOn of the cells of a binding, which is nil when it is
// removed.
func (b *Binding) dependsOn() string {
	if b == nil || !b.Observed && len(b.Evictions) == 0 {
		return ""
	}
	return "observations"
}

// returned plans what is removed from clusters that come back into the fleet.
func (p *planner) returned() {
	for key, tombstone := range p.base.Detached.All() {
		for _, was := range tombstone.Clusters {
			now := p.head.Removal(was.Cluster, tombstone.ID)
			if now == nil || now == p.base.Removal(was.Cluster, tombstone.ID) || p.head.Detached.At(key).on(was.Cluster) != nil {
				continue
			}

			c := Cell{Object: tombstone.ID, APIVersion: tombstone.APIVersion, Cluster: was.Cluster, Action: ActionDelete, Disposition: Now, Runs: was.Released,
				Because: []Because{{"cluster", p.head.snapshot().Clusters.At(was.Cluster).Origin}}}
			if now.Preserve {
				c.Action = ActionPreserve
			}
			p.cells = append(p.cells, c)
		}
	}
}
