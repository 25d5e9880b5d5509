// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/compact"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/schedule"
)

// templateRecord is what a template has besides its names, its place, its digests and
// its object. Many templates have the same.
type templateRecord struct {
	APIVersion   string                            `json:"apiVersion"`
	Group        string                            `json:"group,omitempty"`
	Labels       map[string]string                 `json:"labels,omitempty"`
	Unset        []string                          `json:"unset,omitempty"`
	Replicas     int64                             `json:"replicas,omitempty"`
	Requirements *workv1alpha2.ReplicaRequirements `json:"requirements,omitempty"`
	Assumed      bool                              `json:"assumed,omitempty"`
	Immediate    *Immediate                        `json:"immediate,omitempty"`
	Holds        map[string]fleetv1alpha1.Hold     `json:"holds,omitempty"`

	needs *schedule.Needs
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *templateRecord) UnmarshalJSON(raw []byte) error {
	type plain templateRecord
	if err := json.Unmarshal(raw, (*plain)(r)); err != nil {
		return err
	}
	if r.Requirements != nil {
		r.needs = schedule.NewNeeds(r.Requirements.ResourceRequest)
	}
	return nil
}

// Write writes the template without its object, which may hold a secret.
func (t *Template) Write(w *compact.Writer) error {
	for _, s := range []string{t.Kind, t.Namespace, t.Name, t.Origin.File} {
		w.Text(s)
	}
	w.Uint(t.Origin.Line)
	w.Raw(t.Digest[:])
	w.Raw(t.Update[:])
	return w.JSON(templateRecord{
		APIVersion: t.APIVersion, Group: t.Group, Labels: t.Labels, Unset: t.Unset,
		Replicas: t.Demand.Replicas, Requirements: t.Demand.Requirements,
		Assumed: t.Assumed, Immediate: t.Immediate, Holds: t.Holds,
	})
}

// ReadTemplate reads what Write wrote of a template of a unit. load reads its object,
// when somebody asks for it.
func ReadTemplate(r *compact.Reader, unit string, load func(*Template) map[string]any) *Template {
	t := &Template{ID: object.ID{Kind: r.Text(), Namespace: r.Text(), Name: r.Text()}, Unit: unit, Origin: Origin{File: r.Text(), Line: r.Uint()}}
	r.Raw(t.Digest[:])
	r.Raw(t.Update[:])

	more := compact.JSON[templateRecord](r)
	t.Group, t.APIVersion, t.Labels, t.Unset = more.Group, more.APIVersion, more.Labels, more.Unset
	t.Demand = Demand{Replicas: more.Replicas, Requirements: more.Requirements, Needs: more.needs}
	t.Assumed, t.Immediate, t.Holds = more.Assumed, more.Immediate, more.Holds
	t.manifest = &manifest{load: func() map[string]any { return load(t) }}
	return t
}
