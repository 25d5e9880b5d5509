// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
)

var (
	web  = object.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	db   = object.ID{Kind: "ConfigMap", Namespace: "shop", Name: "db"}
	gone = object.ID{Kind: "ConfigMap", Namespace: "shop", Name: "gone"}
)

// shop is a fleet of four clusters, one of them in no wave, whose web is
// somewhere else on each; db has no policy, and gone no template any more.
func shop() *status.Fleet {
	waves := &fleet.Policy{Ref: fleet.PolicyRef{Namespace: "shop", Name: "web"}, Waves: [][]string{{"eu-1"}, {"us-1", "us-2"}}}
	snapshot := &fleet.Snapshot{}
	snapshot.Policies = ordered.Map[*fleet.Policy]{}.With(waves.Ref.Key(), waves)
	f := &status.Fleet{Head: strings.Repeat("a", 40), State: propagate.State{Snapshot: snapshot}, Cells: map[object.ID]map[string]*status.Cell{}}
	for _, name := range []string{"eu-1", "lab", "us-1", "us-2"} {
		c := &fleet.Cluster{Cluster: &clusterv1alpha1.Cluster{}}
		c.Name = name
		f.Clusters = append(f.Clusters, c)
	}

	bindings := ordered.Map[*propagate.Binding]{}
	bindings = bindings.With(web.Key(), &propagate.Binding{ID: web, Claim: &waves.Ref})
	bindings = bindings.With(db.Key(), &propagate.Binding{ID: db})
	f.State.Bindings = bindings

	for _, id := range []object.ID{web, db} {
		snapshot.Templates = snapshot.Templates.With(id.Key(), &fleet.Template{ID: id})
	}

	seen := &status.Observation{Ours: true, Replicas: 4, Available: 1}
	for _, c := range []*status.Cell{
		{Object: web, Cluster: "eu-1", State: status.InProgress, Why: "1 of 4", Replicas: 4, Observed: seen},
		{Object: web, Cluster: "us-1", State: status.Outdated, Behind: 2, Held: true, Why: "it is held and runs 1111111", Replicas: 3, Observed: seen},
		{Object: web, Cluster: "us-2", State: status.Failed, Why: "it is missing", Replicas: 3},
		{Object: db, Cluster: "eu-1", State: status.Current, Replicas: -1},
		{Object: db, Cluster: "lab", State: status.Unknown, Why: "no answer", Replicas: -1},
		{Object: db, Cluster: "us-1", Deferred: true, Replicas: -1},
		{Object: gone, Cluster: "us-2", State: status.Outdated, Behind: -1, Why: "it is not deleted yet", Replicas: -1},
	} {
		if f.Cells[c.Object] == nil {
			f.Cells[c.Object] = map[string]*status.Cell{}
		}
		f.Cells[c.Object][c.Cluster] = c
	}
	return f
}

func every(object.ID, map[string]string) bool { return true }

func TestMatrixText(t *testing.T) {
	f := shop()
	query := report.MatrixQuery{Template: every}
	var out strings.Builder
	if err := report.NewMatrix(f, query, query.Rows(f)).Text(&out, output.Screen{}, false); err != nil {
		t.Fatal(err)
	}

	want := `TEMPLATE         POLICY  eu-1   | us-1   us-2  | lab
cm/shop/db       <none>  =      | L      .     | ?
cm/shop/gone     <none>  .      | .      -?    | .
deploy/shop/web  web     > 1/4  | -2H 3  X     | .
` + report.Legend + `
X deploy/shop/web on us-2: it is missing
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// The JSON says per cell what the table draws, and why.
func TestMatrixJSON(t *testing.T) {
	f := shop()
	query := report.MatrixQuery{Template: func(id object.ID, _ map[string]string) bool { return id == web }, Wave: 2}
	text, err := json.MarshalIndent(report.NewMatrix(f, query, query.Rows(f)), "", "  ")
	if err != nil {
		t.Fatal(err)
	}

	want := `{
  "apiVersion": "fairlead.dev/v1",
  "kind": "Matrix",
  "formatVersion": "1.0",
  "head": {
    "commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
  },
  "blocks": [
    {
      "waves": [
        [
          "us-1",
          "us-2"
        ]
      ],
      "rows": [
        {
          "object": {
            "group": "apps",
            "kind": "Deployment",
            "namespace": "shop",
            "name": "web"
          },
          "policy": "web",
          "cells": [
            {
              "cluster": "us-1",
              "state": "outdated",
              "held": true,
              "behind": 2,
              "why": "it is held and runs 1111111",
              "replicas": 3
            },
            {
              "cluster": "us-2",
              "state": "failed",
              "why": "it is missing"
            }
          ]
        }
      ]
    }
  ]
}`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestMatrixQueryChoosesRows(t *testing.T) {
	f := shop()
	for _, c := range []struct {
		name  string
		query report.MatrixQuery
		want  []object.ID
	}{
		{"everything", report.MatrixQuery{}, []object.ID{db, gone, web}},
		{"what is outdated somewhere", report.MatrixQuery{Only: []string{"outdated"}}, []object.ID{gone, web}},
		{"what is held or deferred somewhere", report.MatrixQuery{Only: []string{"held", "deferred"}}, []object.ID{db, web}},
		{"what a cluster has", report.MatrixQuery{Clusters: []string{"lab"}}, []object.ID{db}},
		{"what is outdated on one cluster", report.MatrixQuery{Clusters: []string{"us-2"}, Only: []string{"outdated"}}, []object.ID{gone}},
		{"what has a second wave", report.MatrixQuery{Wave: 2}, []object.ID{web}},
		{"what has a third", report.MatrixQuery{Wave: 3}, nil},
		{"what is in progress in the second wave", report.MatrixQuery{Wave: 2, Only: []string{"in-progress"}}, nil},
	} {
		c.query.Template = every
		var got []object.ID
		for _, r := range c.query.Rows(f) {
			got = append(got, r.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
