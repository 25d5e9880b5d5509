// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/look/history"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// replicaEnv has the test program be a replica of the controller, in a process that can be
// stopped and killed. Its value is a replicaConfig.
const replicaEnv = "FAIRLEAD_TEST_REPLICA"

// replicaConfig is what a replica is started with.
type replicaConfig struct {
	Kubeconfig, Storage, Pod string
	Engine                   string  // its version
	Scale                    float64 // of the timings of Leases
}

func TestMain(m *testing.M) {
	if config := os.Getenv(replicaEnv); config != "" {
		if err := beReplica(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func beReplica(config string) error {
	var c replicaConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	contexts, err := push.LoadContexts(c.Kubeconfig)
	if err != nil {
		return err
	}
	hub, err := contexts.For("hub")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if c.Engine != "" {
		history.Engine = c.Engine
	}
	opt := controllerOptions(funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{LogTimestamp: true}))
	opt.StoragePath, opt.Sharding, opt.Pod = c.Storage, true, c.Pod
	controller.SetRules(&opt, lease.DefaultRules().Scaled(c.Scale))
	return controller.Run(ctx, hub, opt)
}

// shardedHub is a hub whose replicas are processes.
type shardedHub struct {
	*hub
	kubeconfig string
	engine     string // of the replicas that are started
	scale      float64
	replicas   map[string]*replica
}

// replica is a process.
type replica struct {
	name string
	cmd  *exec.Cmd
	log  *log
	done chan struct{}
}

// log is what a replica says.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newShardedHub starts a hub for replicas whose Leases last a part of their time.
func newShardedHub(t testing.TB, scale float64) *shardedHub {
	t.Helper()
	h := &shardedHub{hub: newHub(t), scale: scale, replicas: map[string]*replica{}, kubeconfig: filepath.Join(t.TempDir(), "hub")}
	h.must(push.WriteContexts(h.kubeconfig, map[string]*push.Config{"hub": h.server.Config()}))
	return h
}

// start starts a replica.
func (h *shardedHub) start(name string) *replica {
	h.t.Helper()
	self, err := os.Executable()
	h.must(err)
	config, err := json.Marshal(replicaConfig{h.kubeconfig, h.t.TempDir(), name, h.engine, h.scale})
	h.must(err)
	r := &replica{name: name, cmd: exec.Command(self), log: &log{}, done: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), replicaEnv+"="+string(config))
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	h.must(r.cmd.Start())
	h.replicas[name] = r
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait()
	}()
	h.t.Cleanup(func() {
		_ = r.cmd.Process.Signal(syscall.SIGCONT)
		_ = r.cmd.Process.Kill()
		<-r.done
		if h.t.Failed() {
			text := r.log.String()
			h.t.Logf("%s said:\n%s", name, text[max(0, len(text)-6000):])
		}
	})
	return r
}

func (r *replica) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// end sends a signal that ends a replica, and waits until it has ended.
func (r *replica) end(t testing.TB, s syscall.Signal) {
	t.Helper()
	r.signal(t, s)
	<-r.done
}

// holders are the replicas that hold shards, and how many each.
func (h *shardedHub) holders() map[string]int {
	h.t.Helper()
	var list coordinationv1.LeaseList
	h.must(h.client.List(context.Background(), &list, client.InNamespace(namespace), client.MatchingLabels{lease.LabelLease: string(lease.Shard)}))
	holders := map[string]int{}
	for _, l := range list.Items {
		if holder := l.Spec.HolderIdentity; holder != nil {
			pod, _, _ := strings.Cut(*holder, "_")
			holders[pod]++
		}
	}
	return holders
}

// waitHolders waits until exactly these replicas hold all shards.
func (h *shardedHub) waitHolders(shards int, want ...string) {
	h.t.Helper()
	h.eventually("the shards are held by "+strings.Join(want, ", "), func() string {
		all, holders := 0, h.holders()
		for name, n := range holders {
			if !slices.Contains(want, name) {
				return fmt.Sprint(holders)
			}
			all += n
		}
		if all != shards || len(holders) != len(want) {
			return fmt.Sprint(holders)
		}
		return ""
	})
}

