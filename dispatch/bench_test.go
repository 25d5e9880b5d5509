// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/testenv/kubetest"
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
func bench(b *testing.B, members []member.Member, n int, make func(name string, round int) map[string]any) {
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
			var members []member.Member
			for i := range size.members {
				members = append(members, pushTo(b, start(b, fmt.Sprintf("m%d", i))))
			}
			bench(b, members, size.works, func(name string, round int) map[string]any {
				return configMap(name, fmt.Sprintf("c%d", round))
			})
		})
	}
	b.Run("deployments", func(b *testing.B) {
		bench(b, []member.Member{pushTo(b, start(b, "m"))}, 500, func(name string, round int) map[string]any {
			return deployment(name, round+1)
		})
	})
}

func BenchmarkReal(b *testing.B) {
	m, err := push.New(kubetest.Start(b, 1)[0].Config(), push.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("configmaps", func(b *testing.B) {
		bench(b, []member.Member{m}, 1000, func(name string, round int) map[string]any {
			return configMap(name, fmt.Sprintf("c%d", round))
		})
	})
	b.Run("deployments", func(b *testing.B) {
		bench(b, []member.Member{m}, 500, func(name string, round int) map[string]any {
			return deployment(name, round+1)
		})
	})
}

// BenchmarkRelist has one of 10,000 objects of a member deleted while nobody
// looks, and takes the time from the beginning of the watch, which tells all
// that there is, to the object being back. The aim is a second.
func BenchmarkRelist(b *testing.B) {
	b.Run("embedded", func(b *testing.B) { benchRelist(b, start(b, "m").Config()) })
	b.Run("real", func(b *testing.B) { benchRelist(b, kubetest.Start(b, 1)[0].Config()) })
}

const relisted = 10_000

func benchRelist(b *testing.B, config *rest.Config) {
	var requests, watches atomic.Int64
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "true" {
				watches.Add(1)
			} else {
				requests.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	m, err := push.New(config, push.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var objects []map[string]any
	for i := range relisted {
		objects = append(objects, configMap(fmt.Sprintf("relisted-%05d", i), "red"))
	}
	fleet := dispatchtest.Fleet(dispatchtest.Works{"m": apply(objects...)})
	inventory := &dispatchtest.Inventory{}
	before := dispatch.New(inventory, dispatch.Options{})
	before.SetMember("m", m)
	if err := before.Sync(fleet, nil, dispatch.SyncOptions{}); err != nil {
		b.Fatal(err)
	}
	if left := wait(b, before, 5*time.Minute); len(left) != 0 {
		b.Fatalf("left: %v", left[0].Err)
	}
	if err := before.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ref := refConfigMap("relisted-07777")
		if err := m.Delete(context.Background(), ref, "", dispatchtest.Sea); err != nil {
			b.Fatal(err)
		}
		requests.Store(0)
		watches.Store(0)
		restored := make(chan dispatch.Event, relisted)
		d := dispatch.New(inventory, dispatch.Options{Watch: true, Log: func(e dispatch.Event) {
			if e.Op == "restore" {
				restored <- e
			}
		}})
		d.SetMember("m", m)
		began := time.Now()
		if err := d.Sync(fleet, nil, dispatch.SyncOptions{}); err != nil {
			b.Fatal(err)
		}
		e := <-restored
		took := time.Since(began)
		time.Sleep(time.Second)
		if e.ID != ref.ID() || e.Err != nil || len(restored) != 0 {
			b.Errorf("%s was restored (%v), and %d others", e.ID, e.Err, len(restored))
		}
		if err := d.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(took.Seconds(), "s/relist")
		b.ReportMetric(float64(requests.Load()), "requests")
		b.ReportMetric(float64(watches.Load()), "watches")
	}
}
