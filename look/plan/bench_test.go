// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const (
	benchTemplates = 10_000
	benchClusters  = 100
)

// benchFleet is a repository with 10,000 templates on 100 clusters, and three branches: two
// change a file each, and one a tenth of all templates.
func benchFleet(b *testing.B) *sourcetest.Repo {
	b.Helper()
	files := map[string]string{}
	var names []string
	for i := range benchClusters {
		name := fmt.Sprintf("c%03d", i)
		names = append(names, name)
		files["clusters/"+name+".yaml"] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata:\n  name: %s\n  labels: {region: r%d}\nspec: {syncMode: Push}\n", name, i%8)
	}
	for i := range 100 {
		files[fmt.Sprintf("ns-%02d/policy.yaml", i)] = fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: ns-%02d}\nspec:\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n  placement: {clusterAffinity: {clusterNames: [%s]}}\n", i, strings.Join(names, ", "))
	}
	for i := range 8 {
		files[fmt.Sprintf("regions/r%d.yaml", i)] = fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {name: r%d}\nspec:\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n  overrideRules:\n  - targetCluster: {labelSelector: {matchLabels: {region: r%d}}}\n    overriders: {labelsOverrider: [{operator: add, value: {region: r%d}}]}\n", i, i, i)
	}
	for i := range benchTemplates {
		files[benchFile(i)] = benchTemplate(i, "1.0.0")
	}

	g := sourcetest.New(b)
	g.Commit("first", files)
	g.Git("branch", "base")
	g.Commit("one file", map[string]string{benchFile(5): benchTemplate(5, "2.0.0")})
	g.Git("branch", "one")
	g.Git("reset", "-q", "--hard", "base")
	g.Commit("another file", map[string]string{benchFile(7): benchTemplate(7, "2.0.0")})
	g.Git("branch", "other")
	g.Git("reset", "-q", "--hard", "base")
	many := map[string]string{}
	for i := range benchTemplates / 10 {
		many[benchFile(i)] = benchTemplate(i, "2.0.0")
	}
	g.Commit("many files", many)
	g.Git("branch", "many")
	return g
}

func benchFile(i int) string { return fmt.Sprintf("ns-%02d/web-%d.yaml", i%100, i) }

func benchTemplate(i int, version string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web-%d, namespace: ns-%02d}\nspec:\n  replicas: 3\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - name: web\n        image: registry.example.com/web:%s\n        env: [{name: PORT, value: \"80\"}]\n", i, i%100, version)
}

// BenchmarkPlan plans a change of one file in a process that has the base, as a
// controller has it, and in a new one that has its state in the cache; and makes the
// comment of a change of a thousand templates, 100,000 cells, from the plan's JSON.
func BenchmarkPlan(b *testing.B) {
	g := benchFleet(b)
	cache := b.TempDir()
	benchPlan(b, benchStates(b, g, cache), "base") // fills the cache

	for b.Loop() {
		began, cpu := time.Now(), cpuTime()
		states := benchStates(b, g, cache)
		one := benchPlan(b, states, "one")
		b.ReportMetric(time.Since(began).Seconds(), "s-new-process")
		b.ReportMetric((cpuTime() - cpu).Seconds(), "cpu-s-new-process")
		if n := one.Summary.Cells.Now; n != benchClusters || len(one.Changes) != 1 {
			b.Fatalf("%d cells in %d changes", n, len(one.Changes))
		}

		runtime.GC()
		renders := states.History.Renders
		began, cpu = time.Now(), cpuTime()
		benchPlan(b, states, "other")
		b.ReportMetric(time.Since(began).Seconds(), "s-one-file")
		b.ReportMetric((cpuTime() - cpu).Seconds(), "cpu-s-one-file")
		if n := states.History.Renders - renders; n != 3 { // the file, the one that the plan before edited, and the file without its edit
			b.Fatalf("%d renders", n)
		}

		began = time.Now()
		many := benchPlan(b, states, "many")
		b.ReportMetric(time.Since(began).Seconds(), "s-plan-of-100000")
		if n := many.Summary.Cells.Now; n != 100_000 || len(many.Changes) != 1_000 {
			b.Fatalf("%d cells in %d changes", n, len(many.Changes))
		}
		raw, err := json.Marshal(many)
		if err != nil {
			b.Fatal(err)
		}
		states, one, many = nil, nil, nil
		b.ReportMetric(float64(len(raw))/(1<<20), "MiB-of-JSON")
		benchComment(b, raw)
	}
}

// benchComment makes the comment of a plan as 'fairlead comment' does.
func benchComment(b *testing.B, raw []byte) {
	b.Helper()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	var r plan.Plan
	if err := json.Unmarshal(raw, &r); err != nil {
		b.Fatal(err)
	}
	if err := r.Markdown(io.Discard, plan.GitHubLimit); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(began).Seconds(), "s-comment-of-100000")
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc+uint64(len(raw)))/(1<<20), "MiB-comment")
	runtime.KeepAlive(r)
}

func benchStates(b *testing.B, g *sourcetest.Repo, cache string) *history.States {
	b.Helper()
	repo, err := source.Open(g.Dir)
	if err != nil {
		b.Fatal(err)
	}
	kept := history.NewCache(cache, ".", "", nil)
	kept.Recalls = true
	return &history.States{Repo: repo, History: history.New(repo, "."), Cache: kept}
}

func benchPlan(b *testing.B, states *history.States, head string) *plan.Plan {
	b.Helper()
	r, err := plan.Make(states, plan.Request{Base: "base", Head: head, Now: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// cpuTime is what the process has used.
func cpuTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
