// SPDX-License-Identifier: Apache-2.0

package listing_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/listing"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const listed = `-- clusters.yaml --
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {syncMode: Push}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: us-1}
spec: {syncMode: Push}
-- policy.yaml --
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}]
  placement: {}
-- one.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: shop}
data: {v: "1"}
-- two.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: two, namespace: shop}
data: {v: "1"}
-- role.yaml --
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
`

// viewOf is everything of the fleet at the head of a repository.
func viewOf(t *testing.T, g *sourcetest.Repo) *listing.View {
	t.Helper()
	repo, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	state, err := history.New(repo, ".").At(g.Head())
	if err != nil || state.Refusal != nil {
		t.Fatal(err, state.Refusal)
	}
	return &listing.View{State: &state, Selector: labels.Everything()}
}

// What is listed is named as its object is, and a table and names take no object: there may
// be a million of them.
func TestListsMakeNoObjects(t *testing.T) {
	v := viewOf(t, sourcetest.Txtar(t, listed))
	for noun, want := range map[string]int{"templates": 3, "bindings": 3, "works": 6, "objects": 6} {
		l := v.List(noun)
		if len(l.Items) != want {
			t.Errorf("%d %s, want %d", len(l.Items), noun, want)
		}
		made := 0
		for i := range l.Items {
			it := &l.Items[i]
			known := it.ID
			it.ID = object.ID{}
			if id, err := it.Identity(); err != nil || known != (object.ID{}) && id != known {
				t.Errorf("%s: %s is listed as %s: %v", noun, id, known, err)
			}

			it.ID = known
			object := it.Object
			it.Object = output.Made(func() any { made++; return object })
		}

		forms := []string{output.FormTable, output.FormWide}
		if noun != "bindings" { // there are as few as templates
			forms = append(forms, output.FormName)
		}
		for _, form := range forms {
			if err := output.Print(&bytes.Buffer{}, []output.List{l}, output.Options{Form: output.Form{Name: form}}); err != nil {
				t.Fatal(err)
			}
		}
		if made > 0 {
			t.Errorf("%d objects were made for a table of %s", made, noun)
		}
	}
}

// The manifest of a work is as before it was made late: that of its cluster.
func TestWorkIsMadeLate(t *testing.T) {
	v := viewOf(t, sourcetest.Txtar(t, listed))
	v.Clusters, v.Name = []string{"us-1"}, v.State.WorkName(object.ID{Kind: "ConfigMap", Namespace: "shop", Name: "two"})
	var out bytes.Buffer
	if err := output.Print(&out, []output.List{v.List("works")}, output.Options{Form: output.Form{Name: output.FormYAML}, Single: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: Work", "namespace: " + propagate.ExecutionNamespace("us-1"), "name: two"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, &out)
		}
	}
}

// Of two templates of one kind the one that changes is told, and no other.
func TestChangesOfOneKind(t *testing.T) {
	g := sourcetest.Txtar(t, listed)
	var changes listing.Changes
	told := func() (names []string) {
		lists, err := changes.Of([]output.List{viewOf(t, g).List("templates")}, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lists {
			for _, it := range l.Items {
				names = append(names, it.Row[0].(string)+" "+it.ID.Name)
			}
		}
		slices.Sort(names)
		return names
	}

	if first := told(); !slices.Equal(first, []string{"ADDED one", "ADDED reader", "ADDED two"}) {
		t.Errorf("first: %v", first)
	}
	if same := told(); len(same) > 0 {
		t.Errorf("nothing changed: %v", same)
	}
	g.Commit("two", map[string]string{"two.yaml": strings.Replace(sourcetest.Files(listed)["two.yaml"], `"1"`, `"2"`, 1)})
	if next := told(); !slices.Equal(next, []string{"MODIFIED two"}) {
		t.Errorf("after a change of one: %v", next)
	}
	g.Commit("three", map[string]string{"one.yaml": sourcetest.Delete})
	if next := told(); !slices.Equal(next, []string{"DELETED one"}) {
		t.Errorf("after one was removed: %v", next)
	}
}