// images waits until every member runs a tag.
func (h *shardedHub) waitImages(tag string) {
	h.t.Helper()
	h.eventually("every member runs "+tag, func() string {
		var all []string
		for name := range h.members {
			if is := h.image(name); is != tag {
				all = append(all, name+"="+is)
			}
		}
		return strings.Join(all, " ")
	})
}

// Two replicas share the clusters of a Fleet. When one is killed the other takes its
// clusters over; when one ends it gives them back at once.
func TestReplicasShareClusters(t *testing.T) {
	h := newShardedHub(t, 0.1)
	for _, shards := range []int32{0, 257} {
		wrong := h.fleet("wrong", func(f *v1alpha1.Fleet) { f.Spec.Sharding = &v1alpha1.ShardingSpec{Shards: &shards} })
		if err := h.client.Create(context.Background(), wrong); err == nil || !strings.Contains(err.Error(), "spec.sharding.shards") {
			t.Errorf("%d shards: %v", shards, err)
		}
	}
	a := h.start("fairlead-0")
	h.create(h.fleet("acme"))
	h.waitHolders(32, "fairlead-0")
	h.waitImages("1.0")
	b := h.start("fairlead-1")
	h.waitHolders(32, "fairlead-0", "fairlead-1")
	h.waitFor("acme", "Ready=True")
	h.waitFor("acme", "Dispatching=True")
	h.release("2.0")
	h.waitImages("2.0")
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
	h.waitHolding(3, "fairlead-0", "fairlead-1")

	a.end(t, syscall.SIGKILL)
	h.waitHolders(32, "fairlead-1")
	h.waitHolding(3, "fairlead-1")
	h.release("3.0")
	h.waitImages("3.0")
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())

	h.start("fairlead-0")
	h.waitHolders(32, "fairlead-0", "fairlead-1")
	began := time.Now()
	b.end(t, syscall.SIGTERM)
	h.waitHolders(32, "fairlead-0")
	t.Logf("given back and taken in %v", time.Since(began))
	h.release("4.0")
	h.waitImages("4.0")
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())

	h.must(h.client.Delete(context.Background(), h.get("acme")))
	h.eventually("the Fleet and its Leases are gone", func() string {
		var leases coordinationv1.LeaseList
		var fleets v1alpha1.FleetList
		h.must(errors.Join(h.client.List(context.Background(), &leases), h.client.List(context.Background(), &fleets)))
		left := slices.DeleteFunc(leases.Items, func(l coordinationv1.Lease) bool { return l.Labels[lease.LabelFleet] == "" })
		if len(left)+len(fleets.Items) > 0 {
			return fmt.Sprintf("%d Leases, %d Fleets", len(left), len(fleets.Items))
		}
		return ""
	})
}

// waitHolding waits until the status has each cluster once, and shards with clusters of
// these replicas alone.
func (h *shardedHub) waitHolding(clusters int, pods ...string) {
	h.t.Helper()
	h.eventually("the status names the holders "+strings.Join(pods, ", "), func() string {
		f := h.get("acme")
		n := 0
		for _, s := range f.Status.Shards {
			pod, _, _ := strings.Cut(s.Holder, "_")
			if s.Clusters > 0 && !slices.Contains(pods, pod) {
				return fmt.Sprintf("shard %s is held by %q", s.Name, s.Holder)
			}
			n += s.Clusters
		}
		if n != clusters || len(f.Status.Members) != clusters {
			return fmt.Sprintf("%d clusters in %v, members %v", n, f.Status.Shards, f.Status.Members)
		}
		return ""
	})
}

// A fleet with the gate Failover is shared, too: what is observed of its members is in
// ConfigMaps beside the Leases, which are deleted with the Fleet.
func TestFailoverIsShared(t *testing.T) {
	h := newShardedHub(t, 0.1)
	h.commit("failover", map[string]string{"fairlead.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {featureGates: {Failover: true}}\n"})
	h.start("fairlead-0")
	h.start("fairlead-1")
	h.create(h.fleet("acme"))
	h.waitFor("acme", "Dispatching=True")
	h.waitImages("1.0")
	h.release("2.0")
	h.waitImages("2.0")

	records := func() map[string]int {
		var list corev1.ConfigMapList
		h.must(h.client.List(context.Background(), &list, client.HasLabels{"fairlead.dev/record"}))
		found := map[string]int{}
		for i := range list.Items {
			found[list.Items[i].Labels["fairlead.dev/record"]]++
		}
		return found
	}
	h.eventually("what is observed is told", func() string {
		if found := records(); found["observed"] != 1 || found["seen"] == 0 {
			return fmt.Sprint(found)
		}
		return ""
	})
	h.must(h.client.Delete(context.Background(), h.get("acme")))
	h.eventually("what was observed is gone", func() string {
		if found := records(); len(found) > 0 {
			return fmt.Sprint(found)
		}
		return ""
	})
}

