// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// The environment of a fault run: how many seeds, and the first of them. One
// seed alone is replayed by
//
//	FAIRLEAD_FAULT_SEEDS=1 FAIRLEAD_FAULT_SEED=17 go test ./reconcile -run TestFaults
const (
	envFaultSeeds = "FAIRLEAD_FAULT_SEEDS"
	envFaultSeed  = "FAIRLEAD_FAULT_SEED"
)

// A stream of commits reaches twenty members through faults: latency, resets,
// lost answers, black holes, 409, 429, 500, 503, answers of a proxy, hands that
// edit and delete, and a process that is killed, with the checkpoint it had, an
// older one or none. When the faults end every member becomes what the model
// says, and none was ever sent a delete that the model never asked for.
func TestFaults(t *testing.T) {
	seeds, first := number(envFaultSeeds, 50), number(envFaultSeed, 1)
	if testing.Short() {
		seeds = 3
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			faultRun(t, uint64(seed), embeddedWays(t, 20), 1)
		})
	}
}

// The same with two and three replicas that share the clusters: each is killed, ended and
// kept from the API server of the Leases now and then.
//
//	FAIRLEAD_FAULT_SEEDS=1 FAIRLEAD_FAULT_SEED=17 go test ./reconcile -run TestReplicaFaults
func TestReplicaFaults(t *testing.T) {
	seeds, first := number(envFaultSeeds, 4), number(envFaultSeed, 1)
	if testing.Short() {
		seeds = 1
	}
	for seed := first; seed < first+seeds; seed++ {
		for _, replicas := range []int{2, 3} {
			t.Run(fmt.Sprintf("%d of %d", seed, replicas), func(t *testing.T) {
				t.Parallel()
				faultRun(t, uint64(seed), embeddedWays(t, 20), replicas)
			})
		}
	}
}

// The same on three real API servers, of which one is stopped and started
// again now and then.
func TestFaultsOnRealMembers(t *testing.T) {
	servers := kubetest.Start(t, 3)
	for seed := range uint64(3) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			var ways []way
			for _, s := range servers {
				ways = append(ways, way{s.Config(), func() { s.Stop(t); s.Restart(t) }})
			}
			faultRun(t, seed, ways, 1)
			sweep(t, ways)
		})
	}
}

// way is a member without faults.
type way struct {
	config  *rest.Config
	restart func()
}

