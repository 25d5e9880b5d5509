// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/reconcile"
)

// Under the gate Failover a dry run asks the members whether they are ready, and
// decides as a real run does: a member that is not ready gets no new work. It sends
// nothing, and keeps nothing: the next process has all of it to do.
func TestDryRunObserves(t *testing.T) {
	patches := []string{
		"ap-1 PATCH /api/v1/namespaces/default/configmaps/other",
		"eu-1 PATCH /api/v1/namespaces/default/configmaps/other",
	}
	for _, test := range []struct {
		name   string
		dry    bool
		writes []string
		kept   bool
	}{
		{"a real run", false, patches, true},
		{"a dry run", true, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, embeddedMembers(t))
			w.repo.Commit("a fleet", failoverFleet())
			w.settle()
			w.members["us-1"].isNotReady()
			w.writes()

			works, placed := w.decidesOnAnother(test.dry)
			if works != "2 bindings, 4 works" || !slices.Equal(placed, []string{"ap-1", "eu-1"}) {
				t.Errorf("it decided on %s, on %q; want 2 bindings, 4 works, on ap-1 and eu-1", works, placed)
			}
			w.wantWrites(test.writes...)

			w.said()
			w.settle()
			if kept := !strings.Contains(w.said(), `"another"`); kept != test.kept {
				t.Errorf("the commit is known to the next process: %v, want %v", kept, test.kept)
			}
		})
	}
}

// decidesOnAnother has one process look at the members for long enough to believe
// what it sees, and then see a new commit. It returns what was folded, and where the
// new object is said to have been applied.
func (w *world) decidesOnAnother(dry bool) (works string, placed []string) {
	w.t.Helper()
	now := time.Now()
	opt := w.options()
	opt.DryRun, opt.Clock.Now = dry, func() time.Time { return now }
	opt.Report = func(e reconcile.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, folded, ok := strings.Cut(e.String(), `"another": `); ok {
			works = folded
		}
		if e.Object.Name == "other" {
			placed = append(placed, e.Cluster)
		}
	}
	l, err := reconcile.Open(context.Background(), opt)
	if err != nil {
		w.t.Fatal(err)
	}

	for range 2 {
		_ = l.Once(context.Background())
		now = now.Add(time.Minute)
	}
	w.repo.Commit("another", map[string]string{
		"other.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: default}\n",
		"policy.yaml": failoverPolicy + "---\n" + otherPolicy,
	})
	_ = l.Once(context.Background())
	if err := l.Close(); err != nil {
		w.t.Fatal(err)
	}

	slices.Sort(placed)
	return works, slices.Compact(placed)
}

// isNotReady has a member answer that it is not ready, and everything else as before.
func (m *testMember) isNotReady() {
	m.config = rest.CopyConfig(m.config)
	m.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil && r.URL.Path == "/readyz" {
				answer.StatusCode, answer.Body = http.StatusInternalServerError, io.NopCloser(strings.NewReader("not ready"))
			}
			return answer, err
		})
	})
}
