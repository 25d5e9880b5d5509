// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// The environment of a run of cadences: how many histories, the first of them, and a
// program to look with, as its user does. With that all pull clusters have branches.
//
//	go build -o bin/ ./cmd/fairlead && FAIRLEAD_CADENCE_PROGRAM=$PWD/bin/fairlead go test ./reconcile -run TestThreeCadences
const (
	envCadences       = "FAIRLEAD_CADENCES"
	envCadence        = "FAIRLEAD_CADENCE"
	envCadenceProgram = "FAIRLEAD_CADENCE_PROGRAM"
)

// The same history is dispatched at each commit, at every few of them, and only at its
// end, by `run --once` each time, to clusters that are reached and to clusters that pull.
// What a cluster has then is what was wanted whenever somebody looked, and a hold did
// not stop; so it is the same whatever the cadence, marks included, but for what
// decision 38 names: what had not arrived before it was held, or was to be left running,
// never arrives. Nor does anything arrive on a new cluster while the head is refused.
func TestThreeCadences(t *testing.T) {
	seeds, first := number(envCadences, 20), number(envCadence, 1)
	if testing.Short() {
		seeds = 3
	}
	var seen cadenceCounts
	t.Run("histories", func(t *testing.T) {
		for seed := first; seed < first+seeds; seed++ {
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				cadenceRun(t, uint64(seed), &seen)
			})
		}
	})

	t.Logf("%d objects compared, %d equal in all cadences; %d differ because they were held before they arrived, %d because they were left running, %d because the last commit is refused and the cluster was new then; %d commits refused",
		seen.compared.Load(), seen.equal.Load(), seen.held.Load(), seen.left.Load(), seen.late.Load(), seen.refused.Load())
	if seen.equal.Load() == 0 || seeds >= 20 && (seen.held.Load() == 0 || seen.refused.Load() == 0) {
		t.Error("too little was compared to tell")
	}
}

type cadenceCounts struct{ compared, equal, held, left, late, refused atomic.Int64 }

var (
	cadenceReached = []string{"m1", "m2"}
	cadencePulling = []string{"branch", "files"}
	cadenceObjects = []string{"a", "b", "c", "d"}
)

func cadenceClusters() []string { return slices.Concat(cadenceReached, cadencePulling) }

// cadenceRun dispatches one history in three cadences.
func cadenceRun(t *testing.T, seed uint64, seen *cadenceCounts) {
	rng := rand.New(rand.NewPCG(seed, 1))
	git := sourcetest.New(t)
	commits := cadenceHistory(git, rng)
	levels := cadenceLevels(t, git.Dir, commits, seen)

	few := 2 + rng.IntN(3)
	var ends []cadenceEnd
	for name, every := range map[string]int{"each": 1, "few": few, "end": len(commits)} {
		w := newCadence(t, git, name)
		for i := range commits {
			if (i+1)%every != 0 && i != len(commits)-1 {
				continue
			}
			foreign := w.model.look(t, levels[i])
			w.look(commits[i], foreign || levels[i].Refusal != nil)
			w.compare(fmt.Sprintf("looking at %s, after commit %d", name, i+1))
		}
		ends = append(ends, w.model)
	}
	compareEnds(t, levels[len(levels)-1], ends, seen)
}

// cadenceHistory commits random edits of a fleet.
func cadenceHistory(git *sourcetest.Repo, rng *rand.Rand) (commits []string) {
	clusters := cadenceClusters()
	files := map[string]string{"fairlead.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: 100%}\n"}
	for _, name := range cadenceReached {
		files["clusters/"+name+".yaml"] = failoverCluster(name, "")
	}
	for _, name := range cadencePulling {
		files["clusters/"+name+".yaml"] = strings.Replace(failoverCluster(name, ""), "Push", "Pull", 1)
	}
	for _, name := range cadenceObjects {
		files["t-"+name+".yaml"], files["p-"+name+".yaml"] = configMap(name, "0"), policyFor("ConfigMap", name)
	}
	commits = append(commits, git.Commit("begin", files))

	for range 9 + rng.IntN(5) {
		edit := map[string]string{}
		for range 1 + rng.IntN(2) {
			maps.Copy(edit, cadenceEdit(rng, files, clusters))
		}
		switch broken := files["broken.yaml"] == "broken: ["; {
		case broken && rng.IntN(2) == 0:
			edit["broken.yaml"] = sourcetest.Delete
		case !broken && rng.IntN(8) == 0:
			edit["broken.yaml"] = "broken: ["
		}
		maps.Copy(files, edit)
		commits = append(commits, git.Commit("edit", edit))
	}
	last := map[string]string{"t-a.yaml": configMap("a", fmt.Sprint(rng.IntN(3))), "broken.yaml": sourcetest.Delete}
	return append(commits, git.Commit("end", last))
}

