// SPDX-License-Identifier: Apache-2.0

package dispatch

import "testing"

func TestStages(t *testing.T) {
	const definition = "CustomResourceDefinition ships.example.com"
	for _, test := range []struct {
		name   string
		verb   Verb
		object string
		want   stage
	}{
		{"a namespace is needed first", Apply, shop, applyFirst},
		{"and a definition", Apply, definition, applyFirst},
		{"most are in the middle", Apply, web, applyRest},
		{"a webhook may refuse others", Apply, hooks, applyLast},
		{"so it goes first", Delete, hooks, deleteFirst},
		{"most go in the middle", Delete, web, deleteRest},
		{"a namespace takes along what is in it", Delete, shop, deleteLast},
		{"and a definition its resources", Delete, definition, deleteLast},
		{"left running is as gone", Orphan, shop, deleteLast},
		{"for a webhook too", Orphan, hooks, deleteFirst},
		{"what is held only has a look at itself", Hold, web, deleteRest},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := stageOf(test.verb, idOf(test.object)); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestRank(t *testing.T) {
	for _, test := range []struct {
		kind string
		want int
	}{
		{"ServiceAccount", 0},
		{"ClusterRole", 0},
		{"Secret", 0},
		{"NetworkPolicy", 0},
		{"RoleBinding", 1},
		{"PersistentVolumeClaim", 1},
		{"Service", 1},
		{"Deployment", 2},
		{"AnythingElse", 2},
		{"HorizontalPodAutoscaler", 3},
		{"Ingress", 3},
	} {
		t.Run(test.kind, func(t *testing.T) {
			id := idOf(test.kind + " shop/web")
			if in, out := rank(Apply, id), rank(Delete, id); in != test.want || out != -test.want {
				t.Errorf("got %d, and %d on the way out; want %d and %d", in, out, test.want, -test.want)
			}
		})
	}
}
