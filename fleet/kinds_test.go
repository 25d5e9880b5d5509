// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/render"
)

func ghostTree(docs ...string) fstest.MapFS {
	text := "# who is here\n" + strings.Join(docs, "---\n")
	return fstest.MapFS{"ghosts.yaml": {Data: []byte(text), Mode: 0o644}}
}

const (
	casper  = "apiVersion: ghosts.test/v1\nkind: Ghost\nmetadata: {name: casper}\n"
	banquo  = "apiVersion: ghosts.test/v1\nkind: Ghost\nmetadata: {name: banquo}\nspec: {house: castle}\n"
	banquo2 = "apiVersion: ghosts.test/v1\nkind: Ghost\nmetadata: {name: banquo}\nspec: {house: heath}\n"
)

// A kind that is registered is decoded, defaulted, keyed and found at its line.
func TestNewKindIsRead(t *testing.T) {
	b, err := render.NewWith(fleet.WithGhosts()).Render(ghostTree(casper, banquo))
	if err != nil {
		t.Fatal(err)
	}

	ghosts := fleet.Of[*fleet.Ghost](b.Snapshot)
	for name, want := range map[string]fleet.Ghost{
		"casper": {Name: "casper", House: "attic", Origin: fleet.Origin{File: "ghosts.yaml", Line: 2}},
		"banquo": {Name: "banquo", House: "castle", Origin: fleet.Origin{File: "ghosts.yaml", Line: 6}},
	} {
		if g := ghosts.At(name); g == nil || *g != want {
			t.Errorf("%s is %v, want %v", name, g, want)
		}
	}

	if n := ghosts.Len(); n != 2 {
		t.Errorf("%d ghosts, want 2", n)
	}
	if n := b.Snapshot.Templates.Len(); n != 0 {
		t.Errorf("%d templates, want none", n)
	}
}

// A mistake in a document of a registered kind refuses the tree, with its line.
func TestNewKindIsValidated(t *testing.T) {
	const head = "apiVersion: ghosts.test/v1\nkind: Ghost\nmetadata: {name: x}\nspec:\n"
	for name, c := range map[string]struct {
		tree fstest.MapFS
		want string
	}{
		"invalid":         {ghostTree(head + "  house: a\n  loud: true\n"), "ghosts.yaml:7: spec.loud: ghosts are quiet"},
		"unknown field":   {ghostTree(head + "  hose: a\n"), `ghosts.yaml:6: unknown field "spec.hose"`},
		"wrong type":      {ghostTree(head + "  house: [a]\n"), "ghosts.yaml:6: spec.house is a array, must be a string"},
		"unknown version": {ghostTree(strings.Replace(casper, "/v1", "/v2", 1)), "ghosts.yaml:2: Ghost of ghosts.test/v2 is unknown; the supported version is v1"},
		"misspelt kind":   {ghostTree(strings.Replace(casper, "Ghost", "Ghots", 1)), "ghosts.yaml:3: ghosts.test has no kind Ghots; supported kinds: Ghost"},
		"twice":           {ghostTree(banquo, banquo2), "ghosts.yaml:7: Ghost banquo is also defined at ghosts.yaml:2"},
	} {
		_, err := render.NewWith(fleet.WithGhosts()).Render(c.tree)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// What is equal in the next snapshot is the same pointer; a document that is
// gone from git is gone.
func TestNewKindIsCompared(t *testing.T) {
	r := render.NewWith(fleet.WithGhosts())
	first, err := r.Render(ghostTree(casper, banquo))
	if err != nil {
		t.Fatal(err)
	}

	second, err := r.Next(first, ghostTree(casper, banquo2), []string{"ghosts.yaml"})
	if err != nil {
		t.Fatal(err)
	}

	was, is := fleet.Of[*fleet.Ghost](first.Snapshot), fleet.Of[*fleet.Ghost](second.Snapshot)
	if was.At("casper") != is.At("casper") {
		t.Error("casper is not the same pointer")
	}
	if was.At("banquo").House != "castle" || is.At("banquo").House != "heath" {
		t.Errorf("banquo was at %s and is at %s", was.At("banquo").House, is.At("banquo").House)
	}

	third, err := r.Next(second, ghostTree(casper), []string{"ghosts.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if all := fleet.Of[*fleet.Ghost](third.Snapshot); all.Len() != 1 || all.At("casper") != was.At("casper") {
		t.Errorf("%d ghosts are left", all.Len())
	}
}

// Without the line that registers it, a document is a template.
func TestUnknownKindIsATemplate(t *testing.T) {
	b, err := render.New().Render(ghostTree(casper))
	if err != nil || b.Snapshot.Templates.Len() != 1 {
		t.Errorf("%v, want one template", err)
	}
}