func embeddedWays(t *testing.T, n int) []way {
	t.Helper()
	var ways []way
	for range n {
		s, err := embedded.Start(embedded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		ways = append(ways, way{s.Config(), func() {}})
	}
	return ways
}

// sweep takes away what a run has left on members that others use.
func sweep(t *testing.T, ways []way) {
	t.Helper()
	for _, w := range ways {
		client := dynamic.NewForConfigOrDie(w.config).Resource(configMaps).Namespace("default")
		for _, name := range append([]string{"stays"}, faultTemplates...) {
			if err := client.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
	}
}

func number(env string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(env)); err == nil {
		return n
	}
	return otherwise
}

func faultRun(t *testing.T, seed uint64, ways []way, replicas int) {
	r := &faultyWorld{t: t, rng: rand.New(rand.NewPCG(seed, 1)), repo: sourcetest.New(t), clusters: map[string]*chaos{}, model: newFaultModel()}
	for i, way := range ways {
		name := fmt.Sprintf("m%02d", i)
		r.names = append(r.names, name)
		r.clusters[name] = &chaos{way: way, rng: rand.New(rand.NewPCG(seed, uint64(i)+2)), open: make(chan struct{})}
	}
	if replicas > 1 {
		r.hub = &embeddedWays(t, 1)[0]
	}
	r.begin()
	for i := range replicas {
		p := &process{world: r, pod: fmt.Sprintf("fairlead-%d", i), state: t.TempDir()}
		defer p.kill()
		r.processes = append(r.processes, p)
		p.run()
	}
	for range 8 {
		r.commit()
		r.disturb()
		time.Sleep(time.Duration(r.rng.IntN(60)) * time.Millisecond)
		if replicas > 1 {
			time.Sleep(time.Duration(r.rng.IntN(400)) * time.Millisecond) // so that Leases expire, and move
		}
	}
	for _, c := range r.clusters {
		c.calm()
	}
	for _, p := range r.processes {
		p.cut.Store(false)
		p.lags.Store(false)
	}
	r.converge()
}

// faultyWorld is a fleet under faults.
type faultyWorld struct {
	t        *testing.T
	rng      *rand.Rand
	repo     *sourcetest.Repo
	names    []string
	clusters map[string]*chaos
	model    *faultModel
	files    map[string]string

	hub       *way // has the Leases; nil for a single process
	processes []*process
	mu        sync.Mutex
	said      []string
}

var faultTemplates = []string{"a", "b", "c", "d", "e"}

// begin writes the fleet: a template that stays, some that come and go, and a
// policy for each.
func (r *faultyWorld) begin() {
	r.files = map[string]string{
		"fairlead.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: 100%}\n",
		"t-stays.yaml":  configMap("stays", "0"), "p-stays.yaml": policyFor("ConfigMap", "stays"),
	}
	for _, name := range r.names {
		r.files["clusters/"+name+".yaml"] = failoverCluster(name, "")
	}
	for _, name := range faultTemplates {
		r.files["t-"+name+".yaml"] = configMap(name, "0")
		r.files["p-"+name+".yaml"] = policyFor("ConfigMap", name)
	}
	r.push("begin", r.files)
}

func (r *faultyWorld) push(message string, files map[string]string) {
	r.t.Helper()
	r.repo.Commit(message, files)
	r.model.fold(r.t, r.repo.Dir)
}

// commit edits one thing.
func (r *faultyWorld) commit() {
	name := faultTemplates[r.rng.IntN(len(faultTemplates))]
	template, policy := "t-"+name+".yaml", "p-"+name+".yaml"
	edit := map[string]string{}
	switch r.rng.IntN(7) {
	case 0, 1:
		edit[template] = configMap(name, fmt.Sprint(r.rng.IntN(1000)))
	case 2:
		edit[template] = sourcetest.Delete
		if r.files[template] == sourcetest.Delete {
			edit[template] = configMap(name, "again")
		}
	case 3:
		some := r.some(1 + r.rng.IntN(len(r.names)))
		edit[policy] = policyFor("ConfigMap", name) + "  placement: {clusterAffinity: {clusterNames: [" + strings.Join(some, ", ") + "]}}\n"
	case 4:
		edit[policy] = policyFor("ConfigMap", name) + "  suspension: {dispatchingOnClusters: {clusterNames: [" + strings.Join(r.some(1+len(r.names)/4), ", ") + "]}}\n"
	case 5:
		edit[policy] = policyFor("ConfigMap", name) + "  preserveResourcesOnDeletion: true\n"
	case 6:
		edit[policy] = policyFor("ConfigMap", name)
	}
	maps.Copy(r.files, edit)
	r.push("edit of "+name, edit)
}

func (r *faultyWorld) some(n int) []string {
	var names []string
	for _, i := range r.rng.Perm(len(r.names))[:n] {
		names = append(names, r.names[i])
	}
	slices.Sort(names)
	return names
}

// disturb has something go wrong, here and there.
func (r *faultyWorld) disturb() {
	for _, name := range r.some(min(6, len(r.names))) {
		r.clusters[name].rage(r.rng.IntN(len(moods)))
	}
	if r.rng.IntN(4) == 0 {
		r.clusters[r.some(1)[0]].way.restart()
	}
	for _, name := range r.some(2) {
		r.meddle(name)
	}
	p := r.processes[r.rng.IntN(len(r.processes))]
	switch r.rng.IntN(4) {
	case 0:
		p.kill()
		p.state = r.copied(p.state)
		p.run()
	case 1:
		p.kill()
		if r.rng.IntN(2) == 0 {
			p.state = r.t.TempDir() // the checkpoint is lost
		}
		p.run()
	}
	if r.hub == nil {
		return
	}
	switch p := r.processes[r.rng.IntN(len(r.processes))]; r.rng.IntN(4) {
	case 0:
		p.cut.Store(!p.cut.Load())
		p.lags.Store(p.cut.Load())
	case 1:
		p.lags.Store(!p.lags.Load())
	case 2:
		p.leave()
		p.run()
	}
}

// meddle edits or deletes an object by hand, past all faults.
func (r *faultyWorld) meddle(cluster string) {
	name := append([]string{"stays"}, faultTemplates...)[r.rng.IntN(len(faultTemplates)+1)]
	client := dynamic.NewForConfigOrDie(r.clusters[cluster].way.config).Resource(configMaps).Namespace("default")
	r.model.meddled[cluster+"/"+name] = true
	if r.rng.IntN(2) == 0 {
		_ = client.Delete(context.Background(), name, metav1.DeleteOptions{}) // it may not be there
		return
	}
	_, _ = client.Patch(context.Background(), name, "application/merge-patch+json", []byte(`{"data":{"v":"by hand"}}`), metav1.PatchOptions{FieldManager: "hand"})
}

func (r *faultyWorld) say(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, line)
}

// copied is the state directory as a process that is killed leaves it: a copy.
func (r *faultyWorld) copied(dir string) string {
	r.t.Helper()
	to := r.t.TempDir()
	raw, err := os.ReadFile(filepath.Join(dir, "checkpoint.db"))
	if errors.Is(err, os.ErrNotExist) {
		return to
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "checkpoint.db"), raw, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return to
}

