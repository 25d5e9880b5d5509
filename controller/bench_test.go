// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// envIdle is how long BenchmarkIdleFleets does nothing. Default 20 s.
const envIdle = "FAIRLEAD_BENCH_IDLE"

// BenchmarkIdleFleets has many Fleets with a webhook and nothing to do: what they cost the
// process, the hub and the forge. The members and the git server are in this process, too.
func BenchmarkIdleFleets(b *testing.B) {
	lasting := 20 * time.Second
	if text := os.Getenv(envIdle); text != "" {
		var err error
		if lasting, err = time.ParseDuration(text); err != nil {
			b.Fatal(err)
		}
	}
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				idleFleets(b, n, lasting)
			}
		})
	}
}

func idleFleets(b *testing.B, n int, lasting time.Duration) {
	h := newHub(b)
	// One ConfigMap on one cluster: what is measured is a Fleet, not what is in it.
	h.repo = sourcetest.New(b)
	h.git = serveGit(b, h.repo)
	h.commit("small", map[string]string{
		"fairlead.yaml":  "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nmetadata: {name: small}\nspec: {maxDelete: 100%}\n",
		"cluster.yaml":   "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: eu-1}\nspec: {syncMode: Push}\n",
		"configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: default}\ndata: {v: '1'}\n",
		"policy.yaml":    "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web, namespace: default}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n",
	})
	h.secret("hook", map[string]string{"token": "t0ken"})
	before := memory()
	stop := h.run(func(o *controller.Options) { o.Log = logr.Discard() })
	defer stop()
	for i := range n {
		h.create(h.fleet(fmt.Sprintf("f%04d", i), func(f *v1alpha1.Fleet) {
			f.Spec.Interval = nil
			f.Spec.Webhook = &v1alpha1.WebhookSpec{Type: "github", SecretRef: meta.LocalObjectReference{Name: "hook"}}
		}))
	}

	began := time.Now()
	for {
		var list v1alpha1.FleetList
		h.must(h.client.List(context.Background(), &list, client.InNamespace(namespace)))
		ready := 0
		for _, f := range list.Items {
			if strings.Contains(statusText(&f), "Ready=True") {
				ready++
			}
		}
		if ready == n {
			break
		}
		if time.Since(began) > 10*time.Minute {
			b.Fatalf("%d of %d Fleets are ready; the last says\n%s", ready, n, statusText(&list.Items[n-1]))
		}
		time.Sleep(200 * time.Millisecond)
	}
	b.ReportMetric(time.Since(began).Seconds(), "s-until-ready")

	time.Sleep(3 * time.Second) // what was announced is written
	h.server.ResetRequests()
	looks, cpu := h.git.looks(), cpuSeconds(b)
	time.Sleep(lasting)
	perMinute := 60 / lasting.Seconds()
	b.ReportMetric((cpuSeconds(b)-cpu)*perMinute, "CPU-s/min")
	b.ReportMetric(float64(len(h.server.Requests()))*perMinute, "hub-requests/min")
	b.ReportMetric(float64(h.git.looks()-looks)*perMinute, "git-requests/min")
	b.ReportMetric((memory()-before)/float64(n), "KiB/Fleet")
	b.ReportMetric(0, "ns/op")
}

// memory is the heap in use, in KiB.
func memory() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse+m.StackInuse) / 1024
}

func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// BenchmarkPush is from a forge's report of a push until three real members run it, the
// median of 50; and the same without a report, polled every second. The aim is 60 ms.
func BenchmarkPush(b *testing.B) {
	const pushes = 50
	h := newHub(b)
	servers := kubetest.Start(b, 3)
	watches := h.realMembers(servers)
	addr := freeAddress(b)
	h.run(func(o *controller.Options) { o.Log, o.WebhookAddr = logr.Discard(), addr })
	h.secret("hook", map[string]string{"token": "t0ken"})
	f := h.fleet("acme", func(f *v1alpha1.Fleet) {
		f.Spec.Interval = &metav1.Duration{Duration: time.Hour}
		f.Spec.Webhook = &v1alpha1.WebhookSpec{Type: "github", SecretRef: meta.LocalObjectReference{Name: "hook"}}
	})
	h.create(f)
	h.waitFor("acme", "Ready=True")
	url := "http://" + addr + h.get("acme").Status.WebhookPath

	for b.Loop() {
		for _, how := range []string{"reported", "polled"} {
			n := pushes
			if how == "polled" {
				n = 10
				edit(h, f, func(f *v1alpha1.Fleet) { f.Spec.Interval.Duration = time.Second })
			}
			var took []float64
			for i := range n {
				tag := fmt.Sprintf("%s-%d", how, i)
				h.release(tag)
				began := time.Now()
				if how == "reported" && deliver(b, url, "t0ken") != http.StatusOK {
					b.Fatal("the receiver does not take the delivery")
				}
				for _, w := range watches {
					w(tag)
				}
				took = append(took, time.Since(began).Seconds()*1000)
				time.Sleep(200 * time.Millisecond) // deliveries are limited to five a second
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2], "ms-"+how)
		}
		b.ReportMetric(0, "ns/op")
	}
}

// realMembers makes the members of the Fleet real API servers, and returns for each what
// waits until web has a tag.
func (h *hub) realMembers(servers []*kubetest.Server) (waits []func(tag string)) {
	h.t.Helper()
	all := api.NewConfig()
	for i, name := range []string{"ap-1", "eu-1", "us-1"} {
		raw, err := clientcmd.Load(servers[i].Kubeconfig())
		h.must(err)
		at := raw.Contexts[raw.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = raw.Clusters[at.Cluster], raw.AuthInfos[at.AuthInfo]
		all.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}

		c, err := client.NewWithWatch(servers[i].Config(), client.Options{Scheme: h.client.Scheme()})
		h.must(err)
		w, err := c.Watch(context.Background(), &appsv1.DeploymentList{}, client.InNamespace("shop"))
		h.must(err)
		h.t.Cleanup(w.Stop)
		waits = append(waits, func(tag string) {
			for e := range w.ResultChan() {
				if d, ok := e.Object.(*appsv1.Deployment); ok && d.Name == "web" && strings.HasSuffix(d.Spec.Template.Spec.Containers[0].Image, ":"+tag) {
					return
				}
			}
		})
	}
	b, err := clientcmd.Write(*all)
	h.must(err)
	h.secret("members", map[string]string{"value": string(b)})
	return waits
}
