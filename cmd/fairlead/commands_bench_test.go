// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead/fairlead/source/sourcetest"
)

// BenchmarkCommands runs the program as its user does, on 10,000 templates on 100 clusters
// whose state is in the cache, and takes what each command takes by the clock. What it
// prints is thrown away.
func BenchmarkCommands(b *testing.B) {
	program := filepath.Join(b.TempDir(), "fairlead")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	g := sourcetest.New(b)
	g.Commit("first", commandsFleet())
	g.Commit("one file", map[string]string{"templates/00005.yaml": commandsTemplate(5, "2")})
	cache := b.TempDir()
	run := func(b *testing.B, args ...string) *syscall.Rusage {
		b.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = g.Dir, append(os.Environ(), "XDG_CACHE_HOME="+cache)
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil {
			b.Fatalf("%v: %v: %s", args, err, &said)
		}
		return cmd.ProcessState.SysUsage().(*syscall.Rusage)
	}
	run(b, "plan", "--base", "HEAD~1") // keeps both states

	for _, command := range []string{
		"get clusters",
		"get templates",
		"get templates -o name",
		"get bindings",
		"get works -c m0005",
		"get objects -c m0005",
		"why cm/app-00005",
		"plan --base HEAD~1",
	} {
		b.Run(command, func(b *testing.B) {
			for b.Loop() {
				used := run(b, strings.Fields(command)...)
				b.ReportMetric(float64(used.Maxrss)/1024, "MiB-RSS")
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s")
			b.ReportMetric(0.3, "s-limit")
		})
	}
}

func commandsFleet() map[string]string {
	files := map[string]string{"policy.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: default}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  placement: {}\n"}
	for i := range 100 {
		files[fmt.Sprintf("clusters/m%04d.yaml", i)] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m%04d}\nspec: {syncMode: Push}\n", i)
	}
	for i := range 10_000 {
		files[fmt.Sprintf("templates/%05d.yaml", i)] = commandsTemplate(i, "1")
	}
	return files
}

func commandsTemplate(i int, version string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app-%05d, namespace: default}\ndata: {v: %q}\n", i, version)
}
