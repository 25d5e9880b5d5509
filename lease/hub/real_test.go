// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

const shards = 8

// Two replicas share the shards of a fleet on a real API server. One ends, comes
// back, and is killed.
func TestReplicasShareShards(t *testing.T) {
	server := kubetest.Start(t, 1)[0]
	api, err := client.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	leases := &recorded{Leases: api.Leases("default")}
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	share := map[string][]int{}
	pods := []string{"fairlead-0", "fairlead-1"}
	for shard, pod := range lease.Assign(shards, pods) {
		share[pods[pod]] = append(share[pods[pod]], shard)
	}

	a := start(t, leases, "fairlead-0")
	a.waitFor(t, all)
	b := start(t, leases, "fairlead-1")
	b.waitFor(t, share["fairlead-1"])
	a.waitFor(t, share["fairlead-0"])

	shard := share["fairlead-0"][0]
	if err := a.runner.Permit(t.Context(), shard, "c1"); err != nil {
		t.Fatal(err)
	}
	if err := a.runner.Permit(t.Context(), shard, "c3"); err != nil {
		t.Fatal(err)
	}
	if err := a.runner.Permit(t.Context(), shard, "c2"); !isClosed(err, lease.Position) {
		t.Errorf("c2 after c3: %v", err)
	}
	checkLeases(t, leases, a, b, shard)

	if err := b.runner.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.waitFor(t, all)
	if _, err := leases.Get(t.Context(), "fairlead-acme-replica-fairlead-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Lease of a replica that has ended: %v", err)
	}
	for _, shard := range share["fairlead-1"] {
		if name := lease.ShardName("acme", shard, shards); !leases.gave(name, "fairlead-0") {
			t.Errorf("%s was not given to fairlead-0", name)
		}
	}

	c := start(t, leases, "fairlead-1")
	if c.runner.Identity() == b.runner.Identity() {
		t.Errorf("two processes are %s", c.runner.Identity())
	}
	c.waitFor(t, share["fairlead-1"])
	a.waitFor(t, share["fairlead-0"])
	c.kill()
	a.waitFor(t, all)
	for _, shard := range share["fairlead-1"] {
		if err := c.runner.Gate(shard).Open(now()); err == nil {
			t.Errorf("shard %d: both gates are open", shard)
		}
	}
}

// checkLeases checks what stands in the Leases.
func checkLeases(t *testing.T, leases Leases, a, b *replica, shard int) {
	t.Helper()
	list, err := leases.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"fairlead-acme-leader": true, "fairlead-acme-replica-fairlead-0": true, "fairlead-acme-replica-fairlead-1": true}
	for i := range shards {
		want[fmt.Sprintf("fairlead-acme-shard-%02d-of-8", i)] = true
	}
	kinds := map[string]int{}
	for _, l := range list.Items {
		if !want[l.Name] {
			t.Errorf("a Lease is called %s", l.Name)
		}
		delete(want, l.Name)
		kinds[l.Labels["fairlead.dev/lease"]]++
		if l.Labels["fairlead.dev/fleet"] != "acme" {
			t.Errorf("%s: labels %v", l.Name, l.Labels)
		}
	}
	if len(want) > 0 || !maps.Equal(kinds, map[string]int{"leader": 1, "replica": 2, "shard": 8}) {
		t.Errorf("kinds %v, missing %v", kinds, want)
	}

	l, err := leases.Get(t.Context(), lease.ShardName("acme", shard, shards), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *l.Spec.HolderIdentity != a.runner.Identity() || *l.Spec.LeaseDurationSeconds != 4 || *l.Spec.LeaseTransitions < 1 || l.Spec.RenewTime == nil {
		t.Errorf("%s: %+v", l.Name, l.Spec)
	}
	if !maps.Equal(l.Annotations, map[string]string{"fairlead.dev/sent": "c3", "fairlead.dev/engine": "1.0"}) {
		t.Errorf("%s: annotations %v", l.Name, l.Annotations)
	}
	if err := b.runner.Permit(t.Context(), shard, "c3"); !isClosed(err, lease.NotHeld) {
		t.Errorf("a replica that does not hold it: %v", err)
	}
}

// The deadline of a write is the server's as well.
func TestServerKeepsTimeout(t *testing.T) {
	server := kubetest.Start(t, 1)[0]
	api, err := client.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	patch := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"late"}}`
	err = api.RESTClient().Patch(types.ApplyYAMLPatchType).Namespace("default").Resource("leases").Name("late").
		Param("fieldManager", "test").Param("timeout", "1ns").Body([]byte(patch)).Do(t.Context()).Error()
	if err == nil {
		t.Error("a write that had a nanosecond was done")
	}
	t.Log(err)
	if _, err := api.Leases("default").Get(t.Context(), "late", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a write that had a nanosecond: %v", err)
	}
}

func isClosed(err error, reason lease.Reason) bool {
	closed := (*lease.ClosedError)(nil)
	return errors.As(err, &closed) && closed.Reason == reason
}

// replica is one that drains at once.
type replica struct {
	runner  *Runner
	kill    context.CancelFunc
	notices chan lease.Notice
	has     map[int]bool
}

func start(t *testing.T, leases Leases, pod string) *replica {
	t.Helper()
	r := &replica{notices: make(chan lease.Notice, 1000), has: map[int]bool{}}
	r.runner = New(leases, Options{
		Fleet: "acme", Pod: pod, Engine: "1.0", Shards: shards, Rules: lease.DefaultRules().Scaled(0.1),
		Failed: func(err error) { t.Logf("%s: %v", pod, err) },
		Notify: func(n lease.Notice) {
			if n.Kind == lease.Draining {
				r.runner.Drained(n.Lease)
			}
			r.notices <- n
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.runner.Run(ctx) }()
	r.kill = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(r.kill)
	r.runner.Folded(r.runner.Now(), line{"c1", "c2", "c3"})
	return r
}

// waitFor reads notices until the replica has these shards, and their gates are open.
func (r *replica) waitFor(t *testing.T, shards []int) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for {
		if slices.Equal(slices.Sorted(maps.Keys(r.has)), shards) {
			return
		}
		select {
		case n := <-r.notices:
			if n.Kind == lease.Opened && n.Shard >= 0 {
				r.has[n.Shard] = true
			}
			if n.Kind == lease.Draining || n.Kind == lease.Lost {
				delete(r.has, n.Shard)
			}
		case <-late:
			t.Fatalf("has shards %v, not %v", slices.Sorted(maps.Keys(r.has)), shards)
		}
	}
}

type line []string

func (l line) Position(commit string) (int, bool) {
	i := slices.Index(l, commit)
	return i, i >= 0
}

func (l line) Head() string { return l[len(l)-1] }

func (line) Replaces(string) bool { return true }

// recorded are Leases that remember to whom they were given.
type recorded struct {
	Leases
	mu    sync.Mutex
	given []string
}

func (r *recorded) Update(ctx context.Context, l *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	updated, err := r.Leases.Update(ctx, l, opts)
	if err == nil && updated.Spec.HolderIdentity == nil {
		r.mu.Lock()
		r.given = append(r.given, updated.Name+" "+updated.Annotations["fairlead.dev/next"])
		r.mu.Unlock()
	}
	return updated, err
}

func (r *recorded) gave(name, pod string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.given, name+" "+pod)
}
