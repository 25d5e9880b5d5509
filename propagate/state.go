// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"
	"strings"

	"github.com/fairlead/fairlead/propagate/ordered"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// Version is of these rules. It is raised when the same snapshots lead to
// other digests: a checkpoint that carries another one is digested again, which
// counts as no update (fold rule 7).
const Version = 1

// State is what the history up to a commit has decided. The zero State is the
// one before the first commit. Nothing reachable from a State is altered once
// Step has returned it.
type State struct {
	Commit   string    // the last one folded
	Accepted string    // the last one that was not refused or held; "" before the first
	Snapshot *Snapshot // of Accepted; nil before the first

	Bindings ordered.Map[*Binding] // by ID.Key()
	// Departed are objects that were released to a cluster and are not wanted
	// there any more. Dispatch deletes or releases those that it finds.
	Departed ordered.Map[*Absence]
	// Left are objects on clusters whose Cluster document was removed. Nothing
	// is sent there; they are accounted for if the cluster comes back.
	Left ordered.Map[*Absence]

	Works     int // how many works all bindings have
	Evictions int // how many evictions are under way
	// Seen is what was observed of the members; nil when nothing was.
	Seen    *Seen
	Refusal *Refusal // why Commit is not Accepted
	// Frozen says of each broken unit which commit has its last good content,
	// "" if it never had any, and of each kustomization file that cannot be
	// parsed in which commit it last could. See freeze.go.
	Frozen map[string]string

	index index
}

// Binding is where one template goes, and why.
type Binding struct {
	ID
	// Claim is the policy that has the template; nil when none matches.
	Claim *PolicyRef
	// Active is what is in effect, which outlives the claim.
	Active *Active
	// Unmatched says that the template changed while nothing matched it, and no
	// policy was activated for it since.
	Unmatched bool
	// Pending says that what is in effect is not what git says now.
	Pending *Pending
	Brakes  *Brakes
	// Targets are the chosen clusters by name; Count is 0 where the kind has
	// no replicas.
	Targets []schedule.Share
	// AffinityName is the affinity group that the targets are of, "" when the
	// placement has none.
	AffinityName string
	// Placed is of the placement that chose the targets.
	Placed Digest
	// Observed says that what was observed of the members ranked or excluded
	// a cluster (fold rule 22).
	Observed  bool
	Scheduled Scheduled
	// Evictions are targets that were given up; see evict.go.
	Evictions []Eviction
	// Requires are the objects that go along to every target (propagateDeps).
	Requires []ID
	// Selects are the kinds, without a name, of which a script selects what
	// goes along by labels.
	Selects []ID
	Works   []Work // by cluster

	answers *answers // of scripts, nil where the kind's own rules hold
}

// Active is a template's content and a policy's delayed fields, each as of
// the commit that last changed it.
type Active struct {
	Template       *Template
	TemplateCommit string
	Policy         *Policy
	PolicyCommit   string
}

// Pending is a change that waits.
type Pending struct {
	Reason string
	Since  string // the commit it waits since
	// Policy would be active with the template's next change; nil when nothing
	// matches it.
	Policy *PolicyRef
}

// Scheduled is how the last schedule went, as the condition says it.
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
	// Blocked is why there is no content to want: an override failed. Want is
	// then without digest, and the cluster keeps what was released to it.
	Blocked string
}

// Content is a version of a template as some clusters get it. Works with the
// same content share it.
type Content struct {
	Digest   Digest
	Replicas int64
	// Completions are a Job's share, -1 where they are not divided.
	Completions int64
	APIVersion  string
	// Template has the content. It is nil in a restored state where the work
	// is held: nothing is sent then, and it can be rendered again from
	// TemplateCommit.
	Template       *Template
	TemplateCommit string
	// Rules are the overrides that made it, in their order.
	Rules []*Rule
	// reviser is the script that wrote the share of replicas, nil for the
	// kind's own rule.
	reviser *script
	// Requires is what the content references, under propagateDeps.
	Requires []ID
	// Conflict is what the object itself says about objects that are not ours,
	// "overwrite", "abort" or nothing; an override may have set it.
	Conflict string
	// Revision is the commit that last changed this content.
	Revision string
}

// Absence is one object on the clusters that should not have it any more, or
// that are not in the fleet any more.
type Absence struct {
	ID
	APIVersion string
	Clusters   []Gone // by name
}

// Gone is one cluster of an Absence.
type Gone struct {
	Cluster  string
	Preserve bool   // leave the object running and take our marks off
	Commit   string // since when
	Released *Content
}

// Refusal says why a commit contributes nothing.
type Refusal struct {
	Commit   string
	Problems []Problem
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

// on returns what is known about a cluster of the absence, or nil.
func (a *Absence) on(cluster string) *Gone {
	if a == nil {
		return nil
	}
	for i := range a.Clusters {
		if a.Clusters[i].Cluster == cluster {
			return &a.Clusters[i]
		}
	}
	return nil
}

// Departure is what became of an object that is not wanted on a cluster: nil
// when the fleet knows of none there.
func (s *State) Departure(cluster string, id ID) *Gone {
	return s.Departed.At(id.Key()).on(cluster)
}

// with adds or replaces clusters of an absence.
func (a *Absence) with(id ID, apiVersion string, gone ...Gone) *Absence {
	next := &Absence{ID: id, APIVersion: apiVersion, Clusters: slices.Clone(gone)}
	byCluster := func(x, y Gone) int { return strings.Compare(x.Cluster, y.Cluster) }
	slices.SortFunc(next.Clusters, byCluster)
	if a == nil {
		return next
	}
	replaced := next.Clusters
	for _, other := range a.Clusters {
		if _, there := slices.BinarySearchFunc(replaced, other, byCluster); !there {
			next.Clusters = append(next.Clusters, other)
		}
	}
	slices.SortFunc(next.Clusters, byCluster)
	return next
}

// without drops clusters of an absence; nil when none is left.
func (a *Absence) without(drop func(cluster string) bool) *Absence {
	if a == nil || !slices.ContainsFunc(a.Clusters, func(g Gone) bool { return drop(g.Cluster) }) {
		return a
	}
	next := &Absence{ID: a.ID, APIVersion: a.APIVersion}
	for _, g := range a.Clusters {
		if !drop(g.Cluster) {
			next.Clusters = append(next.Clusters, g)
		}
	}
	if len(next.Clusters) == 0 {
		return nil
	}
	return next
}

// set writes an absence, or drops it when there is none.
func set(m ordered.Map[*Absence], key string, a *Absence) ordered.Map[*Absence] {
	if a == nil {
		return m.Without(key)
	}
	return m.With(key, a)
}