// cadenceEdit edits one thing.
func cadenceEdit(rng *rand.Rand, files map[string]string, clusters []string) map[string]string {
	name := cadenceObjects[rng.IntN(len(cadenceObjects))]
	template, policy, override := "t-"+name+".yaml", "p-"+name+".yaml", "o-"+name+".yaml"
	var some []string
	for _, i := range rng.Perm(len(clusters))[:1+rng.IntN(len(clusters)-1)] {
		some = append(some, clusters[i])
	}
	list := strings.Join(some, ", ")

	switch rng.IntN(11) {
	case 0, 1, 2:
		return map[string]string{template: configMap(name, fmt.Sprint(rng.IntN(3)))}
	case 3:
		if files[template] == sourcetest.Delete {
			return map[string]string{template: configMap(name, "again")}
		}
		return map[string]string{template: sourcetest.Delete}
	case 4:
		return map[string]string{policy: policyFor("ConfigMap", name) + "  placement: {clusterAffinity: {clusterNames: [" + list + "]}}\n"}
	case 5:
		return map[string]string{policy: policyFor("ConfigMap", name) + "  suspension: {dispatchingOnClusters: {clusterNames: [" + list + "]}}\n"}
	case 6:
		return map[string]string{policy: policyFor("ConfigMap", name) + suspended}
	case 7:
		return map[string]string{policy: policyFor("ConfigMap", name) + preserving}
	case 8:
		return map[string]string{policy: policyFor("ConfigMap", name) + "  activationPreference: Lazy\n  placement: {clusterAffinity: {clusterNames: [" + list + "]}}\n"}
	case 9:
		return map[string]string{override: fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: %s, namespace: default}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: %s}]\n"+
			"  overrideRules: [{targetCluster: {clusterNames: [%s]}, overriders: {plaintext: [{path: /data/w, operator: add, value: '%d'}]}}]\n", name, name, list, rng.IntN(3))}
	}
	if files[override] != "" {
		return map[string]string{override: sourcetest.Delete}
	}
	return map[string]string{policy: policyFor("ConfigMap", name) + "  conflictResolution: Overwrite\n"}
}

