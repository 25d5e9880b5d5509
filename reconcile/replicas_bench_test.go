// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// BenchmarkReplicas has eight processes share ten thousand embedded members. It sends one
// template to all of them, and takes what the Leases cost while nothing happens and what
// a process needs. The aims are 6 writes of Leases a second, a memory of the fold and of the
// share of the members, and three seconds for a change, which eight processes, the members
// and the API server of the Leases do not have on one machine.
func BenchmarkReplicas(b *testing.B) { benchReplicas(b, 10_000, 8) }

// BenchmarkOneReplica is BenchmarkReplicas with a single process, to compare with.
func BenchmarkOneReplica(b *testing.B) { benchReplicas(b, 10_000, 1) }

func benchReplicas(b *testing.B, n, replicas int) {
	for b.Loop() {
		hub, err := embedded.Start(embedded.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(hub.Close)
		var patched atomic.Int64
		configs := countedFleet(b, n, &patched)
		repo := sourcetest.New(b)
		repo.Commit("release", fleetFiles(configs, 1, "1"))

		kubeconfig := kubeconfig(b, configs)
		var processes []*measured
		for i := range replicas {
			p := measure(b, measuredOptions{
				Repo: repo.Dir, State: b.TempDir(), Kubeconfig: kubeconfig, Interval: time.Second,
				Hub: hub.URL(), Pod: fmt.Sprintf("fairlead-%d", i),
			})
			p.order("open")
			processes = append(processes, p)
		}
		before := cpu(processes)
		began := time.Now()
		for _, p := range processes {
			p.order("join")
		}
		waitPatched(b, &patched, n)
		b.ReportMetric(time.Since(began).Seconds(), "s-cold")
		b.ReportMetric(cpu(processes)-before, "CPU-s-cold")

		time.Sleep(time.Minute) // shards move, four in ten seconds
		patched.Store(0)
		before = cpu(processes)
		repo.Commit("change", map[string]string{"templates/00000.yaml": configMap("app-00000", "2")})
		began = time.Now() // they look for a commit each second
		waitPatched(b, &patched, n)
		b.ReportMetric(time.Since(began).Seconds(), "s-warm")
		b.ReportMetric(cpu(processes)-before, "CPU-s-warm")

		const idle = 30 * time.Second
		leases := leaseWrites(hub)
		before = cpu(processes)
		time.Sleep(idle)
		b.ReportMetric(float64(leaseWrites(hub)-leases)/idle.Seconds(), "lease-writes/s")
		b.ReportMetric(6, "lease-writes/s-limit")
		b.ReportMetric((cpu(processes)-before)/idle.Seconds(), "cores-idle")
		heap, resident := uint64(0), uint64(0)
		for _, p := range processes {
			a := p.order("collect")
			heap, resident = max(heap, a.Heap), max(resident, a.RSS)
		}
		b.ReportMetric(float64(heap)/mib, "MiB-heap-most")
		b.ReportMetric(float64(resident)/mib, "MiB-RSS-most")
		for _, p := range processes {
			p.end()
		}
	}
}

// cpu is the processor time of processes since they began.
func cpu(processes []*measured) (seconds float64) {
	for _, p := range processes {
		seconds += p.order("rest 0s").AllCPU
	}
	return seconds
}

// countedFleet is embeddedFleet that counts what is applied.
func countedFleet(b *testing.B, n int, patched *atomic.Int64) map[string]*rest.Config {
	b.Helper()
	return embeddedFleet(b, n, func(r *http.Request) {
		if r.Method == http.MethodPatch {
			patched.Add(1)
		}
	})
}

func waitPatched(b *testing.B, patched *atomic.Int64, n int) {
	b.Helper()
	for end := time.Now().Add(5 * time.Minute); patched.Load() < int64(n); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("%d of %d members were sent something", patched.Load(), n)
		}
	}
}

func leaseWrites(hub *embedded.Server) (n int) {
	for _, r := range hub.Requests() {
		if r.Method != http.MethodGet && strings.Contains(r.Path, "/leases") {
			n++
		}
	}
	return n
}
