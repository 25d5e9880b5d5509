// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/render"
	"github.com/fairlead/fairlead/source"
)

// The repository whose history is folded, and the directory in it that is the fleet.
const (
	envHistories     = "FAIRLEAD_HISTORIES"
	envHistoriesPath = "FAIRLEAD_HISTORIES_PATH"
)

// The history of a repository that nobody wrote for fairlead, with clusters and a policy
// for every kind in each commit: `make histories DIR=…`. It fails where a kustomization
// is not what kubectl makes of it.
func TestHistories(t *testing.T) {
	dir := os.Getenv(envHistories)
	if dir == "" {
		t.Skip(envHistories + " names no repository")
	}
	from := cmp.Or(os.Getenv(envHistoriesPath), ".")
	checkout := t.TempDir()
	kinds := kindsIn(t, archived(t, dir, "HEAD", from, checkout))
	below := `""`
	if found, _ := filepath.Glob(filepath.Join(checkout, "[kK]ustomization*")); len(found) > 0 {
		below = "repo" // or the kustomization would have to list what is added
	}
	shadow := shadowed(t, dir, from, below, kinds)

	repo, err := source.Open(shadow)
	if err != nil {
		t.Fatal(err)
	}
	h := history.New(repo, ".")
	commits, err := h.Commits("", "histories")
	if err != nil {
		t.Fatal(err)
	}

	causes, accepted := map[string]int{}, 0
	began := time.Now()
	state, err := h.Fold(propagate.State{}, commits, func(_ *source.Commit, s propagate.State) error {
		if s.Refusal == nil {
			accepted++
			return nil
		}
		for _, cause := range causesOf(s.Refusal) {
			causes[cause]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	took := time.Since(began)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.Logf("%d commits in %.1f s: %.0f a second, %d MiB from the system at most; %d accepted, %d refused or held; %d units rendered",
		len(commits), took.Seconds(), float64(len(commits))/took.Seconds(), memory.Sys>>20, accepted, len(commits)-accepted, h.Renders)
	for _, cause := range slices.SortedFunc(maps.Keys(causes), func(a, b string) int { return cmp.Or(causes[b]-causes[a], cmp.Compare(a, b)) }) {
		t.Logf("%6d commits: %s", causes[cause], cause)
	}

	if state.Accepted == "" {
		t.Log("no commit was accepted: nothing is compared with kubectl")
		return
	}
	t.Logf("the last accepted commit has %d templates, %d bindings and %d works", state.Snapshot.Templates.Len(), state.Bindings.Len(), state.Works)
	compareKustomizations(t, state.Snapshot, archived(t, shadow, state.Accepted, ".", t.TempDir()))
}

// causesOf are the causes of a refusal, without what is of one commit alone.
func causesOf(r *propagate.Refusal) (causes []string) {
	for _, p := range r.Problems {
		message := ofOne.ReplaceAllString(p.Message, "…")
		causes = append(causes, message[:min(len(message), 140)])
	}
	slices.Sort(causes)
	return slices.Compact(causes)
}

var ofOne = regexp.MustCompile(`"[^"]*"|[^ ]*/[^ ]*|[0-9a-f]{7,}|\b[0-9]+\b`)

func gitOutput(t *testing.T, dir string, stdin []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, stderr.Bytes())
	}
	return out
}

// archived has the files of a commit.
func archived(t *testing.T, dir, commit, path, to string) string {
	t.Helper()
	tar := gitOutput(t, dir, nil, "archive", "--format=tar", strings.TrimSuffix(commit+":"+path, "."))
	cmd := exec.Command("tar", "-x", "-C", to)
	cmd.Stdin = bytes.NewReader(tar)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	return to
}

// kindsIn are the kinds that the files of a directory name.
func kindsIn(t *testing.T, dir string) (selectors []string) {
	t.Helper()
	kinds := map[string]bool{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || !e.Type().IsRegular() || ext != ".yaml" && ext != ".yml" {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		for _, doc := range bytes.Split(b, []byte("\n---")) {
			var o struct{ APIVersion, Kind string }
			if yaml.Unmarshal(doc, &o) == nil && o.APIVersion != "" && o.Kind != "" && !strings.Contains(o.APIVersion, "karmada.io/") && !strings.Contains(o.APIVersion, "fairlead.dev/") {
				kinds[fmt.Sprintf("{apiVersion: %q, kind: %q}", o.APIVersion, o.Kind)] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(kinds))
}

// shadowed makes a repository whose commits have the fleet's directory of dir's below a
// path, and clusters and a policy beside it. No tree is checked out.
func shadowed(t *testing.T, dir, from, below string, selectors []string) string {
	t.Helper()
	if len(selectors) == 0 {
		t.Fatal("no file at HEAD names a kind")
	}
	shadow := filepath.Join(t.TempDir(), "shadow.git")
	gitOutput(t, dir, nil, "clone", "-q", "--bare", ".", shadow)

	docs := "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: everything}\nspec:\n  resourceSelectors:\n  - " + strings.Join(selectors, "\n  - ") + "\n"
	for _, name := range []string{"histories-1", "histories-2", "histories-3"} {
		docs += "---\napiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {syncMode: Push}\n"
	}

	commits := strings.Fields(string(gitOutput(t, dir, nil, "rev-list", "--first-parent", "--reverse", "HEAD")))
	var ask, in bytes.Buffer
	for _, c := range commits {
		fmt.Fprintf(&ask, "%s:%s\n", c, strings.TrimSuffix(from, "."))
	}
	trees := strings.Split(strings.TrimSpace(string(gitOutput(t, dir, ask.Bytes(), "cat-file", "--batch-check"))), "\n")
	for i := range commits {
		// The messages are not taken along: a trailer is meant for its own repository.
		fmt.Fprintf(&in, "commit refs/heads/histories\ncommitter c <c@example.com> %d +0000\ndata 2\nc\n\ndeleteall\n", 1_700_000_000+i)
		if tree := strings.Fields(trees[i]); len(tree) == 3 && tree[1] == "tree" {
			fmt.Fprintf(&in, "M 040000 %s %s\n", tree[0], below)
		}
		fmt.Fprintf(&in, "M 100644 inline histories/fleet.yaml\ndata %d\n%s\n", len(docs), docs)
	}
	gitOutput(t, shadow, in.Bytes(), "fast-import", "--quiet")
	return shadow
}

// compareKustomizations compares what each kustomization makes with what kubectl makes
// of it.
func compareKustomizations(t *testing.T, s *fleet.Snapshot, checkout string) {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Log("kubectl is not installed: the kustomizations are not compared")
		return
	}

	objects := map[string]map[string]map[string]any{} // by unit and ID
	for template := range s.Templates.Values() {
		if objects[template.Unit] == nil {
			objects[template.Unit] = map[string]map[string]any{}
		}
		objects[template.Unit][template.Key()] = template.Object()
	}

	same, different, neither := 0, 0, 0
	for unit := range s.Units.Values() {
		if info, err := os.Stat(filepath.Join(checkout, unit.Path)); err != nil || !info.IsDir() {
			continue
		}
		if isComponent(checkout, unit.Path) {
			continue // nobody uses it, so it is not deployed
		}
		out, err := exec.Command("kubectl", "kustomize", filepath.Join(checkout, unit.Path)).Output()
		if err != nil {
			neither++
			t.Logf("kubectl does not build %s: %v", unit.Path, err)
			continue
		}
		build, err := render.New().Render(fstest.MapFS{"out.yaml": &fstest.MapFile{Data: out}})
		if err != nil {
			neither++
			t.Logf("what kubectl makes of %s is refused: %v", unit.Path, err)
			continue
		}

		theirs := map[string]map[string]any{}
		for template := range build.Snapshot.Templates.Values() {
			theirs[template.Key()] = template.Object()
		}
		if sameObjects(objects[unit.Path], theirs) {
			same++
			continue
		}
		different++
		t.Errorf("%s is not what kubectl makes of it: %v, and kubectl %v", unit.Path, slices.Sorted(maps.Keys(objects[unit.Path])), slices.Sorted(maps.Keys(theirs)))
	}
	t.Logf("%d kustomizations equal what kubectl makes of them, %d do not, %d cannot be compared", same, different, neither)
}

func isComponent(checkout, dir string) bool {
	found, _ := filepath.Glob(filepath.Join(checkout, dir, "[kK]ustomization*"))
	return slices.ContainsFunc(found, func(file string) bool {
		b, _ := os.ReadFile(file) // what cannot be read is told of by kubectl
		return bytes.Contains(b, []byte("kind: Component"))
	})
}

func sameObjects(a, b map[string]map[string]any) bool {
	return maps.EqualFunc(a, b, func(a, b map[string]any) bool { return reflect.DeepEqual(a, b) })
}
