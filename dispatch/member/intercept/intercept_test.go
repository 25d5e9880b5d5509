// SPDX-License-Identifier: Apache-2.0

package intercept_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/dryrun"
	"github.com/fairlead/fairlead/dispatch/member/intercept"
	"github.com/fairlead/fairlead/dispatch/member/membertest"
)

// Every method reaches the member with what it was given, brings back the answer or
// the error, and has the function around it, under its verb. So it does through two.
func TestEachRequest(t *testing.T) {
	failure := &member.Error{Reason: member.Unavailable}
	for _, err := range []error{nil, failure} {
		for _, call := range append(membertest.Calls(), membertest.Capabilities()...) {
			t.Run(call.Asked, func(t *testing.T) {
				inner := &membertest.Capable{}
				inner.Err = err
				var verbs []string
				note := func(_ context.Context, verb intercept.Verb, do func() error) error {
					verbs = append(verbs, string(verb))
					return do()
				}
				m := intercept.Wrap(intercept.Wrap(inner, note), note)

				right, got := call.Do(context.Background(), m)
				if !right || !errors.Is(got, err) {
					t.Errorf("the answer is right: %v, error %v; want error %v", right, got, err)
				}
				if asked := inner.Asked(); !slices.Equal(asked, []string{call.Asked}) {
					t.Errorf("the member was asked %q, want %q", asked, call.Asked)
				}
				want := []string{call.Verb, call.Verb}
				if call.Verb == "" {
					want = nil
				}
				if !slices.Equal(verbs, want) {
					t.Errorf("around were %q, want %q", verbs, want)
				}
			})
		}
	}
}

// A request that the function does not make does not reach the member.
func TestRequestThatIsNotMade(t *testing.T) {
	refusal := &member.Error{Reason: member.Throttled}
	for _, call := range append(membertest.Calls(), membertest.Capabilities()...) {
		if call.Verb == "" {
			continue
		}
		t.Run(call.Asked, func(t *testing.T) {
			inner := &membertest.Capable{}
			m := intercept.Wrap(inner, func(context.Context, intercept.Verb, func() error) error { return refusal })
			if _, err := call.Do(context.Background(), m); !errors.Is(err, member.Throttled) {
				t.Errorf("error %v, want %v", err, refusal)
			}
			if asked := inner.Asked(); asked != nil {
				t.Errorf("the member was asked %q", asked)
			}
		})
	}
}

// A list makes its request when it is ranged over, and each time anew; whoever stops
// early hears no more of it, not even an error.
func TestListThatIsNotReadToTheEnd(t *testing.T) {
	inner := &membertest.Bare{}
	made := 0
	m := intercept.Wrap(inner, func(_ context.Context, _ intercept.Verb, do func() error) error {
		made++
		if err := do(); err != nil {
			return err
		}
		return &member.Error{Reason: member.Unavailable}
	})

	list := m.List(context.Background(), schema.GroupVersionKind{}, "")
	if made != 0 {
		t.Error("a request was made before it was asked for")
	}
	for range 2 {
		for _, err := range list {
			if err != nil {
				t.Error(err)
			}
			break
		}
	}
	if made != 2 {
		t.Errorf("%d requests, want 2", made)
	}
}

// What a member is capable of is seen through the wrapper, and nothing else.
func TestCapabilities(t *testing.T) {
	type seen struct{ Observer, Watcher, Relister, Batch, Identified, Creator, ReadOnly bool }
	capable := &membertest.Capable{}
	all := seen{Observer: true, Watcher: true, Relister: true, Batch: true, Identified: true}
	dry := all
	dry.Batch, dry.ReadOnly = false, true

	for _, test := range []struct {
		name string
		m    member.Member
		want seen
	}{
		{"a member without capabilities", &membertest.Bare{}, seen{}},
		{"one with most", capable, all},
		{"one that creates namespaces", creator{&membertest.Bare{}}, seen{Creator: true}},
		{"one that only watches", onlyWatcher{&membertest.Bare{}, capable}, seen{Watcher: true}},
		{"what a dry run hides stays hidden", dryrun.Wrap(capable), dry},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := intercept.Wrap(test.m, func(_ context.Context, _ intercept.Verb, do func() error) error { return do() })
			got := seen{
				member.Is[member.Observer](m), member.Is[member.Watcher](m), member.Is[member.Relister](m),
				member.Is[member.BatchMember](m), member.Is[member.Identified](m),
				member.Is[member.NamespaceCreator](m), member.Is[member.ReadOnly](m),
			}
			if got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

type creator struct{ member.Member }

func (creator) CreatesNamespaces() {}

type onlyWatcher struct {
	member.Member
	member.Watcher
}
