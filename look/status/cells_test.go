// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
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

// The state of a cell, by what its cluster was observed to have.
func TestCellStates(t *testing.T) {
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
	hist := history.New(opened, ".")
	state, err := hist.At(head)
	if err != nil {
		t.Fatal(err)
	}
	old, err := hist.At(first)
	if err != nil {
		t.Fatal(err)
	}
	middle, err := hist.At(second)
	if err != nil {
		t.Fatal(err)
	}

	a, b := object.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}, object.ID{Kind: "ConfigMap", Namespace: "default", Name: "b"}
	of := func(s *propagate.State, cluster string) *status.Observation {
		w := s.Bindings.At(a.Key()).Work(cluster)
		return &status.Observation{Ours: true, Digest: w.Want.Digest.String(), Revision: w.Want.Revision, Replicas: -1, Health: propagate.Healthy, Progress: interpret.Current}
	}
	with := func(s *status.Observation, change func(*status.Observation)) *status.Observation {
		change(s)
		return s
	}
	for _, c := range []struct {
		name    string
		cluster string
		id      object.ID
		seen    *status.Observation
		err     error
		want    string
	}{
		{"current", "push", a, of(&state, "push"), nil, "current arrived"},
		{"one commit behind", "push", a, of(&middle, "push"), nil, "outdated 1: it runs " + second[:7]},
		{"two commits behind: the readme changed nothing", "push", a, of(&old, "push"), nil, "outdated 2: it runs " + first[:7]},
		{"the same content of an older commit is the same", "push", a, with(of(&state, "push"), func(s *status.Observation) { s.Revision = first }), nil, "current arrived"},
		{"a commit that the branch does not have", "push", a, with(of(&old, "push"), func(s *status.Observation) { s.Revision = strings.Repeat("1", 40) }), nil, "outdated -1: it runs 1111111"},
		{"a digest that nothing explains", "push", a, with(of(&state, "push"), func(s *status.Observation) { s.Digest = "sha256:00" }), nil, "outdated -1: it runs " + state.Bindings.At(a.Key()).Work("push").Want.Revision[:7]},
		{"missing", "push", a, nil, nil, "failed: it is missing"},
		{"not ours", "push", a, &status.Observation{}, nil, "failed: it is there and not ours"},
		{"silent", "push", a, of(&state, "push"), errors.New("no answer"), "unknown: no answer"},
		{"in progress", "push", a, with(of(&state, "push"), func(s *status.Observation) { s.Progress, s.Why = interpret.InProgress, "1 of 2" }), nil, "in-progress arrived: 1 of 2"},
		{"failing", "push", a, with(of(&state, "push"), func(s *status.Observation) { s.Progress, s.Why = interpret.Failed, "timed out" }), nil, "failed arrived: timed out"},

		{"held at what was released", "held", a, of(&old, "held"), nil, "outdated 2 held arrived: it is held and runs " + first[:7]},
		{"held before it had got that (fold rule 20)", "held", a, with(of(&old, "held"), func(s *status.Observation) { s.Digest = "sha256:00" }), nil, "outdated 2 held: it is held, and is not as " + first[:7] + " released it"},
		{"held from the beginning", "held", b, nil, nil, "pending held arrived: nothing was released to it yet"},
		{"held from the beginning, and something is in the way", "held", b, &status.Observation{}, nil, "pending held arrived: nothing was released to it yet; something of that name that is not ours is there"},

		{"a pull cluster has it published", "pull", a, with(of(&state, "pull"), func(s *status.Observation) { s.Digest = kept(s.Digest) }), nil, "current arrived"},
		{"the digest of what is published is not that of a push cluster", "push", a, with(of(&state, "push"), func(s *status.Observation) { s.Digest = kept(s.Digest) }), nil, "outdated -1: it runs " + state.Bindings.At(a.Key()).Work("push").Want.Revision[:7]},
	} {
		observed := status.Observations{}
		if c.seen != nil {
			observed[c.id] = c.seen
		}
		cells := status.Cells(&state, map[string]status.Answer{c.cluster: {Observations: observed, Err: c.err}})
		cell := cells[c.id][c.cluster]
		if len(cells[c.id]) != 1 {
			t.Errorf("%s: %d cells, though one cluster was asked", c.name, len(cells[c.id]))
		}

		line, err := hist.Commits("", head)
		if err != nil {
			t.Fatal(err)
		}
		if err := status.Lag(hist, line, []*status.Cell{cell}, hist.At); err != nil {
			t.Fatal(err)
		}
		if got := spoken(cell); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func kept(digest string) string {
	return object.DigestOf([]byte("kept\n" + digest)).String()
}

func spoken(c *status.Cell) string {
	text := string(c.State)
	if c.State == status.Outdated {
		text += fmt.Sprintf(" %d", c.Behind)
	}
	if c.Held {
		text += " held"
	}
	if c.Arrived {
		text += " arrived"
	}
	if c.Why != "" {
		text += ": " + c.Why
	}
	return text
}
