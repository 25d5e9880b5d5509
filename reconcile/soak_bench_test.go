// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/source/sourcetest"
)

// envSoak is how long BenchmarkSoak lasts. Default 20 s, of which nothing can be said
// about memory.
const envSoak = "FAIRLEAD_SOAK_TIME"

const (
	soakTemplates = 20
	soakSample    = 30 * time.Second // from one look at the memory to the next
	soakWarm      = 4                // samples before the memory is compared
	// soakGrowth is what live memory may grow over the whole run, by the line that fits its
	// samples best: some per cent of it, which they differ by anyway.
	soakGrowth     = 4 * mib
	soakMembers    = 1_000
	soakGoroutines = 8 // of a member: its watch, its connections, and what is being repeated
)

// BenchmarkSoak has a commit a second change one of twenty templates on a thousand embedded
// members, while one request of twenty fails: refused, too many, reset, or done with the
// answer lost. The live memory of the loop, a process of its own, does not grow, nor do its
// goroutines; and when the faults end, every member has what git wants.
//
//	FAIRLEAD_SOAK_TIME=30m go test ./reconcile -run '^$' -bench BenchmarkSoak -benchtime 1x -timeout 1h
func BenchmarkSoak(b *testing.B) {
	lasting := 20 * time.Second
	if text := os.Getenv(envSoak); text != "" {
		var err error
		if lasting, err = time.ParseDuration(text); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		configs := embeddedFleet(b, soakMembers)
		repo := sourcetest.New(b)
		repo.Commit("begin", fleetFiles(configs, soakTemplates, "0"))
		c := measure(b, measuredOptions{Repo: repo.Dir, State: b.TempDir(), Kubeconfig: kubeconfig(b, configs), Watch: true, Interval: time.Second, Faults: 0.05})
		c.order("open")

		commits := commitEvery(repo, time.Second)
		var samples []account
		var total account
		began := time.Now()
		for time.Since(began) < lasting {
			ran := c.order("run " + min(soakSample, lasting).String())
			total.CPU, total.TotalRequests = total.CPU+ran.CPU, total.TotalRequests+ran.TotalRequests
			samples = append(samples, c.order("collect"))
		}
		made := commits()

		c.order("calm")
		c.order("once")
		c.order("once") // the last commit may have come while the first was under way
		last := samples[len(samples)-1]
		b.Logf("%d commits and %d requests in %v", made, total.TotalRequests, time.Since(began).Round(time.Second))
		b.ReportMetric(float64(made), "commits")
		b.ReportMetric(float64(total.TotalRequests), "requests")
		b.ReportMetric(total.CPU/time.Since(began).Seconds(), "cores")
		b.ReportMetric(float64(last.Heap)/mib, "MiB-live")
		b.ReportMetric(float64(last.RSS)/mib, "MiB-RSS")
		b.ReportMetric(float64(last.Goroutines), "goroutines")
		soaked(b, samples)
	}
}

// soaked compares the samples.
func soaked(b *testing.B, samples []account) {
	b.Helper()
	for i, s := range samples {
		b.Logf("%3d: %.1f MiB live, %.1f MiB resident, %d goroutines", i, float64(s.Heap)/mib, float64(s.RSS)/mib, s.Goroutines)
		if s.Goroutines > soakGoroutines*soakMembers {
			b.Errorf("sample %d: %d goroutines", i, s.Goroutines)
		}
	}
	if len(samples) < 3*soakWarm {
		return
	}
	warm := samples[soakWarm:]
	growth := slope(warm) * float64(len(warm))
	b.ReportMetric(growth/mib, "MiB-growth")
	if growth > soakGrowth {
		b.Errorf("live memory has grown by %.1f MiB", growth/mib)
	}
}

// slope is that of the line which fits the live memory of the samples best, in bytes from
// one to the next.
func slope(samples []account) float64 {
	n := float64(len(samples))
	var sumX, sumY, sumXY, sumXX float64
	for i, s := range samples {
		x, y := float64(i), float64(s.Heap)
		sumX, sumY, sumXY, sumXX = sumX+x, sumY+y, sumXY+x*y, sumXX+x*x
	}
	return (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
}

// commitEvery edits one template at a time until it is ended, and then tells how often.
func commitEvery(repo *sourcetest.Repo, every time.Duration) (end func() int) {
	made, stop := 0, make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			made++
			n := made % soakTemplates
			repo.Commit(fmt.Sprintf("change %d", made), map[string]string{fmt.Sprintf("templates/%05d.yaml", n): configMap(fmt.Sprintf("app-%05d", n), fmt.Sprint(made))})
		}
	})
	return func() int {
		close(stop)
		done.Wait()
		return made
	}
}
