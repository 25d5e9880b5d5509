// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"maps"
)

// The marks on an object in a member (decision 27).
const (
	// LabelManaged tells that the object is ours.
	LabelManaged = "fairlead.dev/managed"
	// AnnotationBinding is the namespace and name of its binding.
	AnnotationBinding = "fairlead.dev/binding"
	// AnnotationRevision is the commit that last changed its content. It is
	// outside the digest and never by itself a reason to write (fold rule 19).
	AnnotationRevision = "fairlead.dev/revision"
	// AnnotationDigest is of its content.
	AnnotationDigest = "fairlead.dev/digest"
)

// Manifest is a template's content exactly as it is applied, marks included.
// The caller may keep it and write to its metadata; all else it shares with
// the template.
func (s *State) Manifest(id ID, c *Content) map[string]any {
	object := c.object()
	binding := s.BindingName(id)
	if id.Namespace != "" {
		binding = id.Namespace + "/" + binding
	}
	meta := section(object, "metadata")
	section(meta, "labels")[LabelManaged] = "true"
	maps.Copy(section(meta, "annotations"), map[string]any{
		AnnotationBinding:  binding,
		AnnotationRevision: c.Revision,
		AnnotationDigest:   c.Digest.String(),
	})
	return object
}

// Unplaced is the manifest of a template as it would be on a cluster that it is
// not placed on, overrides and all; nil without a template, and where an
// override fails.
func (s *State) Unplaced(id ID, cluster string) map[string]any {
	t, on := s.snapshot().Templates.At(id.Key()), s.snapshot().Clusters.At(cluster)
	if t == nil || on == nil {
		return nil
	}
	r := newRendering(&s.index, t)
	key, rules, err := r.render(t, share{0, -1}, on)
	if err != nil {
		return nil
	}
	return s.Manifest(id, &Content{
		Digest:      digestJSON(cleaned(r.memo[key].object)),
		Completions: -1,
		APIVersion:  t.APIVersion,
		Template:    t,
		Rules:       rules,
		Revision:    s.Accepted,
		reviser:     r.reviser,
	})
}

// section is a map inside a map, made when it is not there.
func section(m map[string]any, field string) map[string]any {
	inner, ok := m[field].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[field] = inner
	}
	return inner
}
