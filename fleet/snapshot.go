// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/schedule"
)

// Snapshot is the tree of one commit, rendered and grouped by kind. It is
// immutable once it is made, so the snapshots of neighbouring commits share
// what did not change.
type Snapshot struct {
	Settings     *Settings                 // nil without a fairlead.yaml
	Clusters     ordered.Map[*Cluster]     // by name
	Policies     ordered.Map[*Policy]      // by Policy.Ref.Key()
	Overrides    ordered.Map[*Override]    // by Override.Ref.Key()
	Templates    ordered.Map[*Template]    // by ID.Key()
	Interpreters ordered.Map[*Interpreter] // by name
	Rebalancers  ordered.Map[*Rebalancer]  // by name
	Units        ordered.Map[*Unit]        // by path
	Findings     ordered.Map[*Finding]     // remarks on documents, by origin
	others       ordered.Map[any]          // an ordered.Map of each kind that has no field, by kind
	// Unparsed are the kustomization files that cannot be parsed, sorted. They are
	// assumed to use what they used when they last could.
	Unparsed []string
}

// Unit is what is rendered as a whole: a kustomization root, or a plain file.
type Unit struct {
	Path    string // of the kustomization's directory, or of the file
	Objects int    // the number of documents it renders to
	// Broken is why the unit could not be rendered. Its documents in the snapshot
	// are then those of the last accepted commit, if any (fold rule 3).
	Broken []Problem
}

// Settings is fairlead.yaml.
type Settings struct {
	Name   string // of the fleet; "" if it gives itself none
	Spec   fleetv1alpha1.FleetConfigSpec
	Origin Origin
}

// Cluster is a member of the fleet.
type Cluster struct {
	*clusterv1alpha1.Cluster
	Origin Origin

	Candidate *schedule.Cluster // as scheduling sees it
}

// Template is an ordinary object that policies send to clusters.
type Template struct {
	object.ID
	APIVersion string
	Labels     map[string]string
	*manifest
	// Unset are the fields of the spec that Object has by default alone (decision 53).
	Unset []string
	// Digest covers Object without what is unset.
	Digest object.Digest
	// Update covers the same without the labels and annotations whose changes do not
	// activate anything (decision 1).
	Update object.Digest
	Origin Origin
	Unit   string // path of the unit that renders it

	Demand Demand

	// Assumed is set where the namespace is "default" only because nothing tells
	// whether the kind is namespaced.
	Assumed bool

	// Immediate is what the template's own annotations hold and keep, nil for
	// nothing; Holds are the notes about it.
	Immediate *Immediate
	Holds     map[string]fleetv1alpha1.Hold
}

// PolicyRef names a policy. Namespace is empty for a ClusterPropagationPolicy.
type PolicyRef struct {
	Namespace, Name string
}

// Key is the ref as a map key: cluster policies first, then by namespace.
func (r PolicyRef) Key() string { return r.Namespace + "/" + r.Name }

// Kind is the policy's kind, which follows from its scope.
func (r PolicyRef) Kind() string {
	if r.Namespace == "" {
		return policyv1alpha1.KindClusterPropagationPolicy
	}
	return policyv1alpha1.KindPropagationPolicy
}

// String reads "PropagationPolicy shop/web".
func (r PolicyRef) String() string {
	if r.Namespace == "" {
		return printable.Line(r.Kind() + " " + r.Name)
	}
	return printable.Line(r.Kind() + " " + r.Namespace + "/" + r.Name)
}

// Policy is a PropagationPolicy or ClusterPropagationPolicy, defaulted and
// valid.
type Policy struct {
	Ref                 PolicyRef
	Labels, Annotations map[string]string
	Spec                policyv1alpha1.PropagationSpec
	// Activate is the annotation that forces the policy into effect.
	Activate string
	// Holds and Waves are for people and commands, and decide nothing.
	Holds  map[string]fleetv1alpha1.Hold // by cluster, or AllClusters
	Waves  [][]string
	Origin Origin
	Unit   string // path of the unit that renders it
	// Lines maps the fields that a decision can point at, such as
	// "spec.suspension", to lines of Origin.File.
	Lines map[string]int
	// Delayed covers the fields that place a template, Immediate those that suspend
	// and keep it.
	Delayed, Immediate object.Digest

	Selectors []Selector
	Placement *schedule.Placement
}

// At is the position of a field of the policy, or of the policy itself if the
// field's line is not known.
func (p *Policy) At(field string) Origin {
	if line := p.Lines[field]; line != 0 {
		return Origin{p.Origin.File, line}
	}
	return p.Origin
}
