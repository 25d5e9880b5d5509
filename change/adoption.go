// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// adoption is a live object that becomes a template. It is nil for an edit that
// adopts nothing, and its methods accept that.
type adoption struct {
	id             object.ID
	cluster        string
	live, template map[string]any
	policy         *fleet.PolicyRef // that is written with it; nil without one
	file           string           // in the fleet
}

// brings reports whether the edit is meant to create a policy.
func (a *adoption) brings(p *fleet.Policy) bool {
	return a != nil && a.policy != nil && p.Ref == *a.policy && p.Origin.File == a.file
}

// arrives refuses an edit whose file is not rendered, or does not become a
// template.
func (a *adoption) arrives(s *Session, after *fleet.Snapshot) error {
	if a == nil {
		return nil
	}

	t, ok := after.Templates.Get(a.id.Key())
	if ok && t.Origin.File == a.file && after.Skips(a.id) == "" {
		return nil
	}
	if _, read := after.Units.Get(a.file); read {
		return fmt.Errorf("%s is not an object that a fleet sends to clusters; nothing is written", a.id)
	}

	return fmt.Errorf("%s would not be rendered: a kustomization above it or an ignore file excludes it; choose another file with --into", s.inRepository(a.file))
}

// judge marks the create in the plan as an adoption, and notes what is unusual
// for one: fields that would change, and policies that interfere.
func (a *adoption) judge(s *Session, plan *propagate.Plan, after *propagate.State) {
	if a == nil {
		return
	}

	for i := range plan.Cells {
		c := &plan.Cells[i]
		if c.Object != a.id || c.Cluster != a.cluster || c.Action != propagate.ActionCreate {
			continue
		}
		c.Action = report.ActionAdopt
		if n, ok, _ := unstructured.NestedInt64(a.live, "spec", "replicas"); ok && c.Replicas != nil {
			c.Replicas.Before = n
		}
	}

	b := after.Bindings.At(a.id.Key())
	if b == nil || b.Claim == nil {
		s.note("no policy claims %s: nothing is sent until one does", a.id)
		return
	}

	if a.policy != nil && *b.Claim != *a.policy {
		s.note("%s claims %s instead of the policy that is written with it", *b.Claim, a.id)
	}
	w := b.Work(a.cluster)
	if w == nil {
		s.note("%s is not placed on %s: 'fairlead why' explains it once it is committed", a.id, a.cluster)
		return
	}

	a.compare(s, after, b, w)
}

func (a *adoption) compare(s *Session, after *propagate.State, b *propagate.Binding, w *propagate.Work) {
	if !w.Preserve {
		s.note("%s would be deleted on %s with its template: %s does not preserve it", a.id, a.cluster, *b.Claim)
	}
	if w.Want == nil {
		return
	}
	if !b.Overwrites(w.Want) {
		s.note("%s would stay as it is on %s and be reported as a conflict: %s does not overwrite foreign objects", a.id, a.cluster, *b.Claim)
		return
	}

	if changed := differing("", unmarked(after.Manifest(a.id, w.Want)), a.template); len(changed) > 0 {
		s.note("%s would change on %s: %s", a.id, a.cluster, strings.Join(changed, ", "))
	}
}

// unmarked removes our marks from a manifest.
func unmarked(manifest map[string]any) map[string]any {
	meta, _ := manifest["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		marks, _ := meta[field].(map[string]any)
		maps.DeleteFunc(marks, func(key string, _ any) bool { return object.IsOurs(key) })
		if len(marks) == 0 {
			delete(meta, field)
		}
	}

	return manifest
}

// differing returns the paths, at most three fields deep, at which two objects
// differ.
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
