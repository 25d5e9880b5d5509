// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/reconcile/checkpoint"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const (
	restartTemplates = 10_000
	restartClusters  = 100
)

// BenchmarkRestart starts a process on a checkpoint of 1,000,000 works, 10,000
// templates on 100 clusters, all of them acknowledged, and takes the time until
// it is ready for the next commit: the state is restored, the inventory read,
// every work compared. The members are sent nothing but the question who they
// are, and the watches. The inventory is made up, so the watches say nothing.
// The aim was three seconds, and is one now.
func BenchmarkRestart(b *testing.B) {
	configs := embeddedFleet(b, restartClusters)
	repo, state := sourcetest.New(b), b.TempDir()
	repo.Commit("release", fleetFiles(configs, restartTemplates, "1"))
	file := acknowledged(b, repo.Dir, state)
	for b.Loop() {
		c := measure(b, measuredOptions{Repo: repo.Dir, State: state, Kubeconfig: kubeconfig(b, configs), Watch: true, Mute: true})
		open := c.order("open")
		round := c.order("round")
		rest := c.order("run 2s") // it returns memory when nothing is to do
		live := c.order("collect")
		for _, a := range []account{open, round, rest} {
			for _, verb := range []string{http.MethodPatch, http.MethodDelete, http.MethodPost} {
				if a.Requests[verb] > 0 {
					b.Errorf("a restart is %v", a.Requests)
				}
			}
		}
		// Who the member is, and the kinds of the group that is watched.
		b.ReportMetric(float64(open.TotalRequests+round.TotalRequests+rest.TotalRequests)/restartClusters, "requests/member")
		b.ReportMetric(open.Seconds, "s-open")
		b.ReportMetric(round.Seconds, "s-first-round")
		b.ReportMetric(open.Seconds+round.Seconds, "s-ready")
		b.ReportMetric(1, "s-limit")
		b.ReportMetric(open.CPU+round.CPU, "CPU-s-ready")
		b.ReportMetric(float64(rest.RSS)/mib, "MiB-RSS")
		b.ReportMetric(float64(rest.Anon)/mib, "MiB-anon") // without the pages of the file
		b.ReportMetric(float64(rest.Peak)/mib, "MiB-peak")
		b.ReportMetric(600, "MiB-limit")
		b.ReportMetric(float64(rest.Heap)/mib, "MiB-heap")
		b.ReportMetric(float64(live.Heap)/mib, "MiB-live")
		b.ReportMetric(float64(file)/mib, "MiB-on-disk")
		c.end()
	}
}

// acknowledged makes the checkpoint of a fleet whose every work is
// acknowledged, and returns its size.
func acknowledged(b *testing.B, dir, state string) int64 {
	b.Helper()
	repo, err := source.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	head, err := repo.Resolve("main")
	if err != nil {
		b.Fatal(err)
	}
	folded, err := history.New(repo, ".").At(head)
	if err != nil || folded.Refusal != nil {
		b.Fatal(err, folded.Refusal)
	}
	if folded.Works != restartTemplates*restartClusters {
		b.Fatalf("%d works", folded.Works)
	}
	cp, _, err := checkpoint.Open(state)
	if err != nil {
		b.Fatal(err)
	}
	if err := cp.Save(checkpoint.Origin{Repo: dir, Ref: "main", Path: "."}, folded); err != nil {
		b.Fatal(err)
	}
	for cluster := range folded.Snapshot.Clusters.All() {
		entries := map[object.ID]*dispatch.Entry{}
		for binding := range folded.Bindings.Values() {
			w := binding.Work(cluster)
			uid := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", len(entries)))
			entries[binding.ID] = &dispatch.Entry{APIVersion: w.Want.APIVersion, UID: uid, Digest: w.Want.Digest, Fields: 1 << 60}
		}
		if err := cp.Inventory().Save(map[string]map[object.ID]*dispatch.Entry{cluster: entries}); err != nil {
			b.Fatal(err)
		}
	}
	if err := cp.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(state, "checkpoint.db"))
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}
