// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/lease"
)

// replicaEnv has the test program be a replica of the controller, in a process that can be
// stopped and killed. Its value is a replicaConfig.
const replicaEnv = "FAIRLEAD_TEST_REPLICA"

// replicaConfig is what a replica is started with.
type replicaConfig struct {
	Kubeconfig, Storage, Pod string
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
	opt := controllerOptions(funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{LogTimestamp: true}))
	opt.StoragePath, opt.Sharding, opt.Pod = c.Storage, true, c.Pod
	controller.SetRules(&opt, lease.DefaultRules().Scaled(c.Scale))
	return controller.Run(ctx, hub, opt)
}

// shardedHub is a hub whose replicas are processes.
type shardedHub struct {
	*hub
	kubeconfig string
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
	config, err := json.Marshal(replicaConfig{h.kubeconfig, h.t.TempDir(), name, h.scale})
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
	a := h.start("fairlead-0")
	h.create(h.fleet("acme"))
	h.waitHolders(32, "fairlead-0")
	h.waitImages("1.0")
	b := h.start("fairlead-1")
	h.waitHolders(32, "fairlead-0", "fairlead-1")
	h.release("2.0")
	h.waitImages("2.0")

	a.end(t, syscall.SIGKILL)
	h.waitHolders(32, "fairlead-1")
	h.release("3.0")
	h.waitImages("3.0")

	h.start("fairlead-0")
	h.waitHolders(32, "fairlead-0", "fairlead-1")
	began := time.Now()
	b.end(t, syscall.SIGTERM)
	h.waitHolders(32, "fairlead-0")
	t.Logf("given back and taken in %v", time.Since(began))
	h.release("4.0")
	h.waitImages("4.0")
}
