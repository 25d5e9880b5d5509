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

// F11: an event with a digest of ours that was not acknowledged is a late write, unless it
// may be one that another process has sent since, or one that is about to be sent over.
func TestLateWrites(t *testing.T) {
	const before, after = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	old, now := object.DigestOf([]byte("old")), object.DigestOf([]byte("now"))
	id := object.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}
	isBefore := func(commit string) bool { return commit == before }
	for _, test := range []struct {
		name    string
		has     func(string) bool // of the history of the fleet
		knows   func(string) bool // of several processes
		commit  string
		digest  string
		version uint64
		verb    Verb
		waits   bool // a job for it, after a failure
		runs    bool // a job for it, that then succeeds
		want    string
	}{
		{name: "late", has: isBefore, commit: before, digest: old.String(), version: 8, verb: Apply, want: "was set back to commit 1111111 by a late write of ours"},
		{name: "late, of several", knows: isBefore, commit: before, digest: old.String(), version: 8, verb: Apply, want: "was set back to commit 1111111 by a late write of ours"},
		{name: "late, under a hold", has: isBefore, commit: before, digest: old.String(), version: 8, verb: Hold, want: "was set back to commit 1111111 by a late write of ours"},
		{name: "told late", has: isBefore, commit: before, digest: old.String(), version: 6, verb: Apply},
		{name: "ours", has: isBefore, commit: before, digest: now.String(), version: 8, verb: Apply},
		{name: "without a digest", has: isBefore, commit: before, version: 8, verb: Apply},
		{name: "of who was faster", has: isBefore, commit: after, digest: old.String(), version: 8, verb: Apply},
		{name: "of who was faster, of several", knows: isBefore, commit: after, digest: old.String(), version: 8, verb: Apply},
		{name: "of a history that is not known", commit: before, digest: old.String(), version: 8, verb: Apply},
		{name: "late, told while we sent", knows: isBefore, commit: before, digest: old.String(), version: 8, verb: Apply, runs: true, want: "was set back to commit 1111111 by a late write of ours"},
		{name: "of who was faster, told while we sent", knows: isBefore, commit: after, digest: old.String(), version: 8, verb: Apply, runs: true},
		{name: "sent again anyway", has: isBefore, commit: before, digest: old.String(), version: 8, verb: Apply, waits: true},
	} {
		m := &scripted{}
		w := idleWorker(t, m, &disk{})
		w.d.opt.Knows = test.knows
		w.fleet = historic{desires{id: {Want: Want{Verb: test.verb, APIVersion: "v1", Digest: now}}}, test.has}
		fields := member.Fields(7)
		w.know(id, &Entry{APIVersion: "v1", UID: "u", Digest: now, Fields: fields, Version: 7})
		all := w.drift.beginRelist(&kindWatch{m: m, gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}})
		all.done = true
		if test.waits || test.runs {
			w.queue.put(id, Apply)
			w.queue.jobs[id].waits, w.queue.jobs[id].running = test.waits, test.runs
		}

		told := member.Found{ID: id, UID: "u", Labels: map[string]string{object.LabelManaged: "true", object.LabelFleet: sea.Name},
			Annotations: map[string]string{object.AnnotationRevision: test.commit, object.AnnotationDigest: test.digest}}
		w.drift.observe(member.WatchEvent{Found: told, Fields: fields, Version: test.version}, all)
		if test.runs {
			w.done(w.queue.jobs[id], "")
		}
		if got := w.drift.how[id]; got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// historic is a Fleet that knows its history.
type historic struct {
	desires
	has func(commit string) bool
}

func (h historic) Marker() object.Marker { return object.Marker{Name: sea.Name, Has: h.has} }
