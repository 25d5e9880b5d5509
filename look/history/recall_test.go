// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// recallFleet has 60 templates, one in a file each, on two clusters that get different
// contents.
func recallFleet() map[string]string {
	files := map[string]string{
		"clusters.yaml": twoClusters,
		"all.yaml":      "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [m1, m2]}}}\n",
		"m1.yaml":       "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {name: m1}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  overrideRules: [{targetCluster: {clusterNames: [m1]}, overriders: {labelsOverrider: [{operator: add, value: {on: m1}}]}}]\n",
	}
	for i := range 60 {
		files[fmt.Sprintf("t/%d.yaml", i)] = recallTemplate(i, "1")
	}
	return files
}

func recallTemplate(i int, v string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d, namespace: default}\ndata: {v: '%s'}\n", i, v)
}

// looked folds up to a commit as a command does that has a cache.
func looked(t *testing.T, g *sourcetest.Repo, dir, head string) (propagate.State, int) {
	t.Helper()
	repo, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	cache := history.NewCache(dir, ".", "", nil)
	cache.Recalls = true
	states := &history.States{Repo: repo, History: history.New(repo, "."), Cache: cache}
	s, err := states.At(head)
	if err != nil {
		t.Fatal(err)
	}
	return s, states.History.Renders
}

func sameStates(t *testing.T, got, want *propagate.State) {
	t.Helper()
	if got.Bindings.Len() != want.Bindings.Len() || got.Works != want.Works || want.Works == 0 {
		t.Fatalf("%d bindings with %d works, want %d with %d", got.Bindings.Len(), got.Works, want.Bindings.Len(), want.Works)
	}
	for b := range want.Bindings.Values() {
		other := got.Bindings.At(b.Key())
		if !reflect.DeepEqual(other.Record(), b.Record()) {
			t.Errorf("%s is\n%+v\nwant\n%+v", b.ID, other.Record(), b.Record())
		}
		for i := range b.Works {
			if is, was := got.Manifest(b.ID, other.Works[i].Want), want.Manifest(b.ID, b.Works[i].Want); !reflect.DeepEqual(is, was) {
				t.Errorf("%s is\n%v\nwant\n%v", b.ID, is, was)
			}
		}
	}
}

// A command that finds a state in the cache renders what decides where things go, and of
// the rest what changed; and it sees what one without a cache sees. What the cache has
// lost or what is damaged is made again.
func TestCachedStateRendersWhatChanged(t *testing.T) {
	history.WorthKeeping = 0
	g := sourcetest.New(t)
	one := g.Commit("one", recallFleet())
	two := g.Commit("two", map[string]string{"t/7.yaml": recallTemplate(7, "2")})
	dir := t.TempDir()

	const control = 3 // the files of clusters, the policy and the override
	check := func(what, head string, renders int) {
		t.Helper()
		s, n := looked(t, g, dir, head)
		if n != renders {
			t.Errorf("%s: %d units were rendered, want %d", what, n, renders)
		}
		repo, err := source.Open(g.Dir)
		if err != nil {
			t.Fatal(err)
		}
		want, err := history.New(repo, ".").At(head)
		if err != nil {
			t.Fatal(err)
		}
		sameStates(t, &s, &want)
	}
	check("without a cache", one, 63)
	check("the same again", one, control)
	check("a commit later", two, control+1)
	check("and again", two, control+1) // one file in sixty is not worth keeping all again

	damage := func(pattern string, do func(string) error) {
		t.Helper()
		found, _ := filepath.Glob(filepath.Join(dir, "*", pattern))
		if len(found) == 0 {
			t.Fatalf("no file %s", pattern)
		}
		for _, file := range found {
			if err := do(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	damage("units", func(file string) error { return os.Truncate(file, 100) })
	check("with damaged units", two, 63)
	check("after it", two, control)
	damage("*.state", func(file string) error { return os.Truncate(file, 100) })
	damage("units", os.Remove)
	check("with damaged states", two, 64)
	check("after it", two, control)
}

// An object that git has lost since its state was read is a panic of its own, which no
// stage of the fold takes for a defect of the commit.
func TestLostObjectIsNotJudged(t *testing.T) {
	history.WorthKeeping = 0
	g := sourcetest.New(t)
	head := g.Commit("one", recallFleet())
	dir := t.TempDir()
	looked(t, g, dir, head)
	s, _ := looked(t, g, dir, head)

	blob := g.Git("rev-parse", head+":t/7.yaml")
	if err := os.Remove(filepath.Join(g.Dir, ".git/objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	defer func() {
		lost, ok := recover().(fleet.Unavailable)
		if !ok || !strings.Contains(errors.Unwrap(lost).Error(), blob) {
			t.Errorf("%v", lost)
		}
	}()
	s.Snapshot.Templates.At("default/ConfigMap./c7").Object()
	t.Error("it was read")
}
