// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// What a run has recorded of an object on a cluster holds until the next act there.
func TestFailures(t *testing.T) {
	web := &eventlog.Object{Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	db := &eventlog.Object{Kind: "ConfigMap", Namespace: "shop", Name: "db"}
	event := func(what eventlog.Type, o *eventlog.Object, cluster, text string) eventlog.Event {
		return eventlog.Event{Type: what, Object: o, Cluster: cluster, Text: text}
	}
	on := func(cluster string, o *eventlog.Object) propagate.Place {
		return propagate.Place{Cluster: cluster, ID: object.ID(*o)}
	}
	refused := event(eventlog.Failed, web, "m1", "apply: 403 Forbidden")
	for name, c := range map[string]struct {
		record []eventlog.Event
		want   status.Failures
	}{
		"nothing is recorded": {nil, status.Failures{}},
		"a failure":           {[]eventlog.Event{refused}, status.Failures{on("m1", web): "apply failed: 403 Forbidden"}},
		"the last one counts": {[]eventlog.Event{refused, event(eventlog.Failed, web, "m1", "apply: 422: immutable")}, status.Failures{on("m1", web): "apply failed: 422: immutable"}},
		"applied afterwards":  {[]eventlog.Event{refused, event(eventlog.Applied, web, "m1", "")}, status.Failures{}},
		"adopted, restored, deleted, left running": {[]eventlog.Event{
			refused, event(eventlog.Adopted, web, "m1", ""), refused, event(eventlog.Restored, web, "m1", ""),
			refused, event(eventlog.Deleted, web, "m1", ""), refused, event(eventlog.LeftRunning, web, "m1", ""),
		}, status.Failures{}},
		"it waits for other clusters now":     {[]eventlog.Event{refused, event(eventlog.Noted, web, "m1", "waits for m2")}, status.Failures{}},
		"another object, and another cluster": {[]eventlog.Event{refused, event(eventlog.Applied, db, "m1", ""), event(eventlog.Applied, web, "m2", "")}, status.Failures{on("m1", web): "apply failed: 403 Forbidden"}},
		"of a cluster, and of a commit":       {[]eventlog.Event{event(eventlog.Failed, nil, "m1", "EOF"), event(eventlog.Failed, nil, "", "web.yaml:1: broken"), event(eventlog.Noted, nil, "m1", "")}, status.Failures{}},
		"a text without what was tried":       {[]eventlog.Event{event(eventlog.Failed, web, "m1", "no manifest for ConfigMap web: broken")}, status.Failures{on("m1", web): "no manifest for ConfigMap web: broken"}},
		"a text that somebody has tampered":   {[]eventlog.Event{event(eventlog.Failed, web, "m1", "apply: \x1b[2J\nX all is lost")}, status.Failures{on("m1", web): "apply failed:  [2J X all is lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := status.Failures{}
			for _, e := range c.record {
				got.Read([]eventlog.Event{e}) // as it is written, event by event
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// A failure explains what was to be sent, and not what has another reason.
func TestExplain(t *testing.T) {
	repo := sourcetest.New(t)
	first := repo.Commit("one", map[string]string{"fleet.yaml": stand, "a.yaml": settings("1")})
	head := repo.Commit("two, held", map[string]string{"fleet.yaml": stand + holds, "a.yaml": settings("2")})
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

	id := object.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}
	of := func(s *propagate.State, cluster string) *status.Observation {
		w := s.Bindings.At(id.Key()).Work(cluster)
		return &status.Observation{Ours: true, Digest: w.Want.Digest.String(), Revision: w.Want.Revision, Replicas: -1, Health: propagate.Healthy, Progress: interpret.Current}
	}
	for _, c := range []struct {
		name, cluster string
		seen          *status.Observation
		err           error
		want          string
	}{
		{"missing", "push", nil, nil, "it is missing: apply failed: 403"},
		{"outdated", "push", of(&old, "push"), nil, "it runs " + first[:7] + ": apply failed: 403"},
		{"current", "push", of(&state, "push"), nil, ""},
		{"held", "held", of(&old, "held"), nil, "it is held and runs " + first[:7]},
		{"not ours", "push", &status.Observation{}, nil, "it is there and not ours"},
		{"not served", "push", &status.Observation{Err: errors.New("the cluster does not serve it")}, nil, "the cluster does not serve it"},
		{"silent", "push", nil, errors.New("no answer"), "no answer"},
	} {
		answer := status.Answer{Err: c.err, Observations: status.Observations{}}
		if c.seen != nil {
			answer.Observations[id] = c.seen
		}
		f := &status.Fleet{Cells: status.Cells(&state, map[string]status.Answer{c.cluster: answer}),
			Failures: status.Failures{{Cluster: c.cluster, ID: id}: "apply failed: 403"}}
		f.Explain()
		if got := f.Cells[id][c.cluster].Reason(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
