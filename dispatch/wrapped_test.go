// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/counting"
	"github.com/fairlead/fairlead/dispatch/member/intercept"
	"github.com/fairlead/fairlead/dispatch/member/ratelimit"
)

// wrapped is a member as one may be wrapped, with a limit that is felt by nobody.
func wrapped(m member.Member) member.Member {
	return counting.Wrap(ratelimit.Wrap(m, ratelimit.Limit{PerSecond: 10_000, Burst: 100}))
}

// A wrapped member keeps the promises of a bare one.
func TestContractWrapped(t *testing.T) {
	dispatchtest.RunWrapped(t, func(t *testing.T) *rest.Config { return start(t, "eu-1").Config() }, wrapped)
}

func TestDirectoryFilesWrapped(t *testing.T) {
	dispatchtest.RunFiles(t, func(t *testing.T) dispatchtest.Files {
		f := directoryFiles(t)
		open := f.Open
		f.Open = func() member.Member { return wrapped(open()) }
		return f
	})
}

// What is counted is what the server is sent, where one request is one of HTTP.
func TestCountedIsSent(t *testing.T) {
	s := start(t, "eu-1")
	counted := counting.Wrap(pushTo(t, s))
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", counted)

	sent := func() map[string]int {
		n := map[string]int{}
		for _, r := range s.Requests() {
			n[r.Method]++
		}
		return n
	}
	count := func(verbs ...intercept.Verb) (n int) {
		for request, times := range counted.Snapshot() {
			for _, verb := range verbs {
				if request.Verb == verb {
					n += times
				}
			}
		}
		return n
	}
	removed := func(name string) []dispatchtest.Work {
		return []dispatchtest.Work{{Verb: dispatch.Delete, Object: configMap(name, "red")}}
	}

	for _, step := range []struct {
		name  string
		works []dispatchtest.Work
		want  map[string]int // so far
	}{
		{"who it is, what there is, and two are created", apply(configMap("a", "red"), configMap("b", "red")), map[string]int{http.MethodGet: 3, http.MethodPatch: 2}},
		{"one is changed", apply(configMap("a", "blue"), configMap("b", "red")), map[string]int{http.MethodGet: 3, http.MethodPatch: 3}},
		{"nothing is", apply(configMap("a", "blue"), configMap("b", "red")), map[string]int{http.MethodGet: 3, http.MethodPatch: 3}},
		{"the other one goes", append(apply(configMap("a", "blue")), removed("b")...), map[string]int{http.MethodGet: 4, http.MethodPatch: 3, http.MethodDelete: 1}},
	} {
		sync1(t, d, dispatchtest.Works{"eu-1": step.works})
		if left := wait(t, d, 10*time.Second); len(left) != 0 {
			t.Fatalf("%s: left: %v", step.name, left[0].Err)
		}

		if got := sent(); !maps.Equal(got, step.want) {
			t.Errorf("%s: sent %v, want %v", step.name, got, step.want)
		}
		got := map[string]int{
			http.MethodGet:    count(intercept.List, intercept.Get, intercept.Replicas),
			http.MethodPatch:  count(intercept.Apply),
			http.MethodDelete: count(intercept.Delete),
		}
		maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
		if !maps.Equal(got, step.want) {
			t.Errorf("%s: counted %v, want %v", step.name, counted.Snapshot(), step.want)
		}
	}

	// A failure is counted by its reason: another object is there.
	post(t, s, "/api/v1/namespaces/default/configmaps", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}`)
	_, err := counted.Apply(context.Background(), configMap("c", "red"), member.ApplyOptions{UID: "another"})
	gone := counting.Request{Verb: intercept.Apply, Outcome: string(member.Gone)}
	if n := counted.Snapshot()[gone]; !errors.Is(err, member.Gone) || n != 1 {
		t.Errorf("error %v, counted %v", err, counted.Snapshot())
	}
}
