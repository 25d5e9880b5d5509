// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// BenchmarkReplay folds 1,000 commits of one file each out of a git repository,
// on 1,000 and on 10,000 templates: reading,
// rendering and deciding. What a commit costs should not follow the fleet.
func BenchmarkReplay(b *testing.B) {
	// The collector is as calm as the program has it.
	calm := make([]byte, 32<<20)
	defer runtime.KeepAlive(calm)
	for b.Loop() {
		var rates, largeRates []float64
		var cold time.Duration
		var heap uint64
		for range benchRounds {
			rate, _, _ := replay(b, 1_000)
			rates = append(rates, rate)
			rate, cold, heap = replay(b, 10_000)
			largeRates = append(largeRates, rate)
		}
		small, large := median(rates), median(largeRates)
		b.ReportMetric(small, "commits/s-on-1000")
		b.ReportMetric(large, "commits/s-on-10000")
		b.ReportMetric(small/large, "ratio")
		b.ReportMetric(1.2, "ratio-limit")
		b.ReportMetric(cold.Seconds(), "s-cold-on-10000")
		b.ReportMetric(float64(heap)/(1<<20), "MiB-on-10000")
	}
}

const replayed = 1_000

func replay(b *testing.B, templates int) (perSecond float64, cold time.Duration, heap uint64) {
	b.Helper()
	dir := b.TempDir()
	importReplay(b, dir, templates, replayed, nil)
	repo, err := source.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	history := history.New(repo, ".")
	commits, err := history.Commits("", "main")
	if err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	state, err := history.Fold(propagate.State{}, commits[:1], nil)
	if err != nil || state.Refusal != nil {
		b.Fatal(err, state.Refusal)
	}
	cold = time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	began = time.Now()
	state, err = history.Fold(state, commits[1:], nil)
	took := time.Since(began)
	if err != nil || state.Refusal != nil || state.Bindings.Len() != templates {
		b.Fatal(err, state.Refusal, state.Bindings.Len())
	}
	return float64(replayed) / took.Seconds(), cold, after.HeapAlloc - before.HeapAlloc
}

// importReplay makes the repository by one process of git.
// first adds to the first commit after the one that has everything.
func importReplay(b *testing.B, dir string, templates, commits int, first map[string]string) {
	b.Helper()
	var in bytes.Buffer
	file := func(name, content string) {
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(content), content)
	}
	name := func(i int) string { return fmt.Sprintf("apps/%03d/app%d.yaml", i/100, i) }
	template := func(i, version int) string {
		return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app%d, namespace: default}\nspec:\n  replicas: 3\n  selector: {matchLabels: {app: app%d}}\n  template:\n    metadata: {labels: {app: app%d}}\n    spec: {containers: [{name: app, image: \"registry.example.com/app:%d\"}]}\n", i, i, i, version)
	}
	commit := func(n int) {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter ann <ann@example.com> %d +0000\ndata 2\nc\n\n", 1_700_000_000+n)
	}
	commit(0)
	for _, cluster := range names {
		file("clusters/"+cluster+".yaml", "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: "+cluster+"}\nspec: {syncMode: Push}\n")
	}
	file("policy.yaml", "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: default}\nspec:\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n  placement: {replicaScheduling: {replicaSchedulingType: Divided}}\n")
	for i := range templates {
		file(name(i), template(i, 0))
	}
	for n := 1; n <= commits; n++ {
		commit(n)
		if n == 1 {
			for name, content := range first {
				file(name, content)
			}
		}
		i := 1 + n*7919%(templates-1)
		file(name(i), template(i, n))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main", dir}, {"-C", dir, "fast-import", "--quiet"}} {
		cmd := exec.Command("git", args...)
		cmd.Stdin = bytes.NewReader(in.Bytes())
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}
