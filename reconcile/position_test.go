// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/interpret"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const stand = `apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: push}
spec: {syncMode: Push}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: held}
spec: {syncMode: Push}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: pull}
spec: {syncMode: Pull}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  preserveResourcesOnDeletion: true
`

const holds = "  suspension: {dispatchingOnClusters: {clusterNames: [held]}}\n"

func settings(v string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: %q}\n", v)
}

// Where a cluster stands, by what it was seen to have.
func TestPositions(t *testing.T) {
	repo := sourcetest.New(t)
	first := repo.Commit("one", map[string]string{"fleet.yaml": stand, "a.yaml": settings("1")})
	repo.Commit("hold", map[string]string{"fleet.yaml": stand + holds})
	repo.Commit("readme", map[string]string{"README.md": "hello"})
	second := repo.Commit("two", map[string]string{"a.yaml": settings("2")})
	repo.Commit("three", map[string]string{"a.yaml": settings("3")})
	head := repo.Commit("new, and held from the beginning", map[string]string{"b.yaml": strings.ReplaceAll(settings("1"), "name: a", "name: b")})

	opened, err := source.Open(repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	history := reconcile.NewHistory(opened, ".")
	state, err := history.At(head)
	if err != nil {
		t.Fatal(err)
	}
	old, err := history.At(first)
	if err != nil {
		t.Fatal(err)
	}
	middle, err := history.At(second)
	if err != nil {
		t.Fatal(err)
	}
	a, b := propagate.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}, propagate.ID{Kind: "ConfigMap", Namespace: "default", Name: "b"}
	of := func(s *propagate.State, cluster string) *reconcile.Sight {
		w := s.Bindings.At(a.Key()).Work(cluster)
		return &reconcile.Sight{Ours: true, Digest: w.Want.Digest.String(), Revision: w.Want.Revision, Replicas: -1, Health: propagate.Healthy, Progress: interpret.Current}
	}
	with := func(s *reconcile.Sight, change func(*reconcile.Sight)) *reconcile.Sight {
		change(s)
		return s
	}
	for _, c := range []struct {
		name    string
		cluster string
		id      propagate.ID
		seen    *reconcile.Sight
		err     error
		want    string
	}{
		{"at head", "push", a, of(&state, "push"), nil, "head arrived"},
		{"one commit behind", "push", a, of(&middle, "push"), nil, "behind 1: it runs " + second[:7]},
		{"two commits behind: the readme changed nothing", "push", a, of(&old, "push"), nil, "behind 2: it runs " + first[:7]},
		{"the same content of an older commit is the same", "push", a, with(of(&state, "push"), func(s *reconcile.Sight) { s.Revision = first }), nil, "head arrived"},
		{"a commit that the branch does not have", "push", a, with(of(&old, "push"), func(s *reconcile.Sight) { s.Revision = strings.Repeat("1", 40) }), nil, "behind -1: it runs 1111111"},
		{"a digest that nothing explains", "push", a, with(of(&state, "push"), func(s *reconcile.Sight) { s.Digest = "sha256:00" }), nil, "behind -1: it runs " + state.Bindings.At(a.Key()).Work("push").Want.Revision[:7]},
		{"missing", "push", a, nil, nil, "failed: it is missing"},
		{"not ours", "push", a, &reconcile.Sight{}, nil, "failed: it is there and not ours"},
		{"silent", "push", a, of(&state, "push"), errors.New("no answer"), "unknown: no answer"},
		{"rolling", "push", a, with(of(&state, "push"), func(s *reconcile.Sight) { s.Progress, s.Why = interpret.InProgress, "1 of 2" }), nil, "rolling arrived: 1 of 2"},
		{"failing", "push", a, with(of(&state, "push"), func(s *reconcile.Sight) { s.Progress, s.Why = interpret.Failed, "timed out" }), nil, "failed arrived: timed out"},

		{"held at what was released", "held", a, of(&old, "held"), nil, "behind 2 held arrived: it is held and runs " + first[:7]},
		{"held before it had got that (fold rule 20)", "held", a, with(of(&old, "held"), func(s *reconcile.Sight) { s.Digest = "sha256:00" }), nil, "behind 2 held: it is held and runs " + first[:7] + ", and " + first[:7] + " was released to it"},
		{"held from the beginning", "held", b, nil, nil, "waiting held arrived: nothing was released to it yet"},
		{"held from the beginning, and something is in the way", "held", b, &reconcile.Sight{}, nil, "waiting held arrived: nothing was released to it yet; something of that name that is not ours is there"},

		{"a pull cluster has it published", "pull", a, with(of(&state, "pull"), func(s *reconcile.Sight) { s.Digest = kept(s.Digest) }), nil, "head arrived"},
		{"what is not published like that is no such digest elsewhere", "push", a, with(of(&state, "push"), func(s *reconcile.Sight) { s.Digest = kept(s.Digest) }), nil, "behind -1: it runs " + state.Bindings.At(a.Key()).Work("push").Want.Revision[:7]},
	} {
		sights := reconcile.Sights{}
		if c.seen != nil {
			sights[c.id] = c.seen
		}
		cells := reconcile.Cells(&state, map[string]reconcile.Answer{c.cluster: {Sights: sights, Err: c.err}})
		cell := cells[c.id][c.cluster]
		if len(cells[c.id]) != 1 {
			t.Errorf("%s: %d cells, though one cluster was asked", c.name, len(cells[c.id]))
		}
		line, err := history.Commits("", head)
		if err != nil {
			t.Fatal(err)
		}
		if err := history.Lag(line, []*reconcile.Cell{cell}, history.At); err != nil {
			t.Fatal(err)
		}
		if got := spoken(cell); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func kept(digest string) string {
	return propagate.DigestOf([]byte("preserved\n" + digest)).String()
}

func spoken(c *reconcile.Cell) string {
	text := string(c.Position)
	if c.Position == reconcile.Behind {
		text += fmt.Sprintf(" %d", c.Behind)
	}
	for word, on := range map[string]bool{" held": c.Held} {
		if on {
			text += word
		}
	}
	if c.Arrived {
		text += " arrived"
	}
	if c.Why != "" {
		text += ": " + c.Why
	}
	return text
}
