// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// What is written of a log is read, and a log that is continued has the parts that it had.
func TestWrittenLogIsRead(t *testing.T) {
	web := object.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	rapid.Check(t, func(t *rapid.T) {
		log := &reconcile.Log{ID: "a", Head: "c"}
		pad := strings.Repeat("x", rapid.SampledFrom([]int{1, 200, 3000}).Draw(t, "size"))
		for i := range rapid.IntRange(0, 80).Draw(t, "entries") {
			e := reconcile.Entry{After: "c" + pad}
			e.At = int64(i*7 + 1)
			if rapid.Bool().Draw(t, "ready") {
				e.Ready = map[string]metav1.ConditionStatus{"eu-1": "True", "ap-1": "Unknown"}
			}
			if rapid.Bool().Draw(t, "health") {
				e.Health = map[propagate.Place]propagate.Health{{Cluster: "eu-1", ID: web}: propagate.Unhealthy}
			}
			if rapid.Bool().Draw(t, "gone") {
				e.Gone = []propagate.Place{{Cluster: "eu-1", ID: web}}
			}
			log.Entries = append(log.Entries, e)
		}

		w, err := write(log)
		if err != nil {
			t.Fatal(err)
		}
		read, err := w.read()
		if err != nil || !reflect.DeepEqual(read, log) {
			t.Fatalf("%v\n%+v\n%+v", err, read, log)
		}

		more := *log
		more.Entries = append(more.Entries[:len(more.Entries):len(more.Entries)], reconcile.Entry{After: "d" + pad, Observations: propagate.Observations{At: 1000}})
		next, err := write(&more)
		if err != nil || len(next.parts) < len(w.parts) || !reflect.DeepEqual(next.parts[:len(w.parts)], w.parts) && len(w.parts) > 0 {
			t.Fatalf("%v: the parts of a log that is continued are others", err)
		}
	})
}

