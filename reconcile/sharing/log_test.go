// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"context"
	"errors"
	"reflect"
	"slices"
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

// stored is a log in ConfigMaps, and what replicas that have read or written it know.
type stored struct {
	log   *writtenLog
	parts map[string]string
	known []*writtenLog // earlier ones, and none
}

// write has a replica that knows one of the earlier logs write another.
func (s *stored) write(t *rapid.T, log *reconcile.Log) {
	w := &writtenLog{Log: log}
	added, err := write(w, rapid.SampledFrom(s.known).Draw(t, "writes after"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range added {
		s.parts[p.hash] = p.text
	}
	if s.log != nil && s.log.ID == log.ID {
		if _, ok := s.log.Continued(log.Entries); ok && !slices.Equal(s.log.parts, w.parts[:len(s.log.parts)]) {
			t.Fatal("the parts of a log that is continued are others")
		}
	}
	s.log, s.known = w, append(s.known, w)
}

// read has a replica that knows one of the earlier logs read the last.
func (s *stored) read(t *rapid.T) {
	w := &writtenLog{Log: &reconcile.Log{ID: s.log.ID, Head: s.log.Head}, parts: s.log.parts, tail: s.log.tail}
	err := w.read(rapid.SampledFrom(s.known).Draw(t, "reads after"), func(hash string) (string, error) {
		text, there := s.parts[hash]
		if !there {
			return "", errors.New("there is no part " + hash)
		}
		return text, nil
	})
	if err != nil || len(w.Entries)+len(s.log.Entries) > 0 && !reflect.DeepEqual(w.Entries, s.log.Entries) || w.inParts != s.log.inParts {
		t.Fatalf("%v\n%+v\n%+v", err, w, s.log)
	}
	s.known = append(s.known, w)
}

// What is written of a log is read, by whoever knows an earlier one or none; and a log that is
// continued has the parts that it had.
func TestWrittenLogIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &stored{parts: map[string]string{}, known: []*writtenLog{nil}}
		pad := strings.Repeat("x", rapid.SampledFrom([]int{1, 200, 9000}).Draw(t, "size"))
		log := &reconcile.Log{ID: "a", Head: "c" + pad}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			next := *log
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // it was lost, and is begun again
				next.ID += "a"
				next.Entries = next.Entries[:rapid.IntRange(0, len(next.Entries)).Draw(t, "rest")]
			case 1: // the branch was rewritten
				next.Entries = slices.Clone(next.Entries)
				for i := rapid.IntRange(0, len(next.Entries)).Draw(t, "from"); i < len(next.Entries); i++ {
					next.Entries[i].After = "d" + pad
				}
			case 2, 3: // another commit
				next.Head += "c"
			default:
				for range rapid.IntRange(0, 20).Draw(t, "entries") {
					next.Entries = append(next.Entries, anEntry(t, len(next.Entries), "c"+pad))
				}
			}
			s.write(t, &next)
			log = &next
			s.read(t)
		}
	})
}

func anEntry(t *rapid.T, i int, after string) reconcile.Entry {
	web := object.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	e := reconcile.Entry{After: after}
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
	return e
}

// Another commit, and another entry, cost the same after ten entries and after ten thousand.
func TestLongLogCostsNoMore(t *testing.T) {
	steps := func(entries int) float64 {
		log := &writtenLog{Log: &reconcile.Log{ID: "a", Head: "c"}}
		for i := range entries {
			log.Entries = append(log.Entries, reconcile.Entry{After: "c", Observations: propagate.Observations{At: int64(i + 1)}})
		}
		if _, err := write(log, nil); err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(10, func() {
			next := &writtenLog{Log: &reconcile.Log{ID: "a", Head: "d"}}
			next.Entries = append(slices.Clip(log.Entries), reconcile.Entry{After: "d", Observations: propagate.Observations{At: int64(entries + 1)}})
			if _, err := write(next, log); err != nil {
				t.Fatal(err)
			}
			read := &writtenLog{Log: &reconcile.Log{ID: "a", Head: "d"}, parts: next.parts, tail: next.tail}
			err := read.read(log, func(string) (string, error) { return "", errors.New("a part is read") })
			if err != nil || len(read.Entries) != entries+1 {
				t.Fatalf("%d entries, %v", len(read.Entries), err)
			}
		})
	}
	few, many := steps(10), steps(10_000)
	if many > few {
		t.Errorf("%v allocations after 10 entries, %v after 10,000", few, many)
	}
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
			w := writtenLog{Log: &reconcile.Log{ID: "a", Head: "c"}, tail: line + "\n"}
			if err := w.read(nil, nil); err == nil {
				t.Errorf("it is read as %+v", w.Log)
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
