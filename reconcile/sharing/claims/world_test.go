// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// doc is a Cluster document: its shard, and spec.id.
type doc struct {
	shard int
	id    types.UID
}

type docs map[string]doc

func (d docs) Cluster(name string, _ int) (int, types.UID, bool) {
	c, ok := d[name]
	return c.shard, c.id, ok
}

// world has holders that share ConfigMaps.
type world struct {
	t       *testing.T
	maps    ConfigMaps
	holders []*holder
}

func newWorld(t *testing.T, maps ConfigMaps) *world { return &world{t: t, maps: maps} }

// holder is a process that holds shards.
type holder struct {
	*Registry
	w    *world
	stop func()

	mu    sync.Mutex
	holds map[int]bool
}

func (w *world) start(name string, shards int, held ...int) *holder {
	w.t.Helper()
	h := &holder{w: w, holds: map[int]bool{}}
	h.Registry = New(Options{
		Maps: w.maps, Fleet: "acme", Holder: name, Shards: shards, Retry: 10 * time.Millisecond,
		Holds:  func(shard, _ int) bool { h.mu.Lock(); defer h.mu.Unlock(); return h.holds[shard] },
		Failed: func(err error) { w.t.Log(name, err) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	go h.Run(ctx)
	h.stop = sync.OnceFunc(func() { cancel(); <-h.done })
	w.t.Cleanup(h.stop)
	for _, s := range held {
		h.holds[s] = true
		h.Taken(s)
	}
	w.holders = append(w.holders, h)
	return h
}

// keep has every holder know git.
func (w *world) keep(clusters docs) {
	for _, h := range w.holders {
		h.Keep(&known{clusters})
	}
}

// claim asks until there is an answer.
func (h *holder) claim(cluster string, uid types.UID) (recorded types.UID, other string) {
	h.w.t.Helper()
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if recorded, other, err = h.Claim(h.w.t.Context(), cluster, uid); err == nil {
			return recorded, other
		}
	}
	h.w.t.Fatalf("%s: %v", cluster, err)
	return "", ""
}

func (h *holder) granted(cluster string, uid types.UID) {
	h.w.t.Helper()
	if recorded, other := h.claim(cluster, uid); recorded != uid || other != "" {
		h.w.t.Errorf("%s is not %s: it was %q, and %q is", cluster, uid, recorded, other)
	}
}

func (h *holder) refused(cluster string, uid types.UID, by string) {
	h.w.t.Helper()
	if recorded, other := h.claim(cluster, uid); recorded == uid || other != by {
		h.w.t.Errorf("%s is %s: it was %q, and %q is; want %q", cluster, uid, recorded, other, by)
	}
}

func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	w.t.Fatal("not in time: " + what)
}

// text is what a ConfigMap says.
func (w *world) text(name string) string {
	w.t.Helper()
	list, err := w.maps.List(w.t.Context(), metav1.ListOptions{LabelSelector: "fairlead.dev/record=members,fairlead.dev/fleet=acme"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range list.Items {
		if m.Name == name {
			var all []string
			for _, cluster := range slices.Sorted(maps.Keys(m.Data)) {
				all = append(all, fmt.Sprintf("%s=%s", cluster, m.Data[cluster]))
			}
			return strings.Join(all, " ")
		}
	}
	return "<none>"
}

// names are the ConfigMaps that there are.
func (w *world) names() string {
	w.t.Helper()
	list, err := w.maps.List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, m := range list.Items {
		all = append(all, m.Name)
	}
	return strings.Join(all, " ")
}

// known is git as one Keep says it.
type known struct{ docs }
