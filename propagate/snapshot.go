// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/propagate/ordered"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// Snapshot is the tree of one commit, rendered and sorted by what its
// documents are. Nothing in it is altered once it is made, so snapshots of
// neighbouring commits share what did not change.
type Snapshot struct {
	Settings     *Settings                 // nil without a fairlead.yaml
	Clusters     ordered.Map[*Cluster]     // by name
	Policies     ordered.Map[*Policy]      // by Policy.Ref.Key()
	Overrides    ordered.Map[*Override]    // by Override.Ref.Key()
	Templates    ordered.Map[*Template]    // by ID.Key()
	Interpreters ordered.Map[*Interpreter] // by name
	Rebalancers  ordered.Map[*Rebalancer]  // by name
	Units        ordered.Map[*Unit]        // by path
	Findings     ordered.Map[*Finding]     // what is worth saying about a document, by origin
	// Unparsed are the kustomization files that cannot be parsed, sorted: what
	// they use is taken to be what they used when they last could.
	Unparsed []string
}

// Unit is what is rendered as a whole: a kustomization root, or a plain file.
type Unit struct {
	Path    string // of the kustomization's directory, or of the file
	Objects int    // how many documents came out of it
	// Broken is why it could not be rendered. Its documents in the snapshot are
	// then those of the last accepted one, if it had any (fold rule 3).
	Broken []Problem
}

// Settings is fairlead.yaml.
type Settings struct {
	Spec   fleetv1alpha1.FleetConfigSpec
	Origin Origin
}

// Cluster is a member of the fleet.
type Cluster struct {
	*clusterv1alpha1.Cluster
	Origin Origin

	placed *schedule.Cluster // as placement sees it
}

// Template is an ordinary object that policies send to clusters.
type Template struct {
	ID
	APIVersion string
	Labels     map[string]string
	// Object is the whole object after defaulting (decision 25), without what
	// only a server writes.
	Object map[string]any
	// Digest is of Object.
	Digest Digest
	// Update is of Object without the labels and annotations that are no
	// reason to activate anything (decision 1).
	Update Digest
	Origin Origin
	Unit   string // path of the unit that rendered it

	asks asks
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
		return r.Kind() + " " + r.Name
	}
	return r.Kind() + " " + r.Namespace + "/" + r.Name
}

// Policy is a PropagationPolicy or ClusterPropagationPolicy, defaulted and
// valid.
type Policy struct {
	Ref    PolicyRef
	Labels map[string]string
	Spec   policyv1alpha1.PropagationSpec
	// Activate is the annotation that forces the policy into effect.
	Activate string
	// Holds and Waves are for people and commands, and decide nothing.
	Holds  map[string]fleetv1alpha1.Hold // by cluster, or AllClusters
	Waves  [][]string
	Origin Origin
	Unit   string // path of the unit that rendered it
	// Lines are the lines of the fields that a decision can point at, by path
	// ("spec.suspension"), and stand in Origin.File.
	Lines map[string]int
	// Delayed is of the fields that place a template, Brakes of those that
	// hold and keep it.
	Delayed, Brakes Digest

	selectors []selector
	placement *schedule.Placement
}

// At is where in git a field of the policy stands, or the policy itself when
// the field's line is not known.
func (p *Policy) At(field string) Origin {
	if line := p.Lines[field]; line != 0 {
		return Origin{p.Origin.File, line}
	}
	return p.Origin
}

// Digest is a SHA-256. The zero Digest stands for nothing.
type Digest [sha256.Size]byte

// DigestOf hashes bytes.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// String reads "sha256:" and 64 hex digits; the zero Digest is empty.
func (d Digest) String() string {
	if d == (Digest{}) {
		return ""
	}
	return "sha256:" + hex.EncodeToString(d[:])
}

// ParseDigest is the inverse of String.
func ParseDigest(s string) (Digest, bool) {
	var d Digest
	if s == "" {
		return d, true
	}
	if len(s) != len("sha256:")+2*len(d) || s[:len("sha256:")] != "sha256:" {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(s[len("sha256:"):]))
	return d, err == nil
}

// MarshalText writes what String reads.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, ok := ParseDigest(string(text))
	if !ok {
		return fmt.Errorf("%q is no digest", text)
	}
	*d = parsed
	return nil
}

// Trailer is a "Key: value" line at the end of a commit message.
type Trailer struct {
	Key, Value string
}

// Commit is one step's input: a first-parent commit of the tracked branch.
type Commit struct {
	Hash string
	// Trailers of every commit that the step brings in (fold rule 1).
	Trailers []Trailer
	// Snapshot is nil when the tree could not be read, rendered or validated;
	// Problems then says why. A commit with the tree of the accepted one
	// carries its very Snapshot.
	Snapshot *Snapshot
	Problems []Problem
}

// values yields the trailers' values under key.
func (c Commit) values(key string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, t := range c.Trailers {
			if t.Key == key && !yield(t.Value) {
				return
			}
		}
	}
}
