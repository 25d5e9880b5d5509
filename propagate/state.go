// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"
	"strings"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/schedule"
)

// Version is of these rules. It is raised when the same snapshots lead to
// other digests: a checkpoint that carries another one is digested again, which
// counts as no update (fold rule 7).
const Version = 2

// State is what the history up to a commit has decided. The zero State is the
// one before the first commit. Nothing reachable from a State is altered once
// Step has returned it.
//
// It has more than 40 methods because everybody asks it, each file in its own terms:
// Karmada's (view.go), a plan's, a member's, a checkpoint's.
type State struct {
	Commit   string          // the last one folded
	Accepted string          // the last one that was not refused or held; "" before the first
	Snapshot *fleet.Snapshot // of Accepted; nil before the first

	Bindings ordered.Map[*Binding] // by ID.Key()

	// Tombstones are objects that were released to a cluster and are not wanted
	// there any more. Dispatch deletes or releases those that it finds.
	Tombstones ordered.Map[*Tombstone]

	// Detached are objects on clusters whose Cluster document was removed. Nothing
	// is sent there; they are accounted for if the cluster comes back.
	Detached ordered.Map[*Tombstone]

	// Derived is the fleet's name where fairlead.yaml gives none, and Former are the
	// names that it had earlier, sorted. See naming.go.
	Derived string
	Former  []string

	// Time is when Commit was made, in seconds since 1970; see later.
	Time int64

	// Recent is what was deleted in the hour up to the last commit that deleted
	// something, as far as nobody confirmed it.
	Recent []Deleted

	Works     int // how many works all bindings have
	Evictions int // how many evictions are under way

	// Seen is what was observed of the members; nil when nothing was.
	Seen    *Seen
	Refusal *Refusal // why Commit is not Accepted

	// Frozen is for each broken unit which commit has its last good content,
	// "" if it never had any, and of each kustomization file that cannot be
	// parsed in which commit it last could. See freeze.go.
	Frozen map[string]string

	// Moved are the shards that clusters are not in any more; see moved.go.
	Moved Moved

	// Rewritten is the last commit that allows that the branch was rewritten; "" without one.
	Rewritten string

	index index
}

// Binding is where one template goes, and why.
type Binding struct {
	object.ID

	// Claim is the policy that has the template; nil when none matches.
	Claim *fleet.PolicyRef

	// Active is what is in effect, which outlives the claim.
	Active *Active

	// Unmatched is set when the template changed while nothing matched it, and no
	// policy was activated for it since.
	Unmatched bool

	// Pending is set when what is in effect is not what is in git now.
	Pending   *Pending
	Immediate *fleet.Immediate

	// Own is what the annotations of the template hold and keep by themselves, as
	// they are in git; nil for nothing.
	Own *fleet.Immediate

	// Targets are the chosen clusters by name; Count is 0 where the kind has
	// no replicas.
	Targets []schedule.Share

	// AffinityName is the affinity group that the targets are of, "" when the
	// placement has none.
	AffinityName string

	// Placed is of the placement that chose the targets.
	Placed object.Digest

	// Observed is set when what was observed of the members ranked or excluded
	// a cluster (fold rule 22).
	Observed  bool
	Scheduled Scheduled

	// Evictions are targets that were given up; see evict.go.
	Evictions []Eviction

	// Requires are the objects that are required on every target (propagateDeps).
	Requires []object.ID

	// Selects are the kinds, without a name, of which a script selects what is
	// required by labels.
	Selects []object.ID
	Works   []Work // by cluster

	answers *answers // of scripts, nil where the kind's own rules hold
}

// Active is a template's content and a policy's delayed fields, each as of
// the commit that last changed it.
type Active struct {
	Template       *fleet.Template
	TemplateCommit string
	Policy         *fleet.Policy
	PolicyCommit   string
}

// Pending is a change that waits.
type Pending struct {
	Reason string
	Since  string // the commit it waits since
	// Policy would be active with the template's next change; nil when nothing
	// matches it.
	Policy *fleet.PolicyRef
}

// Scheduled is the result of the last schedule, as the condition shows it.
type Scheduled struct {
	Reason, Message string
}

// Work is one template on one cluster.
type Work struct {
	Cluster string

	// Want is what the fold wants there. Released is what the cluster may run:
	// the same, or when the work is held, what was last released to it; nil if
	// nothing ever was.
	Want, Released *Content
	Held           bool
	Preserve       bool

	// After are the clusters that gained replicas in favour of this one, by name. It
	// has none taken away before they have theirs; see successor.go.
	After []string

	// Blocked is why there is no content to want: an override failed. Want is
	// then without digest, and the cluster keeps what was released to it.
	Blocked string
}

