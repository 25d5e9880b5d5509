// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/reconcile"
)

// handed is the part of a replica whose clusters another takes now and then, and gives back.
type handed struct {
	replicaOf
	moves atomic.Int64 // odd: they are its own
}

func (h *handed) Term(*fleet.Cluster) int {
	if n := h.Moves(); n%2 == 1 {
		return n
	}
	return 0
}

func (h *handed) Moves() int { return int(h.moves.Load()) }

// move gives the clusters to the other, or back.
func (h *handed) move() { h.moves.Add(1) }

// A replica that loses its clusters and takes them again, many times and within a round,
// reconciles them when that is over.
func TestClustersAreHandedBackAndForth(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("one", moving("ap-1", "eu-1", "us-1"))
	shares := &handed{}
	shares.move()
	opt := w.options()
	opt.Shares, opt.Interval = shares, time.Millisecond
	l, err := reconcile.Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = l.Run(ctx) })
	defer running.Wait()
	defer end()

	random := rand.New(rand.NewPCG(1, 1))
	for n := range 100 {
		for range 1 + random.IntN(3) {
			shares.move()
			var drained sync.WaitGroup
			drained.Go(func() { l.Release(ctx) })
			time.Sleep(time.Duration(random.IntN(300)) * time.Microsecond)
			shares.move()
			drained.Wait()
		}

		value := strconv.Itoa(n)
		w.repo.Commit(value, map[string]string{"web.yaml": configMap("web", value)})
		w.eventually("all have "+value, func() bool {
			return !slices.ContainsFunc(names, func(name string) bool { return w.value(name) != value })
		})
	}
}

// Another replica has had the clusters for so short a time that no round has noticed, and its
// objects have other UIDs. What is on record of the time before is not believed.
func TestClustersAreAnothersBetweenRounds(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("one", moving("ap-1", "eu-1"))
	shares := &handed{}
	shares.move()
	opt := w.options()
	opt.Shares = shares
	l, err := reconcile.Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.round(l, "ap-1", "eu-1")

	shares.move()
	web := w.get("eu-1", configMaps, "default", "web")
	client := dynamic.NewForConfigOrDie(w.members["eu-1"].config).Resource(configMaps).Namespace("default")
	if err := client.Delete(context.Background(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	web.SetUID("")
	web.SetResourceVersion("")
	if _, err := client.Create(context.Background(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shares.move()

	w.repo.Commit("removed", map[string]string{"policy.yaml": placedOn("ap-1")})
	w.round(l, "ap-1")
}

// round is one round of an open loop, after which the ConfigMap is on the clusters.
func (w *world) round(l *reconcile.Loop, want ...string) {
	w.t.Helper()
	if _, err := l.Round(context.Background()); err != nil {
		w.t.Fatalf("%v\n%s", err, w.said())
	}
	w.eventually("it is on "+fmt.Sprint(want), func() bool { return slices.Equal(w.onClusters(), want) })
}

// value is what the ConfigMap of a cluster has, "" when there is none.
func (w *world) value(cluster string) string {
	w.t.Helper()
	web := w.get(cluster, configMaps, "default", "web")
	if web == nil {
		return ""
	}
	value, _, _ := unstructured.NestedString(web.Object, "data", "v")
	return value
}
