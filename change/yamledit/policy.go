// SPDX-License-Identifier: Apache-2.0

package yamledit

import (
	"slices"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// Policy is the document of a PropagationPolicy or ClusterPropagationPolicy.
type Policy struct{ *Object }

// spelling is how the policy spells the fields of its suspension. Edits keep
// that spelling, since a line that only changes its spelling is noise in a
// review.
func (p Policy) spelling() (everywhere, named string) {
	for _, old := range []string{"suspendDispatching", "suspendDispatchingOnClusters"} {
		if p.Get("spec", "suspension", old) != nil {
			return "suspendDispatching", "suspendDispatchingOnClusters"
		}
	}
	return "dispatching", "dispatchingOnClusters"
}

// Suspended returns what the policy holds: every cluster, or the named ones.
func (p Policy) Suspended() (everywhere bool, clusters []string) {
	all, named := p.spelling()
	everywhere, _ = p.Get("spec", "suspension", all).(bool)
	list, _ := p.Get("spec", "suspension", named, "clusterNames").([]any)
	for _, item := range list {
		if name, ok := item.(string); ok {
			clusters = append(clusters, name)
		}
	}

	return everywhere, clusters
}

// Suspend adds clusters to the held ones.
func (p Policy) Suspend(clusters ...string) error {
	_, named := p.spelling()
	_, held := p.Suspended()
	var added []any
	for _, name := range clusters {
		if !slices.Contains(held, name) {
			held, added = append(held, name), append(added, name)
		}
	}

	return p.Append(added, "spec", "suspension", named, "clusterNames")
}

// SuspendAll holds every cluster. It replaces a list of names.
func (p Policy) SuspendAll() error {
	all, named := p.spelling()
	if err := p.Set(true, "spec", "suspension", all); err != nil {
		return err
	}
	return p.Remove("spec", "suspension", named)
}

// Resume removes clusters from the held ones, and the suspension with the last
// one.
func (p Policy) Resume(clusters ...string) error {
	_, named := p.spelling()
	list, _ := p.Get("spec", "suspension", named, "clusterNames").([]any)
	var places []string
	for i, item := range list {
		if name, _ := item.(string); slices.Contains(clusters, name) {
			places = append(places, itoa(i))
		}
	}

	return p.RemoveEach(places, "spec", "suspension", named, "clusterNames")
}

// ResumeAll lifts the suspension.
func (p Policy) ResumeAll() error { return p.Remove("spec", "suspension") }

// HoldOnly replaces a hold on every cluster by one on the named clusters.
func (p Policy) HoldOnly(clusters ...string) error {
	all, _ := p.spelling()
	if err := p.Suspend(clusters...); err != nil {
		return err
	}
	return p.Remove("spec", "suspension", all)
}

// Activate sets the annotation that forces the policy into effect when it
// changes.
func (p Policy) Activate(value string) error {
	return p.Set(value, "metadata", "annotations", fleetv1alpha1.AnnotationActivate)
}

// Note records who holds clusters, why and until when, on one line each.
func (p Policy) Note(h fleetv1alpha1.Hold, clusters ...string) error {
	entry := Inline{}
	for _, f := range []Field{{"by", h.By}, {"reason", h.Reason}, {"until", h.Until}, {"ticket", h.Ticket}} {
		if f.Value != "" {
			entry = append(entry, f)
		}
	}

	lines := make(Fields, len(clusters))
	for i, name := range clusters {
		lines[i] = Field{name, entry}
	}

	return p.editNotes(func(notes *Object) error { return notes.SetEach(lines) })
}

// Forget removes the notes about clusters.
func (p Policy) Forget(clusters ...string) error {
	noted, _ := p.readNotes()
	left := len(noted)
	for name := range noted {
		if slices.Contains(clusters, name) {
			left--
		}
	}

	if left == 0 {
		return p.ForgetAll()
	}

	return p.editNotes(func(notes *Object) error { return notes.RemoveEach(clusters) })
}

// ForgetAll removes all notes.
func (p Policy) ForgetAll() error {
	return p.Remove("metadata", "annotations", fleetv1alpha1.AnnotationHolds)
}

// readNotes returns the notes and their text.
func (p Policy) readNotes() (map[string]any, string) {
	text, _ := p.Get("metadata", "annotations", fleetv1alpha1.AnnotationHolds).(string)
	f, err := Read("", []byte(text))
	if err != nil {
		return nil, text
	}
	v, _ := (&Object{file: f}).Get().(map[string]any)
	return v, text
}

// editNotes edits the text of the annotation in the style of the document.
func (p Policy) editNotes(change func(*Object) error) error {
	old, text := p.readNotes()
	if len(old) == 0 {
		text = "{}\n"
	}

	f, err := Read(fleetv1alpha1.AnnotationHolds, []byte(text))
	if err != nil {
		return err
	}

	if err := change(&Object{file: f}); err != nil {
		return err
	}
	if string(f.Text()) == text {
		return nil
	}

	return p.Set(string(f.Text()), "metadata", "annotations", fleetv1alpha1.AnnotationHolds)
}
