// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile/checkpoint"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// frozenHistory breaks and mends units in all the ways that there are.
var frozenHistory = []struct {
	message string
	files   map[string]string
	frozen  string // what is, after it
	refused string // why it is refused or held
}{
	{"a fleet", map[string]string{
		"fairlead.yaml":           "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {onBroken: FreezeUnit}\n",
		"clusters/m1.yaml":        failoverCluster("m1", ""),
		"policy.yaml":             configPolicy("all", "default", ""),
		"web.yaml":                config("web", "1"),
		"late.yaml":               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late, namespace: other}\ndata: {v: '1'}\n",
		"eu/kustomization.yaml":   "resources: [../base]\nnamePrefix: eu-\n",
		"us/kustomization.yaml":   "resources: [../base]\nnamePrefix: us-\n",
		"base/kustomization.yaml": "resources: [../deep, app.yaml]\n",
		"base/app.yaml":           config("app", "1"),
		"deep/kustomization.yaml": "resources: [deep.yaml]\n",
		"deep/deep.yaml":          config("deep", "1"),
		"new.yaml":                "nothing: [",
	}, "new.yaml", ""},
	{"eu is broken", map[string]string{"eu/kustomization.yaml": "resources: [../base, missing.yaml]\n", "web.yaml": config("web", "2")}, "eu new.yaml", ""},
	{"and its kustomization cannot be parsed", map[string]string{"eu/kustomization.yaml": "resources: [../base\n"}, "eu new.yaml", ""},
	{"held", map[string]string{"web.yaml": "# nothing is left\n", "base/app.yaml": config("app", "of the held commit")}, "eu new.yaml", "renders none"},
	{"held, and the base broken", map[string]string{"base/app.yaml": "kind: ["}, "eu new.yaml", "renders none"},
	{"not held any more", map[string]string{"web.yaml": config("web", "3")}, "eu new.yaml us", ""},
	{"nothing under the path", map[string]string{"README.md": "words"}, "eu new.yaml us", ""},
	{"the base cannot be parsed", map[string]string{"base/kustomization.yaml": "resource: [app.yaml]\n", "eu/kustomization.yaml": "resources: [../base]\nnamePrefix: eu-\n"}, "eu new.yaml us", ""},
	{"a policy with mistakes", map[string]string{"policy.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all}\n", "base/app.yaml": config("app", "refused")}, "eu new.yaml us", "spec.resourceSelectors"},
	{"another cluster, and a collision", map[string]string{"policy.yaml": configPolicy("all", "default", ""), "clusters/m2.yaml": failoverCluster("m2", ""), "twice.yaml": config("eu-app", "1")}, "eu new.yaml us", "before it was broken"},
	{"no collision", map[string]string{"twice.yaml": sourcetest.Delete}, "eu new.yaml us", ""},
	{"mended", map[string]string{"base/kustomization.yaml": "resources: [app.yaml, ../deep]\n", "base/app.yaml": config("app", "4")}, "new.yaml", ""},
	{"what a policy waits for is broken", map[string]string{"late.yaml": "kind: [", "late-policy.yaml": configPolicy("late", "other", "")}, "late.yaml new.yaml", ""},
	{"the policy goes, and it is mended", map[string]string{"late.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late, namespace: other}\ndata: {v: '2'}\n", "late-policy.yaml": sourcetest.Delete}, "new.yaml", ""},
	{"a policy's file is broken", map[string]string{"policy.yaml": "kind: ["}, "new.yaml policy.yaml", ""},
	{"a template beside it", map[string]string{"web.yaml": config("web", "5")}, "new.yaml policy.yaml", ""},
	{"new after all", map[string]string{"new.yaml": config("new", "1")}, "policy.yaml", ""},
	{"eu is gone", map[string]string{"eu/kustomization.yaml": sourcetest.Delete}, "policy.yaml", ""},
	{"nothing freezes any more", map[string]string{"fairlead.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: 9}\n"}, "policy.yaml", "policy.yaml:1"},
	{"nor has to", map[string]string{"policy.yaml": configPolicy("all", "default", "  priority: 1\n")}, "", ""},
}

func config(name, v string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {v: '%s'}\n", name, v)
}

func configPolicy(name, namespace, more string) string {
	return "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n" + more
}