// converge waits until every member is what the model says.
func (r *faultyWorld) converge() {
	r.t.Helper()
	var wrong []string
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if wrong = r.differences(); len(wrong) == 0 {
			break
		}
	}
	if len(wrong) > 0 {
		var standing strings.Builder
		for _, p := range r.processes {
			standing.WriteString(p.standing())
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.t.Errorf("after the faults:\n%s\nprocesses\n%s\nsaid\n%s", strings.Join(wrong, "\n"), standing.String(), strings.Join(r.said[max(0, len(r.said)-400):], "\n"))
	}
	line := strings.Fields(r.repo.Git("rev-list", "--first-parent", "--reverse", "main"))
	for _, name := range r.names {
		for _, text := range r.clusters[name].setBack(line) {
			if r.hub != nil {
				r.t.Errorf("%s: %s", name, text)
			}
		}
		for _, object := range r.clusters[name].deleted() {
			if !r.model.deletes[name+"/"+object] {
				r.t.Errorf("%s was sent a delete of %s, which the model never asked for", name, object)
			}
		}
	}
}

// differences between the members and the model.
func (r *faultyWorld) differences() (wrong []string) {
	for _, name := range r.names {
		objects, err := push.Live(context.Background(), r.clusters[name].way.config, configMaps, "default")
		if err != nil {
			r.t.Fatal(err)
		}
		live := map[string]*unstructured.Unstructured{}
		for _, o := range objects {
			u := &unstructured.Unstructured{Object: o}
			live[u.GetName()] = u
		}
		for _, template := range append([]string{"stays"}, faultTemplates...) {
			if text := r.model.difference(name, template, live[template]); text != "" {
				wrong = append(wrong, name+" "+text)
			}
		}
	}
	return wrong
}

// faultModel is what members should be, from the history alone.
type faultModel struct {
	state    propagate.State
	released map[string]map[string]bool // by cluster and object, the values that were ever released there
	deletes  map[string]bool            // by cluster and object, whether a delete was ever asked for
	kept     map[string]bool            // by cluster and object, whether it was ever left running, and so is nobody's
	meddled  map[string]bool            // by cluster and object, whether a hand was there
}

func newFaultModel() *faultModel {
	return &faultModel{released: map[string]map[string]bool{}, deletes: map[string]bool{}, kept: map[string]bool{}, meddled: map[string]bool{}}
}

// fold takes in the newest commit.
func (m *faultModel) fold(t *testing.T, dir string) {
	t.Helper()
	repo, err := source.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.state, err = history.New(repo, ".").At("main"); err != nil || m.state.Refusal != nil {
		t.Fatal(err, m.state.Refusal)
	}
	for b := range m.state.Bindings.Values() {
		for _, w := range b.Works {
			key := w.Cluster + "/" + b.Name
			if w.Released == nil {
				continue
			}
			if m.released[key] == nil {
				m.released[key] = map[string]bool{}
			}
			m.released[key][valueOf(&m.state, b, w.Released)] = true
		}
	}
	for a := range m.state.Tombstones.Values() {
		for _, g := range a.Clusters {
			if g.Preserve {
				m.kept[g.Cluster+"/"+a.Name] = true
			} else {
				m.deletes[g.Cluster+"/"+a.Name] = true
			}
		}
	}
}

func valueOf(s *propagate.State, b *propagate.Binding, c *propagate.Content) string {
	data, _ := s.Manifest(b.ID, c)["data"].(map[string]any)
	return fmt.Sprint(data["v"])
}

// difference says how an object on a cluster is not as it should be.
func (m *faultModel) difference(cluster, name string, live *unstructured.Unstructured) string {
	id := object.ID{Kind: "ConfigMap", Namespace: "default", Name: name}
	ours := live != nil && live.GetLabels()[object.LabelManaged] == "true"
	value := ""
	if live != nil {
		value, _, _ = unstructured.NestedString(live.Object, "data", "v")
	}
	var w *propagate.Work
	if b := m.state.Bindings.At(id.Key()); b != nil {
		if w = b.Work(cluster); w != nil && !w.Held {
			if live != nil && !ours && m.kept[cluster+"/"+name] {
				return "" // it was left running once, and is foreign since
			}
			if want := valueOf(&m.state, b, w.Want); !ours || value != want {
				return fmt.Sprintf("%s: has %q (ours: %v), want %q", name, value, ours, want)
			}
			return ""
		}
	}
	switch {
	case w != nil && !ours, w != nil && m.meddled[cluster+"/"+name]:
		return "" // it is held: what it had reached, or what a hand made of that
	case w != nil && !m.released[cluster+"/"+name][value]:
		return fmt.Sprintf("%s: is held and has %q, which was never released there", name, value)
	case w == nil && ours:
		return fmt.Sprintf("%s: has %q and is ours, though nothing wants it there", name, value)
	}
	return ""
}