// A line that is not one of ours is an error: what it means would be lost.
func TestUnreadableLines(t *testing.T) {
	for name, line := range map[string]string{
		"no JSON":                     `after`,
		"a field of a later version":  `{"after":"c","at":1,"taints":{}}`,
		"no commit":                   `{"at":1}`,
		"no moment":                   `{"after":"c"}`,
		"no object":                   `{"after":"c","at":1,"gone":{"eu-1":["web"]}}`,
		"no object that is unhealthy": `{"after":"c","at":1,"health":{"eu-1":{"web":"Unhealthy"}}}`,
		"an earlier moment":           `{"after":"c","at":2}` + "\n" + `{"after":"c","at":2}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := writtenLog{id: "a", head: "c", tail: line + "\n"}
			if log, err := w.read(); err == nil {
				t.Errorf("it is read as %+v", log)
			}
		})
	}
}

// Positions are ordered by commit, and at one commit by moment.
func TestPositionText(t *testing.T) {
	for _, test := range []struct {
		text   string
		commit string
		at     int64
		ok     bool
	}{
		{"4d1f8e2", "4d1f8e2", 0, true},
		{"4d1f8e2@1732435200", "4d1f8e2", 1732435200, true},
		{"4d1f8e2@0", "4d1f8e2", 0, false},
		{"4d1f8e2@-1", "4d1f8e2", -1, false},
		{"4d1f8e2@soon", "4d1f8e2", 0, false},
		{"", "", 0, true},
	} {
		commit, at, ok := parsePosition(test.text)
		if commit != test.commit || ok != test.ok || ok && at != test.at {
			t.Errorf("%q is %q at %d, %v", test.text, commit, at, ok)
		}
		if ok && position(commit, at) != test.text {
			t.Errorf("%q is written as %q", test.text, position(commit, at))
		}
	}
}

// The log on an API server: begun once, continued by whoever has read it last, in parts that
// are written once, and an error rather than half a log.
func TestLogOnAnAPIServer(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		s, err := embedded.Start(embedded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		logContract(t, s.Config())
	})
	t.Run("real", func(t *testing.T) { logContract(t, kubetest.Start(t, 1)[0].Config()) })
}

func logContract(t *testing.T, config *rest.Config) {
	core, err := corev1.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps := core.ConfigMaps("default")
	ctx := context.Background()
	replica := func() *observed {
		return newObserved(&Replica{opt: Options{Fleet: "team/acme", Changed: func() {}}, until: ctx}, maps)
	}
	one, other := replica(), replica()
	one.watching.Do(func() {})
	other.watching.Do(func() {})

	if log, err := one.read(ctx); log != nil || err != nil {
		t.Fatalf("there is %+v, %v", log, err)
	}
	begun, err := one.write(ctx, &reconcile.Log{Head: "c1"})
	if err != nil || begun.ID == "" || begun.Version == "" {
		t.Fatalf("%+v, %v", begun, err)
	}
	if _, err := other.write(ctx, &reconcile.Log{Head: "c2"}); !errors.Is(err, reconcile.ErrLogChanged) {
		t.Errorf("it is begun twice: %v", err)
	}

	next := *begun
	for i := range 1500 {
		next.Entries = append(next.Entries, reconcile.Entry{After: "c1", Observations: propagate.Observations{
			At: int64(i + 1), Ready: map[string]metav1.ConditionStatus{"a-cluster-with-a-long-name-to-have-more-than-a-part": "Unknown"},
		}})
	}
	written, err := one.write(ctx, &next)
	if err != nil {
		t.Fatal(err)
	}
	stale := *begun
	stale.Head = "c9"
	if _, err := other.write(ctx, &stale); !errors.Is(err, reconcile.ErrLogChanged) {
		t.Errorf("who has not read it continues it: %v", err)
	}
	read, err := other.read(ctx)
	if err != nil || !reflect.DeepEqual(read, written) {
		t.Fatalf("%v: %d entries were read of %d", err, len(read.Entries), len(written.Entries))
	}
	m, err := maps.Get(ctx, lease.ObservedName("team/acme"), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if parts := strings.Fields(m.Data[keyParts]); len(parts) == 0 || len(m.Data[keyEntries]) >= partSize {
		t.Errorf("%d parts, and %d bytes beside them", len(parts), len(m.Data[keyEntries]))
	}

	part := one.partName(strings.Fields(m.Data[keyParts])[0])
	if err := maps.Delete(ctx, part, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if log, err := replica().read(ctx); err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("without a part it is read as %d entries, %v", len(log.Entries), err)
	}
}

// What is observed is written when it has changed, and counts while its shard is held by who
// has written it.
func TestSeenIsOfTheHolder(t *testing.T) {
	s, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	core, err := corev1.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	a := New(Options{ConfigMaps: core.ConfigMaps("default"), Fleet: "team/acme", Pod: "fairlead-0", Shards: 8, Changed: func() {}})
	name := lease.SeenName("team/acme", 3, 8)
	say := func(seen reconcile.MembersSeen) (writes int) {
		before := len(s.Requests())
		if err := a.observed.saw(ctx, map[int]reconcile.MembersSeen{3: seen}, 8); err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Requests()[before:] {
			if r.Method != "GET" {
				writes++
			}
		}
		return writes
	}
	eu := func(m reconcile.MemberSeen) map[string]reconcile.MemberSeen {
		return map[string]reconcile.MemberSeen{"eu-1": m}
	}

	if n := say(reconcile.MembersSeen{Commit: "c1", At: 5, Clusters: eu(reconcile.MemberSeen{Ready: "True"})}); n != 1 {
		t.Errorf("%d writes of what is new", n)
	}
	if n := say(reconcile.MembersSeen{Commit: "c2", At: 6, Clusters: eu(reconcile.MemberSeen{Ready: "True"})}); n != 0 {
		t.Errorf("%d writes though the same is seen", n)
	}
	gone := eu(reconcile.MemberSeen{Ready: "True", Gone: []string{"shop/Deployment.apps/web"}})
	if n := say(reconcile.MembersSeen{Commit: "c2", At: 6, Clusters: gone}); n != 1 {
		t.Errorf("%d writes of what is gone", n)
	}
	if n := say(reconcile.MembersSeen{Commit: "c3", At: 6, Clusters: gone}); n != 1 {
		t.Errorf("%d writes of what is gone still, after another commit", n)
	}

	seen, err := a.observed.seen(ctx, map[string]string{name: a.Identity()})
	want := []reconcile.MembersSeen{{Commit: "c3", At: 6, Clusters: gone}}
	if err != nil || !reflect.DeepEqual(seen, want) {
		t.Errorf("%v, %v", seen, err)
	}
	if seen, err := a.observed.seen(ctx, map[string]string{name: "fairlead-1_beef"}); err != nil || len(seen) != 0 {
		t.Errorf("another replica holds the shard, and %v counts, %v", seen, err)
	}
}
