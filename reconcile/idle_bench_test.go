// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/source/sourcetest"
)

// envIdle is how long BenchmarkIdle does nothing. Default 10 s.
const envIdle = "FAIRLEAD_BENCH_IDLE"

// BenchmarkIdle has 1,500 objects on three real members, and watches them
// while nothing happens: a process of its own, with the program's interval. A
// request other than a watch is a failure. The aims are 0.1 CPU-seconds a
// minute and 100 MiB.
func BenchmarkIdle(b *testing.B) {
	lasting := 10 * time.Second
	if text := os.Getenv(envIdle); text != "" {
		var err error
		if lasting, err = time.ParseDuration(text); err != nil {
			b.Fatal(err)
		}
	}
	members := realMembers(b)
	configs := map[string]*rest.Config{}
	for name, m := range members {
		configs[name] = m.config
	}
	for b.Loop() {
		repo := sourcetest.New(b)
		repo.Commit("bulk", benchFiles("idle", "1"))
		c := measure(b, measuredOptions{Repo: repo.Dir, State: b.TempDir(), Kubeconfig: kubeconfig(b, configs), Watch: true})
		c.order("open")
		c.order("once")
		c.order("rest 3s") // the watches begin, and tell what is there
		idle := c.order("run " + lasting.String())
		if idle.TotalRequests > 0 {
			b.Errorf("while nothing happens the members are sent %v", idle.Requests)
		}
		b.ReportMetric(idle.CPU*60/lasting.Seconds(), "CPU-s/min")
		b.ReportMetric(float64(idle.RSS)/mib, "MiB-RSS")
		b.ReportMetric(float64(idle.Heap)/mib, "MiB-heap")
		b.ReportMetric(float64(idle.TotalRequests), "requests")
	}
}