// What a dead replica has said of its clusters is not shown as what they are: the one that
// leads makes it unknown. If no other can take them over, that is a condition, an event and
// a metric.
func TestUnownedShards(t *testing.T) {
	h := newShardedHub(t, 0.1)
	h.start("fairlead-0")
	h.create(h.fleet("acme"))
	h.waitFor("acme", "Ready=True")
	h.waitHolders(32, "fairlead-0")

	// Somebody holds a Lease and does nothing: as a replica of a version to come might.
	shard, err := lease.ShardOf("eu-1", "", 32)
	h.must(err)
	name := fmt.Sprintf("%02d", shard)
	var list coordinationv1.LeaseList
	h.must(h.client.List(context.Background(), &list, client.InNamespace(namespace)))
	i := slices.IndexFunc(list.Items, func(l coordinationv1.Lease) bool { return strings.Contains(l.Name, "-shard-"+name+"-of-32") })
	l := &list.Items[i]
	edit(h.hub, l, func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = ptr("fairlead-9_gone"), ptr[int32](3600)
	})
	h.waitFor("acme", "Dispatching=False ShardUnowned: No replica holds 1 shard ("+name+"): nothing is sent to 1 cluster")
	h.waitFor("acme", "Ready=False ClustersNotReady: 1 of 3 clusters not ready: eu-1: no replica holds shard "+name)
	for _, m := range h.get("acme").Status.Members {
		if m.Name == "eu-1" && m.State != "unknown" {
			t.Errorf("eu-1 is %s", m.State)
		}
	}
	h.eventually("an event says so", func() string {
		if got := h.events("acme"); !strings.Contains(got, "Warning ShardUnowned: No replica holds 1 shard") {
			return got
		}
		return ""
	})
}

// three starts three replicas, and waits until all of them share the clusters of a Fleet.
func (h *shardedHub) three() {
	h.t.Helper()
	pods := []string{"fairlead-0", "fairlead-1", "fairlead-2"}
	for _, pod := range pods {
		h.start(pod)
	}
	h.create(h.fleet("acme"))
	h.waitHolders(32, pods...)
	h.waitImages("1.0")
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
}

// holderOf is the replica that dispatches to a cluster.
func (h *shardedHub) holderOf(cluster string) *replica {
	h.t.Helper()
	shard, err := lease.ShardOf(cluster, "", 32)
	h.must(err)
	for _, s := range h.get("acme").Status.Shards {
		if pod, _, _ := strings.Cut(s.Holder, "_"); s.Name == fmt.Sprintf("%02d", shard) && h.replicas[pod] != nil {
			return h.replicas[pod]
		}
	}
	h.t.Fatalf("nobody holds %s: %v", cluster, h.get("acme").Status.Shards)
	return nil
}

// others are the pods but one.
func (h *shardedHub) others(but *replica) (pods []string) {
	for name := range h.replicas {
		if name != but.name {
			pods = append(pods, name)
		}
	}
	return pods
}

// sentOnce checks that no object of the many was sent more often than a number of times
// above what was in flight.
func (h *shardedHub) sentOnce(objects, inFlight int) {
	h.t.Helper()
	again := 0
	for _, times := range h.applied() {
		again += times - 1
	}
	if n := len(h.applied()); n != objects || again > inFlight {
		h.t.Errorf("%d objects were sent, %d once more: want %d, and at most %d once more", n, again, objects, inFlight)
	}
}