// Content is a version of a template as some clusters get it. Works with the
// same content share it.
type Content struct {
	Digest   object.Digest
	Replicas int64

	// Completions are a Job's share, -1 where they are not divided.
	Completions int64

	// Bare is set where the fields are left out that nobody sets (decision 53).
	Bare       bool
	APIVersion string

	// Template has the content. It is nil in a restored state where the work
	// is held: nothing is sent then, and it can be rendered again from
	// TemplateCommit.
	Template       *fleet.Template
	TemplateCommit string

	// Rules are the overrides that made it, in their order.
	Rules []*fleet.Rule

	// reviser is the script that wrote the share of replicas, nil for the
	// kind's own rule.
	reviser *fleet.Script

	// Requires is what the content references, under propagateDeps.
	Requires []object.ID

	// Conflict is the object's own rule about objects that are not ours,
	// "overwrite", "abort" or nothing; an override may have set it.
	Conflict string

	// Revision is the commit that last changed this content.
	Revision string
}

// Tombstone is one object on the clusters that should not have it any more, or
// that are not in the fleet any more.
type Tombstone struct {
	object.ID
	APIVersion string
	Clusters   []Removal // by name
}

// Removal is one cluster of a Tombstone.
type Removal struct {
	Cluster  string
	Preserve bool   // leave the object running and take our marks off
	Commit   string // since when
	Released *Content

	// What comes first, see successor.go: Successors are the clusters that the binding
	// gained in favour of this one, Owners what ran here with it, and Users what uses
	// a generated object under another hash by now.
	Successors    []string
	Owners, Users []object.ID
}

// Refusal is why a commit contributes nothing.
type Refusal struct {
	Commit   string
	Problems []fleet.Problem
	// Guard is set when the commit is held for what it would delete.
	Guard *Guard
}

// Work returns the binding's work on a cluster, or nil.
func (b *Binding) Work(cluster string) *Work {
	i, ok := slices.BinarySearchFunc(b.Works, cluster, func(w Work, c string) int { return strings.Compare(w.Cluster, c) })
	if !ok {
		return nil
	}
	return &b.Works[i]
}

// on returns the tombstone's removal on a cluster, or nil.
func (t *Tombstone) on(cluster string) *Removal {
	if t == nil {
		return nil
	}
	for i := range t.Clusters {
		if t.Clusters[i].Cluster == cluster {
			return &t.Clusters[i]
		}
	}
	return nil
}

// Pulls reports whether a cluster's own tools apply what is published for it.
func (s *State) Pulls(cluster string) bool {
	c, ok := s.snapshot().Clusters.Get(cluster)
	return ok && c.Spec.SyncMode == clusterv1alpha1.Pull
}

// Removal is what became of an object that is not wanted on a cluster: nil
// when the fleet knows of none there.
func (s *State) Removal(cluster string, id object.ID) *Removal {
	return s.Tombstones.At(id.Key()).on(cluster)
}

// with adds or replaces removals of a tombstone.
func (t *Tombstone) with(id object.ID, apiVersion string, removals ...Removal) *Tombstone {
	next := &Tombstone{ID: id, APIVersion: apiVersion, Clusters: slices.Clone(removals)}
	byCluster := func(x, y Removal) int { return strings.Compare(x.Cluster, y.Cluster) }
	slices.SortFunc(next.Clusters, byCluster)
	if t == nil {
		return next
	}

	replaced := next.Clusters
	for _, other := range t.Clusters {
		if _, there := slices.BinarySearchFunc(replaced, other, byCluster); !there {
			next.Clusters = append(next.Clusters, other)
		}
	}

	slices.SortFunc(next.Clusters, byCluster)
	return next
}

// without drops removals of a tombstone; nil when none is left.
func (t *Tombstone) without(drop func(cluster string) bool) *Tombstone {
	if t == nil || !slices.ContainsFunc(t.Clusters, func(r Removal) bool { return drop(r.Cluster) }) {
		return t
	}

	next := &Tombstone{ID: t.ID, APIVersion: t.APIVersion}
	for _, removal := range t.Clusters {
		if !drop(removal.Cluster) {
			next.Clusters = append(next.Clusters, removal)
		}
	}

	if len(next.Clusters) == 0 {
		return nil
	}
	return next
}

// set writes a tombstone, or drops it when there is none.
func set(m ordered.Map[*Tombstone], key string, t *Tombstone) ordered.Map[*Tombstone] {
	if t == nil {
		return m.Without(key)
	}
	return m.With(key, t)
}

// TemplateLabels are the labels of a binding's template, as it is in the state or
// else as it is in effect.
func (b *Binding) TemplateLabels(s *State) map[string]string {
	if t := s.snapshot().Templates.At(b.Key()); t != nil {
		return t.Labels
	}
	return b.Active.Template.Labels
}
