// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
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

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
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
			faultRun(t, uint64(seed), embeddedWays(t, 20))
		})
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
			faultRun(t, seed, ways)
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

func faultRun(t *testing.T, seed uint64, ways []way) {
	r := &faultyWorld{t: t, rng: rand.New(rand.NewPCG(seed, 1)), repo: sourcetest.New(t), state: t.TempDir(), clusters: map[string]*chaos{}, model: newFaultModel()}
	defer r.kill()
	for i, way := range ways {
		name := fmt.Sprintf("m%02d", i)
		r.names = append(r.names, name)
		r.clusters[name] = &chaos{way: way, rng: rand.New(rand.NewPCG(seed, uint64(i)+2)), open: make(chan struct{})}
	}
	r.begin()
	r.run()
	for range 8 {
		r.commit()
		r.disturb()
		time.Sleep(time.Duration(r.rng.IntN(60)) * time.Millisecond)
	}
	for _, c := range r.clusters {
		c.calm()
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

	state string
	loop  *reconcile.Loop
	alive *life
	mu    sync.Mutex
	said  []string
}

// life is of one process: when it is killed, nothing that it does reaches
// anybody any more.
type life struct {
	end   context.CancelFunc
	over  chan struct{}
	ended chan struct{} // the loop has returned
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
	switch r.rng.IntN(4) {
	case 0:
		r.kill()
		r.state = r.copied(r.state)
		r.run()
	case 1:
		r.kill()
		if r.rng.IntN(2) == 0 {
			r.state = r.t.TempDir() // the checkpoint is lost
		}
		r.run()
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

// run begins a process on the state directory.
func (r *faultyWorld) run() {
	r.t.Helper()
	l := &life{over: make(chan struct{}), ended: make(chan struct{})}
	loop, err := reconcile.Open(context.Background(), reconcile.Options{
		Repo: r.repo.Dir, Ref: "main", Path: ".", StateDir: r.state, Interval: 10 * time.Millisecond,
		Watch: true, Relist: 2 * time.Second, Reexamine: 2 * time.Second, Backoff: dispatch.Backoff{Base: 5 * time.Millisecond, Max: 100 * time.Millisecond},
		Members: func(c *fleet.Cluster) (member.Member, error) {
			return push.New(r.clusters[c.Name].config(l), push.Options{})
		},
		Report: func(e reconcile.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.said = append(r.said, e.String())
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	l.end = end
	r.loop, r.alive = loop, l
	go func() {
		defer close(l.ended)
		_ = loop.Run(ctx) // what fails is reported, and tried again
	}()
}

// kill ends the process: from this moment on none of its requests arrive.
func (r *faultyWorld) kill() {
	if r.alive == nil {
		return
	}
	close(r.alive.over)
	r.alive.end()
	<-r.alive.ended
	_ = r.loop.Close() // its requests fail, as those of a dead process
	r.alive = nil
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
		r.mu.Lock()
		defer r.mu.Unlock()
		r.t.Errorf("after the faults:\n%s\nsaid\n%s", strings.Join(wrong, "\n"), strings.Join(r.said[max(0, len(r.said)-40):], "\n"))
	}
	for _, name := range r.names {
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

// chaos is the way to one member.
type chaos struct {
	way way

	mu      sync.Mutex
	rng     *rand.Rand
	mood    string
	open    chan struct{} // closed when a black hole ends
	deletes []string      // the objects of all deletes that were sent
}

func (c *chaos) deleted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.deletes)
}

// moods are what can be wrong with the way to a member.
var moods = []string{"well", "slow", "resets", "loses answers", "black hole", "409", "429", "500", "503", "proxy", "breaks off"}

func (c *chaos) rage(mood int) {
	c.calm()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mood = moods[mood]
}

func (c *chaos) calm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mood = "well"
	close(c.open)
	c.open = make(chan struct{})
}

// config reaches the member for as long as a process lives.
func (c *chaos) config(l *life) *rest.Config {
	config := rest.CopyConfig(c.way.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) { return c.roundTrip(l, next, req) })
	})
	return config
}

var errChaos = errors.New("injected")

func (c *chaos) roundTrip(l *life, next http.RoundTripper, req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	mood, dice, open := c.mood, c.rng.IntN(100), c.open
	if req.Method == http.MethodDelete {
		c.deletes = append(c.deletes, path.Base(req.URL.Path))
	}
	c.mu.Unlock()
	select {
	case <-l.over:
		return nil, errChaos
	default:
	}
	if dice < 50 {
		mood = "well" // nothing goes wrong every time
	}
	switch mood {
	case "slow":
		time.Sleep(time.Duration(dice) * time.Millisecond / 4)
	case "resets":
		return nil, errChaos
	case "black hole":
		select {
		case <-open:
		case <-l.over:
		case <-req.Context().Done():
		}
		return nil, errChaos
	case "409", "429", "500", "503":
		return faultAnswer(req, mood), nil
	case "proxy":
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}},
			Body: io.NopCloser(strings.NewReader("<html>log in</html>")), Request: req}, nil
	}
	resp, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	select {
	case <-l.over:
		resp.Body.Close()
		return nil, errChaos // it was done, and nobody hears of it
	default:
	}
	switch mood {
	case "loses answers":
		resp.Body.Close()
		return nil, errChaos
	case "breaks off":
		resp.Body = broken{resp.Body, io.LimitReader(resp.Body, int64(dice))}
	}
	return resp, nil
}

// broken is an answer that ends too early.
type broken struct {
	io.Closer
	part io.Reader
}

func (b broken) Read(p []byte) (int, error) {
	n, err := b.part.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func faultAnswer(req *http.Request, mood string) *http.Response {
	code, _ := strconv.Atoi(mood)
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"injected"}`, map[int]string{
		401: "Unauthorized", 409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable",
	}[code], code)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}
}
