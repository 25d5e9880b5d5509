// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead/fairlead/object"
)

// Decision 33: whose an object is, by its marks and our record.
func TestWhose(t *testing.T) {
	has := func(commit string) bool { return commit == "ours" }
	sea := object.Marker{Name: "sea", Former: []string{"lake"}, Has: has}
	for _, c := range []struct {
		says     string
		fleet    string // "-" is an object without our mark
		revision string
		known    bool
		marker   object.Marker
		want     object.Whose
	}{
		{"our name", "sea", "", false, sea, object.Ours},
		{"another name", "sky", "ours", true, sea, object.AnotherFleets},
		{"no name, and nothing else is known", "", "theirs", false, sea, object.AnotherFleets},
		{"no name, on record", "", "theirs", true, sea, object.Ours},
		{"no name, a commit of ours", "", "ours", false, sea, object.Ours},
		{"no name, and no history at hand", "", "ours", false, object.Marker{Name: "sea"}, object.AnotherFleets},
		{"a former name, and nothing else is known", "lake", "theirs", false, sea, object.AnotherFleets},
		{"a former name, on record", "lake", "theirs", true, sea, object.Ours},
		{"a former name, a commit of ours", "lake", "ours", false, sea, object.Ours},
		{"we do not know who we are", "sky", "", false, object.Marker{}, object.Ours},
		{"without our mark", "-", "ours", true, sea, object.Nobodys},
	} {
		labels := map[string]string{object.LabelManaged: "true", object.LabelFleet: c.fleet}
		if c.fleet == "-" {
			labels = map[string]string{object.LabelFleet: "sea"}
		}
		annotations := map[string]string{object.AnnotationRevision: c.revision}
		if got := c.marker.Whose(labels, annotations, c.known); got != c.want {
			t.Errorf("%s: %v, want %v", c.says, got, c.want)
		}
	}
}

// Decision 33: the name of a fleet that gives itself none is a label, and no two
// directories share one.
func TestDerivedFleetName(t *testing.T) {
	const begin = "0123456789abcdef0123456789abcdef01234567"
	seen := map[string]string{}
	for _, c := range []struct{ directory, want string }{
		{".", "0123456789ab"},
		{"fleets/prod", "0123456789ab-fleets.prod"},
		{"fleets.prod", ""},
		{"fleets/Prod", "0123456789ab-fleets.Prod"},
		{"fleets/prod_", ""},
		{"über uns", ""},
		{"a b", ""},
		{"a-b", "0123456789ab-a-b"},
		{strings.Repeat("long/", 20), ""},
		{strings.Repeat("long/", 21), ""},
		{"-", ""},
	} {
		got := object.DerivedFleetName(begin, c.directory)
		if c.want != "" && got != c.want {
			t.Errorf("%q: %q, want %q", c.directory, got, c.want)
		}
		if problems := validation.IsValidLabelValue(got); len(problems) > 0 || !strings.HasPrefix(got, "0123456789ab") {
			t.Errorf("%q: %q: %v", c.directory, got, problems)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q are both %q", c.directory, other, got)
		}
		seen[got] = c.directory
	}
	if a, b := object.DerivedFleetName(begin, "./fleets/prod/"), object.DerivedFleetName(begin, "fleets/prod"); a != b {
		t.Errorf("%q and %q are one directory", a, b)
	}
}

func TestFleetNameProblem(t *testing.T) {
	for name, fit := range map[string]bool{"sea": true, "sea-1.north": true, "Sea": false, "sea!": false, "-sea": false, strings.Repeat("a", 63): true, strings.Repeat("a", 64): false} {
		if problem := object.FleetNameProblem(name); (problem == "") != fit {
			t.Errorf("%q: %q", name, problem)
		}
	}
}
