// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"maps"

	"github.com/fairlead/fairlead/object"
)

// Manifest is a template's content exactly as it is applied, marks included.
// The caller may keep it and write to its metadata; all else it shares with
// the template.
func (s *State) Manifest(id object.ID, c *Content) map[string]any {
	obj := c.object()
	binding := s.BindingName(id)
	if id.Namespace != "" {
		binding = id.Namespace + "/" + binding
	}

	meta := object.Section(obj, "metadata")
	s.Marker().Mark(object.Section(meta, "labels"))
	maps.Copy(object.Section(meta, "annotations"), map[string]any{
		object.AnnotationBinding:  binding,
		object.AnnotationRevision: c.Revision,
		object.AnnotationDigest:   c.Digest.String(),
	})
	return obj
}

// ManifestFor is the manifest of a template as it would be on a cluster that it is
// not placed on, overrides and all; nil without a template, and where an override
// fails.
func (s *State) ManifestFor(id object.ID, cluster string) map[string]any {
	t, on := s.snapshot().Templates.At(id.Key()), s.snapshot().Clusters.At(cluster)
	if t == nil || on == nil {
		return nil
	}

	r := newRendering(&s.index, t)
	none := whole(0)
	none.bare = len(t.Unset) > 0
	obj, _, rules, err := r.render(t, none, on)
	if err != nil {
		return nil
	}

	return s.Manifest(id, &Content{
		Digest:      object.DigestJSON(cleaned(obj)),
		Completions: -1,
		Bare:        none.bare,
		APIVersion:  t.APIVersion,
		Template:    t,
		Rules:       rules,
		Revision:    s.Accepted,
		reviser:     r.reviser,
	})
}