// cadenceLevels are the states after each commit.
func cadenceLevels(t *testing.T, dir string, commits []string, seen *cadenceCounts) (levels []propagate.State) {
	t.Helper()
	repo, err := source.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := history.New(repo, ".")
	all, err := h.Commits("", commits[len(commits)-1])
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Fold(propagate.State{}, all, func(_ *source.Commit, s propagate.State) error {
		if s.Refusal != nil {
			seen.refused.Add(1)
		}
		levels = append(levels, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return levels
}

// cadenceObject is what a cluster has of an object: its marks, none where it was left
// running, and what it says.
type cadenceObject struct{ digest, revision, data string }

// cadenceEnd is what the clusters should have, by cluster and name.
type cadenceEnd map[string]cadenceObject

// look is one dispatch of a state: what is held, and what somebody else owns, stays as it
// is. It reports whether an object is in the way.
func (m cadenceEnd) look(t *testing.T, s propagate.State) (foreign bool) {
	t.Helper()
	level := reconcile.FleetOf(&s)
	for _, cluster := range cadenceClusters() {
		if s.Refusal != nil && !m.known(cluster) {
			continue // a new cluster gets nothing while the head is refused
		}
		for _, name := range cadenceObjects {
			key := cluster + "/" + name
			was, there := m[key]
			ours := was.digest != ""
			d := level.Desire(cluster, object.ID{Kind: "ConfigMap", Namespace: "default", Name: name})
			switch {
			case d.Verb == dispatch.Delete && ours && s.Refusal != nil && slices.ContainsFunc(d.After, func(a dispatch.Acknowledgement) bool { return !m.known(a.Cluster) }):
				// It waits for a cluster that gets nothing yet (decision 42).
			case d.Verb == dispatch.Delete && ours:
				delete(m, key)
			case d.Verb == dispatch.Orphan && ours:
				m[key] = cadenceObject{data: was.data}
			case d.Verb != dispatch.Apply, ours && was.digest == d.Digest.String():
			case there && !ours && !d.Overwrite && !slices.Contains(cadenceReached, cluster):
				foreign = true // on the others what was left running is taken back
			default:
				manifest, err := d.Manifest()
				if err != nil {
					t.Fatal(err)
				}
				m[key] = cadenceObjectOf(manifest)
			}
		}
	}
	return foreign
}

// known reports whether a cluster has an object with our marks.
func (m cadenceEnd) known(cluster string) bool {
	return slices.ContainsFunc(cadenceObjects, func(name string) bool { return m[cluster+"/"+name].digest != "" })
}

func cadenceObjectOf(o map[string]any) cadenceObject {
	u := &unstructured.Unstructured{Object: o}
	marks := u.GetAnnotations()
	return cadenceObject{digest: marks[object.AnnotationDigest], revision: marks[object.AnnotationRevision], data: fmt.Sprint(o["data"])}
}

// cadence is a fleet that is looked at now and then.
type cadence struct {
	t      *testing.T
	git    *sourcetest.Repo
	ref    string
	state  string
	model  cadenceEnd
	served map[string]*embedded.Server
	deploy string // the bare repository of the cluster "branch"
	dir    string // of the cluster "files"
}

func newCadence(t *testing.T, git *sourcetest.Repo, name string) *cadence {
	t.Helper()
	w := &cadence{t: t, git: git, ref: "looked-" + name, state: t.TempDir(), model: cadenceEnd{}, served: map[string]*embedded.Server{}, dir: t.TempDir()}
	for _, name := range cadenceReached {
		s, err := embedded.Start(embedded.Options{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		w.served[name] = s
	}
	w.deploy = filepath.Join(t.TempDir(), "deploy.git")
	git.Git("init", "-q", "--bare", "-b", "main", w.deploy)
	return w
}

func (w *cadence) member(c *fleet.Cluster) (member.Member, error) {
	switch c.Name {
	case "files":
		return pull.Directory(w.dir), nil
	case "branch":
		to, err := source.OpenBranches("file://"+w.deploy, source.Auth{})
		if err != nil {
			return nil, err
		}
		return pull.Branch(reconcile.Publish(to), "fairlead/branch"), nil
	}
	return push.New(w.served[c.Name].Config(), push.Options{})
}

// look is `run --once` when the branch is at a commit. It fails if an object is in the
// way, and if the commit is refused.
func (w *cadence) look(commit string, fails bool) {
	w.t.Helper()
	w.git.Git("update-ref", "refs/heads/"+w.ref, commit)
	if program := os.Getenv(envCadenceProgram); program != "" {
		w.run(program, fails)
		return
	}

	var mu sync.Mutex
	var said strings.Builder
	loop, err := reconcile.Open(context.Background(), reconcile.Options{
		Repo: w.git.Dir, Ref: w.ref, Path: ".", StateDir: w.state, Look: true, Members: w.member,
		Report: func(e reconcile.Event) {
			mu.Lock()
			defer mu.Unlock()
			said.WriteString(e.String() + "\n")
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	err = loop.Once(context.Background())
	if closeErr := loop.Close(); closeErr != nil {
		w.t.Fatal(closeErr)
	}
	if fails != errors.Is(err, reconcile.ErrNotConverged) || err != nil && !fails {
		w.t.Fatalf("it should fail: %v, and says %v\n%s", fails, err, said.String())
	}
}

// run is look with the program itself.
func (w *cadence) run(program string, fails bool) {
	w.t.Helper()
	var kubeconfigs []string
	for name, s := range w.served {
		file := filepath.Join(w.state, name)
		if err := os.WriteFile(file, s.Kubeconfig(), 0o600); err != nil {
			w.t.Fatal(err)
		}
		kubeconfigs = append(kubeconfigs, file)
	}

	cmd := exec.Command(program, "run", "-C", w.git.Dir, "--ref", w.ref, "--once", "--state", filepath.Join(w.state, "state"), "--publish", "file://"+w.deploy)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+strings.Join(kubeconfigs, string(filepath.ListSeparator)))
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) || fails != (err != nil) {
		w.t.Fatalf("it should fail: %v, and ends with %v\n%s", fails, err, said)
	}

	if exec.Command("git", "-C", w.deploy, "rev-parse", "-q", "--verify", "fairlead/files").Run() == nil {
		w.git.Git("-C", w.deploy, "--work-tree", w.dir, "read-tree", "--reset", "-u", "fairlead/files")
	}
}

// compare holds the clusters against the model.
func (w *cadence) compare(when string) {
	w.t.Helper()
	got := cadenceEnd{}
	for name, s := range w.served {
		objects, err := push.Live(context.Background(), s.Config(), configMaps, "default")
		if err != nil {
			w.t.Fatal(err)
		}
		for _, o := range objects {
			got.put(name, o)
		}
	}
	w.readFiles(got)
	w.readBranch(got)

	if maps.Equal(got, w.model) {
		return
	}
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(w.model)) {
		if got[key] != w.model[key] {
			wrong = append(wrong, fmt.Sprintf("%s: has %v, want %v", key, got[key], w.model[key]))
		}
	}
	for key, o := range got {
		if _, wanted := w.model[key]; !wanted {
			wrong = append(wrong, fmt.Sprintf("%s: has %v, want nothing", key, o))
		}
	}
	w.t.Fatalf("%s:\n%s", when, strings.Join(wrong, "\n"))
}

func (m cadenceEnd) put(cluster string, o map[string]any) {
	u := &unstructured.Unstructured{Object: o}
	if u.GroupVersionKind() == (schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) {
		m[cluster+"/"+u.GetName()] = cadenceObjectOf(o)
	}
}

func (w *cadence) readFiles(into cadenceEnd) {
	w.t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return into.parse("files", b)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *cadence) readBranch(into cadenceEnd) {
	w.t.Helper()
	if w.git.GitIn(w.deploy, "", "for-each-ref", "refs/heads/fairlead/branch") == "" {
		return
	}
	for _, path := range strings.Fields(w.git.GitIn(w.deploy, "", "ls-tree", "-r", "--name-only", "fairlead/branch")) {
		if filepath.Ext(path) != ".yaml" {
			continue
		}
		if err := into.parse("branch", []byte(w.git.GitIn(w.deploy, "", "show", "fairlead/branch:"+path))); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (m cadenceEnd) parse(cluster string, b []byte) error {
	var o map[string]any
	if err := yaml.Unmarshal(b, &o); err != nil {
		return err
	}
	m.put(cluster, o)
	return nil
}

// compareEnds holds the cadences against each other.
func compareEnds(t *testing.T, last propagate.State, ends []cadenceEnd, seen *cadenceCounts) {
	t.Helper()
	level := reconcile.FleetOf(&last)
	for _, cluster := range cadenceClusters() {
		for _, name := range cadenceObjects {
			key, left := cluster+"/"+name, false
			same := true
			for _, end := range ends {
				o, there := end[key]
				left = left || there && o.digest == ""
				other, too := ends[0][key]
				same = same && there == too && o.digest == other.digest && o.data == other.data
			}

			seen.compared.Add(1)
			verb := level.Desire(cluster, object.ID{Kind: "ConfigMap", Namespace: "default", Name: name}).Verb
			switch {
			case same:
				seen.equal.Add(1)
			case last.Refusal != nil && slices.ContainsFunc(ends, func(end cadenceEnd) bool { return !end.known(cluster) }):
				seen.late.Add(1)
			case verb == dispatch.Hold:
				seen.held.Add(1)
			case left:
				seen.left.Add(1)
			default:
				t.Errorf("%s: wants %s, and the cadences leave %v", key, verb, ends)
			}
		}
	}
}
