// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
)

// Hold is one cluster, or every one, that a policy or a template's own annotation
// holds. Its JSON is a contract.
type Hold struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"` // the name is that of what holds, a dot, and the cluster

	// Holder is what holds it: "PropagationPolicy shop/web" or "Deployment shop/web".
	Holder string `json:"holder"`
	// Cluster is its name, or AllClusters.
	Cluster string `json:"cluster"`
	// Note says who, why and until when; empty if nobody noted it.
	Note fleetv1alpha1.Hold `json:"note"`
	// Works is how many works it holds, and Waiting in how many of them something
	// waits to be released.
	Works   int    `json:"works"`
	Waiting int    `json:"waiting"`
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
}

// NewHolds lists the holds of a state, by holder and cluster.
func NewHolds(s *propagate.State) (all []Hold) {
	if s.Snapshot == nil {
		return nil
	}

	claimed := map[fleet.PolicyRef][]*propagate.Binding{}
	for b := range s.Bindings.Values() {
		if b.Claim != nil {
			claimed[*b.Claim] = append(claimed[*b.Claim], b)
		}
	}
	for p := range s.Snapshot.Policies.Values() {
		for _, cluster := range Held(p) {
			note, _ := p.Note(cluster)
			_, at := p.Suspends(cluster)
			h := newHold(p.Ref.Namespace, p.Ref.Name, p.Ref.String(), cluster, note, at)
			for _, b := range claimed[p.Ref] {
				h.count(b)
			}
			all = append(all, h)
		}
	}

	for t := range s.Snapshot.Templates.Values() {
		if t.Immediate == nil {
			continue
		}
		everywhere, clusters := t.Suspended()
		if everywhere {
			clusters = []string{fleetv1alpha1.AllClusters}
		}
		for _, cluster := range clusters {
			note, _ := t.Note(cluster)
			h := newHold(t.Namespace, t.Name, t.ID.String(), cluster, note, t.Origin)
			if b := s.Bindings.At(t.Key()); b != nil {
				h.count(b)
			}
			all = append(all, h)
		}
	}

	slices.SortFunc(all, func(a, b Hold) int { return cmp.Or(cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Cluster, b.Cluster)) })
	return all
}

func newHold(namespace, name, holder, cluster string, note fleetv1alpha1.Hold, at fleet.Origin) Hold {
	return Hold{
		TypeMeta:   metav1.TypeMeta{APIVersion: APIVersion, Kind: "Hold"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "." + cluster},
		Holder:     holder, Cluster: cluster, Note: note, File: at.File, Line: at.Line,
	}
}

// count adds the works of a binding that the hold is about.
func (h *Hold) count(b *propagate.Binding) {
	for i := range b.Works {
		w := &b.Works[i]
		if !w.Held || h.Cluster != fleetv1alpha1.AllClusters && h.Cluster != w.Cluster {
			continue
		}
		h.Works++
		if w.Released == nil || w.Want != nil && w.Released.Digest != w.Want.Digest {
			h.Waiting++
		}
	}
}