// A replica that ends in the middle of a rollout drains, and gives its clusters to others:
// each object is sent once. One that is killed has sent some that are sent again, no more
// than were in flight.
func TestReplicaEndsInTheMiddle(t *testing.T) {
	for _, test := range []struct {
		name     string
		signal   syscall.Signal
		inFlight int
	}{{"SIGTERM", syscall.SIGTERM, 0}, {"SIGKILL", syscall.SIGKILL, 16}} {
		t.Run(test.name, func(t *testing.T) {
			h := newShardedHub(t, 0.1)
			h.three()
			h.slow(100 * time.Millisecond)
			h.many(60, "1")
			one := h.holderOf("eu-1")
			h.eventually("the rollout is on its way", func() string {
				if n := len(h.applied()); n < 10 {
					return fmt.Sprint(n)
				}
				return ""
			})
			one.end(t, test.signal)
			if len(h.applied()) == 180 {
				t.Fatal("the rollout had ended already")
			}
			h.waitHolders(32, h.others(one)...)
			h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
			h.sentOnce(180, 3*test.inFlight)
		})
	}
}

// A replica that is stopped loses its clusters. When it goes on it sends nothing of what it
// was about to: another has sent a newer commit.
func TestReplicaStopped(t *testing.T) {
	h := newShardedHub(t, 0.1)
	h.three()
	one := h.holderOf("eu-1")
	h.slow(50 * time.Millisecond)
	h.many(60, "1")
	h.eventually("the rollout is on its way", func() string {
		if n := len(h.applied()); n < 10 {
			return fmt.Sprint(n)
		}
		return ""
	})
	one.signal(t, syscall.SIGSTOP)
	h.slow(0)
	h.waitHolders(32, h.others(one)...)
	h.many(60, "2")
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
	sent := h.applied()

	one.signal(t, syscall.SIGCONT)
	h.eventually("it has noticed", func() string {
		if !strings.Contains(one.log.String(), "eu-1: is another replica's now") {
			return one.log.String()
		}
		return ""
	})
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
	again := 0
	for object, times := range h.applied() {
		again += times - sent[object]
	}
	// What was on the wire when it was stopped arrives, and is put right.
	if again > 2*16*3 {
		t.Errorf("%d writes after it went on", again)
	}
	t.Logf("%d writes after it went on", again)
	h.eventually("nothing is of the older commit", func() string {
		var older []string
		for name := range h.members {
			objects, err := push.Live(context.Background(), h.members[name].Config(), configMaps, "shop")
			h.must(err)
			for _, o := range objects {
				if v, _, _ := unstructured.NestedString(o, "data", "v"); v == "1" {
					older = append(older, fmt.Sprint(name, "/", o["metadata"].(map[string]any)["name"]))
				}
			}
		}
		return strings.Join(older, " ")
	})
}

// While the API server of the Leases is away nothing newer is sent, because nobody can say
// that it is. When it is back, everything goes on.
func TestSharedHubAway(t *testing.T) {
	h := newShardedHub(t, 0.1)
	h.three()
	h.server.Stop(t)
	h.release("2.0")
	head := h.repo.Head()[:7]
	h.eventually("every replica has folded the commit", func() string {
		for name, r := range h.replicas {
			if !strings.Contains(r.log.String(), "to "+head) {
				return name
			}
		}
		return ""
	})
	h.waitImages("1.0")
	h.server.Restart(t)
	h.waitImages("2.0")
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
}

// Replicas are updated one after the other to a version whose engine is newer. What they
// hold moves up, and nothing is sent because of it.
func TestRollingUpdate(t *testing.T) {
	h := newShardedHub(t, 0.1)
	h.engine = "1.0"
	h.three()
	for i, pod := range []string{"fairlead-2", "fairlead-1", "fairlead-0"} {
		h.replicas[pod].end(t, syscall.SIGTERM)
		h.engine = "1.1"
		h.start(pod)
		h.waitHolders(32, "fairlead-0", "fairlead-1", "fairlead-2")
		tag := fmt.Sprintf("2.%d", i)
		h.release(tag)
		h.waitImages(tag)
	}
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
	for name, m := range h.members {
		sent := 0
		for _, r := range m.Requests() {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/deployments/web") {
				sent++
			}
		}
		if sent != 4 {
			t.Errorf("%s was sent web %d times: want one for each of four commits", name, sent)
		}
	}
}
