// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// A7: a member that tells of any number of objects has us keep what we have to do
// with, and nothing of the rest. A million of them took 250 MiB.
func TestWatchKeepsWhatIsOurs(t *testing.T) {
	m := &scripted{}
	w := idleWorker(t, m, &disk{})
	ours := object.ID{Kind: "ConfigMap", Namespace: "default", Name: "ours"}
	w.fleet = desires{}
	w.know(ours, &Entry{APIVersion: "v1", UID: "u", Version: 1})
	all := w.drift.beginRelist(&kindWatch{m: m, gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}})

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 200_000 {
		theirs := object.ID{Kind: "ConfigMap", Namespace: "default", Name: fmt.Sprintf("theirs-%d", i)}
		w.drift.observe(member.WatchEvent{Found: member.Found{ID: theirs, UID: "x"}, Version: uint64(i)}, all)
	}
	w.drift.observe(member.WatchEvent{Found: member.Found{ID: ours, UID: "u"}, Version: 1}, all)
	runtime.GC()
	runtime.ReadMemStats(&after)

	if len(all.seen) != 1 || !all.seen[ours] {
		t.Errorf("%d objects are remembered, want ours alone", len(all.seen))
	}
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 8<<20 {
		t.Errorf("%d MiB are kept of what is not ours", kept>>20)
	}
	runtime.KeepAlive(all)
	w.drift.observe(member.WatchEvent{All: true, Version: 300_000}, all)
	if w.drift.has(ours) {
		t.Error("ours counts as absent, though it was told")
	}
}
