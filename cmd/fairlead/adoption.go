// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/propagate"
)

// adoption is an object of a cluster that becomes a template. The methods are
// those of an edit that adopts nothing as well, where it is nil.
type adoption struct {
	id             propagate.ID
	cluster        string
	live, template map[string]any
	policy         *propagate.PolicyRef // that is written beside it; nil without
	file           string               // in the fleet
}

// brings is whether the edit is meant to make a policy.
func (a *adoption) brings(p *propagate.Policy) bool {
	return a != nil && a.policy != nil && p.Ref == *a.policy && p.Origin.File == a.file
}

// arrives refuses an edit whose file is not read, or not taken for a template.
func (a *adoption) arrives(d *desk, after *propagate.Snapshot) error {
	if a == nil {
		return nil
	}
	t, ok := after.Templates.Get(a.id.Key())
	if ok && t.Origin.File == a.file {
		return nil
	}
	if _, read := after.Units.Get(a.file); read {
		return fmt.Errorf("%s is nothing that a fleet sends to clusters; nothing is written", a.id)
	}
	return fmt.Errorf("%s would not be read: a kustomization above it or an ignore file leaves it out; choose another place with --into", d.inRepository(a.file))
}

// judge says in the plan that the object is there, and notes what is not as
// an adoption should be: what would change with it, and who else decides.
func (a *adoption) judge(d *desk, plan *propagate.Plan, after *propagate.State) {
	if a == nil {
		return
	}
	for i := range plan.Cells {
		c := &plan.Cells[i]
		if c.Object != a.id || c.Cluster != a.cluster || c.Action != propagate.ActionCreate {
			continue
		}
		c.Action = actionAdopt
		if n, ok, _ := unstructured.NestedInt64(a.live, "spec", "replicas"); ok && c.Replicas != nil {
			c.Replicas.Before = n
		}
	}
	b := after.Bindings.At(a.id.Key())
	if b == nil || b.Claim == nil {
		d.note("no policy claims %s: nothing is sent until one does", a.id)
		return
	}
	if a.policy != nil && *b.Claim != *a.policy {
		d.note("%s claims %s, and not the policy that is written beside it", *b.Claim, a.id)
	}
	w := b.Work(a.cluster)
	if w == nil {
		d.note("%s does not go to %s: 'fairlead why' says more once it is committed", a.id, a.cluster)
		return
	}
	a.compare(d, after, b, w)
}

func (a *adoption) compare(d *desk, after *propagate.State, b *propagate.Binding, w *propagate.Work) {
	if !w.Preserve {
		d.note("%s would be deleted on %s with its template: %s does not preserve it", a.id, a.cluster, *b.Claim)
	}
	if w.Want == nil {
		return
	}
	if !b.Overwrites(w.Want) {
		d.note("%s would stay as it is on %s, and be reported: %s does not overwrite what is not ours", a.id, a.cluster, *b.Claim)
		return
	}
	if changed := differing("", unmarked(after.Manifest(a.id, w.Want)), a.template); len(changed) > 0 {
		d.note("%s would change on %s: %s", a.id, a.cluster, strings.Join(changed, ", "))
	}
}

// unmarked is a manifest without our marks.
func unmarked(manifest map[string]any) map[string]any {
	meta, _ := manifest["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		marks, _ := meta[field].(map[string]any)
		maps.DeleteFunc(marks, func(key string, _ any) bool { return strings.HasPrefix(key, "fairlead.dev/") })
		if len(marks) == 0 {
			delete(meta, field)
		}
	}
	return manifest
}

// differing are the fields, three deep at most, in which objects differ.
func differing(at string, a, b any) (fields []string) {
	before, ok := a.(map[string]any)
	after, both := b.(map[string]any)
	if !ok || !both || strings.Count(at, ".") > 2 {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []string{strings.TrimPrefix(at, ".")}
	}
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fields = append(fields, differing(at+"."+key, before[key], after[key])...)
	}
	return fields
}