// A checkpoint with what is frozen goes on like the process that wrote it, and
// like a fold of the whole history: after every commit, whatever was read and
// held in between.
func TestFrozenStateGoesOnAlike(t *testing.T) {
	git := sourcetest.New(t)
	repo, err := source.Open(git.Dir)
	if err != nil {
		t.Fatal(err)
	}
	cp, _, err := checkpoint.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer cp.Close()
	origin := checkpoint.Origin{Repo: git.Dir, Ref: "main", Path: "."}
	line := history.New(repo, ".")
	var state propagate.State
	for n, step := range frozenHistory {
		git.Commit(step.message, step.files)
		commits, err := line.Commits(state.Commit, git.Head())
		if err != nil {
			t.Fatal(err)
		}
		restarted := history.New(repo, ".")
		restored, ok, err := cp.Load(origin, restarted)
		if err != nil || ok != (n > 0) {
			t.Fatalf("before %q: loaded %v, %v", step.message, ok, err)
		}
		if state, err = line.Fold(state, commits, nil); err != nil {
			t.Fatal(err)
		}
		if restored, err = restarted.Fold(restored, commits, nil); err != nil {
			t.Fatal(err)
		}
		whole, err := history.New(repo, ".").At(git.Head())
		if err != nil {
			t.Fatal(err)
		}
		want := everything(t, &state)
		if got := everything(t, &restored); got != want {
			t.Fatalf("%s\n--- restored\n%s\n--- kept\n%s", step.message, got, want)
		}
		if got := everything(t, &whole); got != want {
			t.Fatalf("%s\n--- folded again\n%s\n--- kept\n%s", step.message, got, want)
		}
		if frozen := strings.Join(state.FrozenUnits(), " "); frozen != step.frozen {
			t.Errorf("%s: %q is frozen, want %q", step.message, frozen, step.frozen)
		}
		refused := ""
		if state.Refusal != nil {
			refused = state.Refusal.Problems[0].Error()
		}
		if (refused == "") != (step.refused == "") || !strings.Contains(refused, step.refused) {
			t.Errorf("%s: refused for %q, want %q", step.message, refused, step.refused)
		}
		if err := cp.Save(origin, state); err != nil {
			t.Fatal(err)
		}
	}
}

// everything is all that a state says.
func everything(t testing.TB, s *propagate.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %v %d works\n", s.Commit, s.Accepted, s.Frozen, s.Works)
	if s.Refusal != nil {
		fmt.Fprintln(&b, asJSON(t, s.Refusal.Problems))
	}
	for binding := range s.Bindings.Values() {
		fmt.Fprintln(&b, binding.ID, asJSON(t, binding.Record()))
	}
	for a := range s.Tombstones.Values() {
		fmt.Fprintln(&b, a.ID, asJSON(t, a.Record()))
	}
	for template := range s.Snapshot.Templates.Values() {
		fmt.Fprintln(&b, template.ID, template.Origin, template.Unit, template.Digest)
	}
	for _, f := range s.Findings() {
		fmt.Fprintln(&b, f.Severity, f.Code, f)
	}
	return b.String()
}

// What is frozen is told once, and again when it breaks again.
func TestFrozenIsTold(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	files := quickstart(t)
	files["fairlead.yaml"] = "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {onBroken: FreezeUnit}\n"
	good := w.repo.Commit("good", files)
	w.settle()
	w.writes()
	w.said()
	const app = "apps/web/kustomization.yaml"
	l := w.open()
	defer l.Close()
	told := func() (lines []string) {
		if _, err := l.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(strings.Split(w.said(), "\n"), func(line string) bool { return !strings.Contains(line, "stays as of") })
	}
	for range 2 {
		w.repo.Commit("broken", map[string]string{app: "resources: ["})
		want := app + ":1: YAML: did not find expected node content; apps/web stays as of commit " + good[:7]
		if got := told(); !slices.Equal(got, []string{want}) {
			t.Errorf("said %q, want %q", got, want)
		}
		if got := told(); len(got) > 0 {
			t.Errorf("said again %q", got)
		}
		good = w.repo.Commit("mended", map[string]string{app: files[app]})
		if got := told(); len(got) > 0 {
			t.Errorf("said of what is mended %q", got)
		}
	}
	w.wantWrites()
}
