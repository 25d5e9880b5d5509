// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/kubetest"
)

func deployment(name string, replicas int) map[string]any {
	return dispatchtest.Object(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: default, labels: {app: web}}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: example.com/web:1
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        ports: [{containerPort: 80, name: http}]
        resources: {requests: {cpu: 100m, memory: 64Mi}}
`, name, replicas))
}

// bench measures n works of which everyone changes each round, on as many
// members.
func bench(b *testing.B, members []dispatch.Member, n int, make func(name string, round int) map[string]any) {
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{})
	defer d.Close(context.Background())
	for i, m := range members {
		d.SetMember(fmt.Sprintf("m%04d", i), m)
	}
	level := func(round int) {
		var objects []map[string]any
		for i := range n {
			objects = append(objects, make(fmt.Sprintf("o%05d", i), round))
		}
		works := dispatchtest.Works{}
		for i := range members {
			works[fmt.Sprintf("m%04d", i)] = apply(objects...)
		}
		sync1(b, d, works)
		if left := wait(b, d, 5*time.Minute); len(left) != 0 {
			b.Fatalf("left: %v", left[0].Err)
		}
	}
	began := time.Now()
	level(0)
	creates := float64(n*len(members)) / time.Since(began).Seconds()
	began = time.Now()
	round := 0
	for b.Loop() {
		round++
		level(round)
	}
	b.ReportMetric(float64(round*n*len(members))/time.Since(began).Seconds(), "updates/s")
	b.ReportMetric(creates, "creates/s")
}

func BenchmarkEmbedded(b *testing.B) {
	for _, size := range []struct{ members, works int }{{1, 1000}, {100, 10}, {1000, 10}, {1000, 100}} {
		b.Run(fmt.Sprintf("%dx%d", size.members, size.works), func(b *testing.B) {
			var members []dispatch.Member
			for i := range size.members {
				members = append(members, push(b, start(b, fmt.Sprintf("m%d", i))))
			}
			bench(b, members, size.works, func(name string, round int) map[string]any {
				return configMap(name, fmt.Sprintf("c%d", round))
			})
		})
	}
	b.Run("deployments", func(b *testing.B) {
		bench(b, []dispatch.Member{push(b, start(b, "m"))}, 500, func(name string, round int) map[string]any {
			return deployment(name, round+1)
		})
	})
}

func BenchmarkReal(b *testing.B) {
	m, err := dispatch.Push(kubetest.Start(b, 1)[0].Config())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("configmaps", func(b *testing.B) {
		bench(b, []dispatch.Member{m}, 1000, func(name string, round int) map[string]any {
			return configMap(name, fmt.Sprintf("c%d", round))
		})
	})
	b.Run("deployments", func(b *testing.B) {
		bench(b, []dispatch.Member{m}, 500, func(name string, round int) map[string]any {
			return deployment(name, round+1)
		})
	})
}
