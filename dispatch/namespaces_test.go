// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"slices"
	"testing"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Whether a namespace counts as there, by what was heard of it.
func TestNamespaces(t *testing.T) {
	whole := func() map[string]bool { return map[string]bool{"kube-system": true, "shop": true} }
	part := func() map[string]bool { return map[string]bool{"shop": true} }

	for _, test := range []struct {
		name      string
		heard     func(n *namespaces)
		known     bool // to the inventory
		shop, bar bool
	}{
		{"nothing was heard", func(*namespaces) {}, false, false, false},
		{"the inventory has it", func(*namespaces) {}, true, true, true},
		{"a whole list says all", func(n *namespaces) { n.learn(whole()) }, false, true, false},
		{"and comes before the inventory", func(n *namespaces) { n.learn(whole()) }, true, true, false},
		{"a list without kube-system may lack more", func(n *namespaces) { n.learn(part()) }, false, true, true},
		{"we may not list", func(n *namespaces) { n.learn(nil) }, false, true, true},
		{"it was created", func(n *namespaces) { n.add("bar") }, false, false, true},
		{"it was created after the list", func(n *namespaces) { n.learn(whole()); n.add("bar") }, false, true, true},
		{"and when we may not list", func(n *namespaces) { n.learn(nil); n.add("bar") }, false, true, true},
		{"it turned out to be absent", func(n *namespaces) { n.miss("bar") }, true, true, false},
		{"it turned out to be absent though it was listed", func(n *namespaces) { n.learn(whole()); n.miss("shop") }, false, false, false},
		{"it turned out to be absent after a list of a part", func(n *namespaces) { n.learn(part()); n.miss("bar") }, false, true, false},
		{"it was made again", func(n *namespaces) { n.miss("bar"); n.add("bar") }, false, false, true},
		{"which counts after a list of a part", func(n *namespaces) { n.miss("bar"); n.add("bar"); n.learn(part()) }, false, true, true},
		{"the member may be another one", func(n *namespaces) { n.learn(whole()); n.miss("bar"); n.forget() }, true, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var n namespaces
			test.heard(&n)
			if shop, bar := n.has("shop", test.known), n.has("bar", test.known); shop != test.shop || bar != test.bar {
				t.Errorf("shop %v, bar %v; want %v and %v", shop, bar, test.shop, test.bar)
			}
		})
	}
}

// What it takes to create something in the namespace shop, and then something else.
func TestEnsureNamespace(t *testing.T) {
	refused := failure(member.Unavailable)
	for _, test := range []struct {
		name   string
		m      scripted
		ns     string
		known  bool // to the inventory
		first  []string
		second []string
		want   error
	}{
		{
			name: "a cluster's own object needs none",
			m:    scripted{}, ns: "",
		},
		{
			name: "one of the inventory is there",
			m:    scripted{}, ns: "shop", known: true,
		},
		{
			name: "one that is listed is there, and listed once",
			m:    scripted{found: []member.Found{found("Namespace kube-system", "1"), found("Namespace shop", "2")}}, ns: "shop",
			first: []string{"list Namespace"},
		},
		{
			name: "one that is not is created, once",
			m:    scripted{found: []member.Found{found("Namespace kube-system", "1")}}, ns: "shop",
			first: []string{"list Namespace", "apply Namespace shop"},
		},
		{
			name: "one of a list that may lack some counts as there",
			m:    scripted{found: []member.Found{found("Namespace bar", "1")}}, ns: "shop",
			first: []string{"list Namespace"},
		},
		{
			name: "so does one that we may not list",
			m:    scripted{fail: map[string]error{"list Namespace": failure(member.Forbidden)}}, ns: "shop",
			first: []string{"list Namespace"},
		},
		{
			name: "somebody else has made it in between",
			m: scripted{
				found: []member.Found{found("Namespace kube-system", "1")},
				fail:  map[string]error{"apply Namespace shop": failure(member.Foreign)},
			}, ns: "shop",
			first: []string{"list Namespace", "apply Namespace shop"},
		},
		{
			name: "it could not be created, and is tried again",
			m: scripted{
				found: []member.Found{found("Namespace kube-system", "1")},
				fail:  map[string]error{"apply Namespace shop": refused},
			}, ns: "shop",
			first:  []string{"list Namespace", "apply Namespace shop"},
			second: []string{"apply Namespace shop"},
			want:   refused,
		},
		{
			name: "they could not be listed, and are listed again",
			m:    scripted{fail: map[string]error{"list Namespace": refused}}, ns: "shop",
			first:  []string{"list Namespace"},
			second: []string{"list Namespace"},
			want:   refused,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &test.m
			w := idleWorker(t, m, &disk{})
			if test.known {
				w.holdings.set(namespaceID("shop"), &Entry{APIVersion: "v1", UID: "1"})
			}

			for i, want := range [][]string{test.first, test.second} {
				err := w.namespaces.ensure(m, desires{}, test.ns)
				if !errors.Is(err, test.want) {
					t.Errorf("object %d: error %v, want %v", i+1, err, test.want)
				}
				if asked := m.take(); !slices.Equal(asked, want) {
					t.Errorf("object %d: asked %q, want %q", i+1, asked, want)
				}
			}
		})
	}
}

// Who creates namespaces itself is asked nothing.
func TestEnsureNamespaceWhereTheMemberDoes(t *testing.T) {
	m := &creator{}
	w := idleWorker(t, m, &disk{})
	if err := w.namespaces.ensure(m, desires{}, "shop"); err != nil || m.asked != nil {
		t.Errorf("error %v, asked %q", err, m.asked)
	}
}

type creator struct{ scripted }

func (*creator) CreatesNamespaces() {}

// The list that tells which namespaces there are also returns those that are wanted.
func TestListNamespaces(t *testing.T) {
	m := &scripted{found: []member.Found{found("Namespace kube-system", "1"), found("Namespace shop", "2")}}
	w := idleWorker(t, m, &disk{})
	got, err := w.namespaces.list(m, desires{}, func(id object.ID) bool { return id.Name == "shop" })
	if err != nil || len(got) != 1 || got[idOf(shop)].UID != "2" {
		t.Errorf("got %v, %v", got, err)
	}

	m.fail = map[string]error{"list Namespace": failure(member.Forbidden)}
	if got, err := w.namespaces.list(m, desires{}, func(object.ID) bool { return true }); got != nil || err != nil {
		t.Errorf("got %v, %v, where it may not be known", got, err)
	}
}
