// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/member"
)

// namesOf is a start with several names for one cluster, met in any order. Who of
// them says last who it is says so after all others.
type namesOf struct {
	names  []string
	last   string
	colour string // of what each is sent, so that it is asked
}

// begin returns the names that were served.
func (n namesOf) begin(t *testing.T, s *embedded.Server, inventory dispatch.Inventory, expect ...string) (served []string) {
	t.Helper()
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	others := make(chan struct{}, len(n.names))
	works := dispatchtest.Works{}
	for _, i := range rand.Perm(len(n.names)) {
		name, honest := n.names[i], leads(t, s)
		d.SetMember(name, through(t, to(roundTrip(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/namespaces/kube-system") {
				return honest.RoundTrip(r)
			}
			if name == n.last {
				for range len(n.names) - 1 {
					select {
					case <-others:
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
				}
			}
			a, err := honest.RoundTrip(r)
			if name != n.last {
				select {
				case others <- struct{}{}:
				default:
				}
			}
			return a, err
		}))))
		works[name] = apply(configMap("of-"+name, n.colour))
	}
	for _, name := range expect {
		d.Expect(name, identityOf(t, s))
	}
	sync1(t, d, works)
	refused := map[string]bool{}
	for _, o := range wait(t, d, 20*time.Second) {
		if !errors.Is(o.Err, member.Replaced) {
			t.Fatal(o.Err)
		}
		refused[o.Cluster] = true
	}
	for _, name := range n.names {
		if !refused[name] {
			served = append(served, name)
		}
		if holds(t, s, "of-"+name) == refused[name] {
			t.Errorf("%s: refused %v, and its object is there: %v", name, refused[name], !refused[name])
		}
	}
	return served
}

// A9, decision 49: of several names for one cluster the first one gets it, whoever
// answers first, and whatever the order in which they are met.
func TestNamesOfOneClusterAreNoRace(t *testing.T) {
	names := []string{"eu-1", "eu-2", "eu-3"}
	for i := range 20 {
		last := names[i%3]
		served := namesOf{names, last, "red"}.begin(t, start(t, "one"), &dispatchtest.Inventory{})
		if len(served) != 1 || served[0] != "eu-1" {
			t.Fatalf("start %d, where %s answers last: %v were served, want eu-1", i, last, served)
		}
	}
}

// A9, decision 49: who copies the identity of a cluster that is known does not
// displace it, though it comes first by name, and answers first.
func TestKnownNameKeepsItsCluster(t *testing.T) {
	for i := range 20 {
		s, inventory := start(t, "one"), &dispatchtest.Inventory{}
		if served := (namesOf{[]string{"eu-2"}, "", "red"}).begin(t, s, inventory); len(served) != 1 {
			t.Fatal("it was not met")
		}
		last := []string{"eu-2", "aa-1", "eu-3"}[i%3]
		served := namesOf{[]string{"aa-1", "eu-2", "eu-3"}, last, "blue"}.begin(t, s, inventory)
		if len(served) != 1 || served[0] != "eu-2" {
			t.Fatalf("start %d, where %s answers last: %v were served, want eu-2", i, last, served)
		}
	}
}

// A9, decision 49: where no record says whose a cluster is, spec.id may.
func TestNameThatGitSaysKeepsItsCluster(t *testing.T) {
	for _, last := range []string{"eu-1", "eu-2"} {
		served := namesOf{[]string{"eu-1", "eu-2"}, last, "red"}.begin(t, start(t, "one"), &dispatchtest.Inventory{}, "eu-2")
		if len(served) != 1 || served[0] != "eu-2" {
			t.Fatalf("where %s answers last: %v were served, want eu-2", last, served)
		}
	}
}

// A9: a name that never answers keeps no other waiting for long.
func TestNameThatDoesNotAnswerIsNotAwaited(t *testing.T) {
	s := start(t, "one")
	silent := make(chan struct{})
	defer close(silent)
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(canceled())
	d.SetMember("eu-1", through(t, to(roundTrip(func(r *http.Request) (*http.Response, error) {
		select {
		case <-silent:
		case <-r.Context().Done():
		}
		return nil, context.Canceled
	}))))
	d.SetMember("eu-2", pushTo(t, s))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red")), "eu-2": apply(configMap("b", "red"))})
	until(t, func() bool { return holds(t, s, "b") })
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
