// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/change"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const shop = `
-- fleet.yaml --
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
# Everything of the shop.
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: shop, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
-- settings.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {color: blue}
`

var day = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func suspendUS() *change.Suspend {
	return &change.Suspend{
		Hold:   change.Hold{Policy: "shop", Clusters: []string{"us-*"}},
		Reason: "soak", Until: "2026-12-01", Today: "2026-11-28",
	}
}

// open opens a session on the shop's repository. Bob edits what Ada wrote.
func open(t *testing.T, repo *sourcetest.Repo, opt change.Options) *change.Session {
	t.Helper()
	opened, err := source.Open(repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	opt.Repo, opt.Path = repo.Dir, "."
	opt.Author = func() (change.Author, error) {
		return change.Author{Name: "Bob", Mail: "bob@example.com", When: day}, nil
	}

	s, err := change.Open(&history.States{Repo: opened, History: history.New(opened, ".")}, opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// preview checks a change, prepares it in a session and plans it.
func preview(t *testing.T, s *change.Session, c change.Change) (change.Edit, *change.Preview) {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	e, err := c.Edit(s)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Preview(e, day)
	if err != nil {
		t.Fatal(err)
	}
	return e, p
}

func TestSuspendWritesTheWorkTree(t *testing.T) {
	repo := sourcetest.Txtar(t, shop)
	head := repo.Head()
	s := open(t, repo, change.Options{})
	e, p := preview(t, s, suspendUS())

	// Until it is written, a change is a plan and a patch.
	if p.Empty() || p.Plan == nil || p.Plan.Base.Commit != head {
		t.Fatalf("the preview plans nothing on %s: %+v", head, p)
	}
	if want := "policy.yaml: suspended us-1 until 2026-12-01"; len(e.Said) != 1 || e.Said[0] != want {
		t.Errorf("the edit says %q, want %q", e.Said, want)
	}
	if patch := string(p.Patch()); !strings.Contains(patch, "+      clusterNames: [us-1]") && !strings.Contains(patch, "+        - us-1") {
		t.Errorf("the patch does not suspend us-1:\n%s", patch)
	}
	if repo.Git("status", "--porcelain") != "" {
		t.Error("a preview has written")
	}

	done, err := s.Write(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if want := "written to the work tree, not committed"; done != want {
		t.Errorf("Write says %q, want %q", done, want)
	}
	text, err := os.ReadFile(filepath.Join(repo.Dir, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Everything of the shop.\n", "us-1", "by: Bob <bob@example.com>", "reason: soak"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("policy.yaml has no %q:\n%s", want, text)
		}
	}
	if repo.Head() != head || repo.Git("diff", "--name-only") != "policy.yaml" {
		t.Errorf("more than policy.yaml of the work tree has changed:\n%s", repo.Git("status"))
	}
}

func TestSuspendCommitsAndResumeUndoesIt(t *testing.T) {
	repo := sourcetest.Txtar(t, shop)
	before := repo.Head()

	s := open(t, repo, change.Options{Commit: true})
	_, p := preview(t, s, suspendUS())
	done, err := s.Write(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if want := "committed " + source.Short(repo.Head()) + " on branch main (not pushed)"; done != want {
		t.Errorf("Write says %q, want %q", done, want)
	}
	want := "Bob <bob@example.com>\nfleet: suspend shop on us-1\n\nReason: soak\nUntil: 2026-12-01"
	if got := repo.Git("log", "-1", "--format=%an <%ae>%n%B"); got != want {
		t.Errorf("the commit reads\n%s\nwant\n%s", got, want)
	}

	s = open(t, repo, change.Options{Commit: true})
	_, p = preview(t, s, &change.Resume{Hold: change.Hold{Policy: "shop", All: true}})
	if _, err := s.Write(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := repo.Git("diff", before, "HEAD"); diff != "" {
		t.Errorf("the policy is not as it was:\n%s", diff)
	}
	if status := repo.Git("status", "--porcelain"); status != "" {
		t.Errorf("the work tree is not clean: %s", status)
	}
}

func TestSuspendOfTheSuspendedIsEmpty(t *testing.T) {
	repo := sourcetest.Txtar(t, shop)
	s := open(t, repo, change.Options{Commit: true})
	_, p := preview(t, s, suspendUS())
	if _, err := s.Write(t.Context(), p); err != nil {
		t.Fatal(err)
	}

	e, p := preview(t, open(t, repo, change.Options{Commit: true}), suspendUS())
	if !p.Empty() || p.Plan != nil || len(p.Patch()) > 0 {
		t.Errorf("suspended twice, the policy changes:\n%s", p.Patch())
	}
	if want := "policy.yaml: suspended already: us-1"; len(e.Said) != 1 || e.Said[0] != want {
		t.Errorf("the edit says %q, want %q", e.Said, want)
	}
}

func TestWriteRefusesAFileThatChangedMeanwhile(t *testing.T) {
	repo := sourcetest.Txtar(t, shop)
	s := open(t, repo, change.Options{})
	_, p := preview(t, s, suspendUS())
	if err := os.WriteFile(filepath.Join(repo.Dir, "policy.yaml"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}

	if _, err := s.Write(t.Context(), p); err == nil || !strings.Contains(err.Error(), "policy.yaml") {
		t.Errorf("Write over somebody else's edit: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(repo.Dir, "policy.yaml")); err != nil || string(text) != "mine\n" {
		t.Errorf("the edit of somebody else is gone: %q, %v", text, err)
	}
}

// Options that make no sense are found before any repository is read.
func TestCheckRefusesOptions(t *testing.T) {
	us := change.Hold{Policy: "shop", Clusters: []string{"us-1"}}
	for _, c := range []struct {
		name   string
		change change.Change
		want   string // in the message; "" passes
	}{
		{"a hold", suspendUS(), ""},
		{"a hold until today", &change.Suspend{Hold: us, Reason: "soak", Until: "2026-11-28", Today: "2026-11-28"}, ""},
		{"a hold without a reason", &change.Suspend{Hold: us}, "--reason"},
		{"a hold with a blank reason", &change.Suspend{Hold: us, Reason: " \n"}, "--reason"},
		{"a hold that is over", &change.Suspend{Hold: us, Reason: "soak", Until: "2026-11-27", Today: "2026-11-28"}, "--until 2026-11-27"},
		{"a hold until no day", &change.Suspend{Hold: us, Reason: "soak", Until: "tomorrow"}, "--until"},
		{"a reason that moves the cursor", &change.Suspend{Hold: us, Reason: "\x1b[2J"}, "control characters"},
		{"a hold on no cluster", &change.Suspend{Hold: change.Hold{Policy: "shop"}, Reason: "soak"}, "-c NAME"},
		{"a hold on some and all", &change.Suspend{Hold: change.Hold{Policy: "shop", Clusters: []string{"us-1"}, All: true}, Reason: "soak"}, "--all"},
		{"an adoption from nowhere", &change.Adopt{Policy: true}, "-c NAME"},
		{"a taint without an effect", &change.Taint{Cluster: "us-1", Taints: []string{"disk=full"}}, "effect"},
		{"the removal of a taint by its key", &change.Taint{Cluster: "us-1", Taints: []string{"disk-"}}, ""},
	} {
		err := c.change.Check()
		var wrong *change.OptionError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s is refused: %v", c.name, err)
		case c.want == "":
		case !errors.As(err, &wrong):
			t.Errorf("%s: %v is no OptionError", c.name, err)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: the message %q does not name %q", c.name, err, c.want)
		}
	}
}

// A17: what is adopted is what was asked for, whatever the cluster answers.
func TestAdoptTakesTheQuestion(t *testing.T) {
	asked := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	answer := func() map[string]any {
		return map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": map[string]any{"name": "../../admin", "namespace": "kube-system"},
			"data":     map[string]any{"v": "1"},
		}
	}
	s := open(t, sourcetest.Txtar(t, shop), change.Options{})
	for _, test := range []struct{ namespace string }{{"default"}, {""}} {
		adopt, given := &change.Adopt{Cluster: "eu-1"}, answer()
		adopt.Take(given, asked, test.namespace, "web")
		file, text, err := adopt.Document(s)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(file+string(text), "admin") || strings.Contains(file+string(text), "kube-system") || !strings.Contains(string(text), "kind: ConfigMap\n") || !strings.Contains(string(text), "name: web\n") {
			t.Errorf("in %q: %s has\n%s", test.namespace, file, text)
		}
		if strings.Contains(string(text), "namespace:") != (test.namespace != "") {
			t.Errorf("in %q:\n%s", test.namespace, text)
		}
		if !reflect.DeepEqual(given, answer()) {
			t.Error("the answer was edited")
		}
	}

	// A Secret is one by the question as well.
	adopt := &change.Adopt{Cluster: "eu-1"}
	adopt.Take(answer(), schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "default", "web")
	if _, _, err := adopt.Document(s); err == nil || !strings.Contains(err.Error(), "--include-secrets") {
		t.Errorf("a Secret: %v", err)
	}
}
