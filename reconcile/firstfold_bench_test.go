// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// BenchmarkFirstFold folds a long history for the first time, in a process of its own: of
// FAIRLEAD_BENCH_COMMITS commits (1000000 for the number that the limit is of, and 50,000
// by default) one of ten is in the fleet, and the others are beside it. The repository
// has one pack.
func BenchmarkFirstFold(b *testing.B) {
	commits := 50_000
	if text := os.Getenv("FAIRLEAD_BENCH_COMMITS"); text != "" {
		var err error
		if commits, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	importHistory(b, dir, commits)
	for b.Loop() {
		c := measure(b, measuredOptions{Repo: dir, Path: "fleet", State: b.TempDir(), Kubeconfig: kubeconfig(b, nil)})
		open := c.order("open")
		round := c.order("round")
		c.order("collect")
		after := c.order("rest 1s")
		b.ReportMetric(open.Seconds+round.Seconds, "s-fold")
		b.ReportMetric(20*float64(commits)/1_000_000, "s-limit")
		b.ReportMetric(open.CPU+round.CPU, "CPU-s-fold")
		b.ReportMetric(float64(round.Peak)/mib, "MiB-peak")
		b.ReportMetric(600, "MiB-limit")
		b.ReportMetric(float64(after.Heap)/mib, "MiB-heap-after")
		c.end()
	}
}

// importHistory makes the repository by one process of git.
func importHistory(b *testing.B, dir string, commits int) {
	b.Helper()
	if out, err := exec.Command("git", "init", "-q", "-b", "main", dir).CombinedOutput(); err != nil {
		b.Fatalf("git init: %v\n%s", err, out)
	}
	cmd := exec.Command("git", "-C", dir, "fast-import", "--quiet")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}

	out := bufio.NewWriterSize(in, 1<<20)
	for n := range commits {
		writeCommit(out, n)
	}
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := in.Close(); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatalf("git fast-import: %v", err)
	}
	if packs, _ := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.pack")); len(packs) != 1 {
		b.Fatalf("%d packs", len(packs))
	}
}

func writeCommit(w io.Writer, n int) {
	file := func(name, content string) {
		fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", name, len(content), content)
	}
	message := fmt.Sprintf("change %d\n\nReviewed-by: bob\n", n)
	fmt.Fprintf(w, "commit refs/heads/main\nauthor ann%d <ann@example.com> %[2]d +0000\ncommitter ann <ann@example.com> %[2]d +0000\ndata %d\n%s", n%50, 1_600_000_000+n, len(message), message)
	if n == 0 {
		file("fleet/clusters/eu-1.yaml", "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: eu-1}\nspec: {syncMode: Push}\n")
		file("fleet/policy.yaml", "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  placement: {}\n")
	}
	if n%10 == 0 {
		i := n / 10 % 100
		file(fmt.Sprintf("fleet/apps/%d.yaml", i), fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {version: %q}\n", i, strconv.Itoa(n)))
		return
	}
	file(fmt.Sprintf("src/%d/f%d", n%10, n%100), fmt.Sprintf("content %d\n", n))
}
