// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const (
	benchDeployments = 250
	benchConfigMaps  = 250
	benchNamespaces  = 5
	benchParallel    = 16 // requests in flight to one member, ours and the bare loop's
	benchRounds      = 9
)

// BenchmarkBulk brings 500 templates to three real members, 1,500 objects and
// the namespaces, and compares that with a bare loop of the same server-side
// applies at the same concurrency in the same run. Ours counts everything from
// reading the commit to the last acknowledgement.
func BenchmarkBulk(b *testing.B) {
	members := realMembers(b)
	// The collector is as calm as the program has it, for both.
	calm := make([]byte, 32<<20)
	defer runtime.KeepAlive(calm)
	for b.Loop() {
		var ours, bare []float64
		var requests, works int
		for round := range benchRounds {
			fleet := newBenchFleet(b, members, fmt.Sprintf("r%d", round))
			if round%2 == 0 {
				ours = append(ours, fleet.ours(b))
				bare = append(bare, fleet.bare(b))
			} else {
				bare = append(bare, fleet.bare(b))
				ours = append(ours, fleet.ours(b))
			}
			n, w := fleet.update(b)
			requests, works = requests+n, works+w
		}
		o, r := median(ours), median(bare)
		b.ReportMetric(o, "ours-objects/s")
		b.ReportMetric(r, "bare-objects/s")
		b.ReportMetric(o/r, "ratio")
		b.ReportMetric(0.97, "ratio-limit")
		b.ReportMetric(float64(requests)/float64(works), "requests/changed-work")
	}
}

// BenchmarkMove edits one policy so that 500 templates leave one of three real
// members for the other two, from the commit to the last acknowledgement.
func BenchmarkMove(b *testing.B) {
	members := realMembers(b)
	for b.Loop() {
		var took []float64
		for round := range benchRounds {
			fleet := newBenchFleet(b, members, fmt.Sprintf("move%d", round))
			fleet.ours(b)
			policy := benchFiles(fleet.prefix, "1")["policy.yaml"]
			fleet.repo.Commit("leave "+names[2], map[string]string{
				// The namespaces stay: their deletion would want a confirmation.
				"policy.yaml": strings.NewReplacer("  placement:\n", "  placement:\n    clusterAffinity: {exclude: ["+names[2]+"]}\n", namespaceSelector, "").Replace(policy) +
					"---\napiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: namespaces}\nspec:\n  resourceSelectors:\n" + namespaceSelector,
				"fairlead.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: 100%}\n",
			})
			began := time.Now()
			if err := fleet.loop.Once(context.Background()); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began).Seconds())
			if err := fleet.loop.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(median(took), "s/move")
	}
}

// benchFleet is a fleet of 500 templates in namespaces of its own.
type benchFleet struct {
	members map[string]*testMember
	prefix  string
	repo    *sourcetest.Repo
	loop    *reconcile.Loop
}

func newBenchFleet(b *testing.B, members map[string]*testMember, prefix string) *benchFleet {
	b.Helper()
	f := &benchFleet{members: members, prefix: prefix, repo: sourcetest.New(b)}
	f.repo.Commit("bulk", benchFiles(prefix, "1"))
	return f
}

const namespaceSelector = "  - {apiVersion: v1, kind: Namespace}\n"

func benchFiles(prefix, version string) map[string]string {
	files := map[string]string{}
	for _, name := range names {
		files["clusters/"+name+".yaml"] = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {syncMode: Push}\n"
	}
	files["policy.yaml"] = `apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment}
  - {apiVersion: v1, kind: ConfigMap}
` + namespaceSelector + `  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
`
	payload := strings.Repeat("x", 1024)
	for i := range benchNamespaces {
		files[fmt.Sprintf("namespaces/%d.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-%d}\n", prefix, i)
	}
	for i := range benchDeployments {
		files[fmt.Sprintf("deployments/%03d.yaml", i)] = fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%03[1]d, namespace: %[2]s-%[3]d, labels: {app: web-%03[1]d}}
spec:
  replicas: 9
  selector: {matchLabels: {app: web-%03[1]d}}
  template:
    metadata: {labels: {app: web-%03[1]d}}
    spec:
      containers:
      - name: web
        image: registry.example.com/web:%[4]s
        ports: [{name: http, containerPort: 8080}]
        env: [{name: LEVEL, value: info}]
        resources: {requests: {cpu: 100m, memory: 64Mi}}
`, i, prefix, i%benchNamespaces, version)
	}
	for i := range benchConfigMaps {
		files[fmt.Sprintf("configmaps/%03d.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-%03d, namespace: %s-%d}\ndata: {version: %q, payload: %s}\n", i, prefix, i%benchNamespaces, version, payload)
	}
	return files
}

// ours is how many objects a second the loop applies.
func (f *benchFleet) ours(b *testing.B) float64 {
	b.Helper()
	state := b.TempDir()
	began := time.Now()
	loop, err := reconcile.Open(context.Background(), reconcile.Options{
		Repo: f.repo.Dir, Ref: "main", Path: ".", StateDir: state, Report: func(reconcile.Event) {},
		Members: func(c *fleet.Cluster) (member.Member, error) {
			return push.New(f.members[c.Name].counted(), push.Options{})
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := loop.Once(context.Background()); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	f.loop = loop
	for _, m := range f.members {
		m.reset()
	}
	return float64(f.objects()) / took.Seconds()
}

func (f *benchFleet) objects() int {
	return len(names) * (benchDeployments + benchConfigMaps + benchNamespaces)
}

// update changes every ConfigMap and counts the requests that it takes.
func (f *benchFleet) update(b *testing.B) (requests, works int) {
	b.Helper()
	files := map[string]string{}
	for name, content := range benchFiles(f.prefix, "2") {
		if strings.HasPrefix(name, "configmaps/") {
			files[name] = content
		}
	}
	f.repo.Commit("update", files)
	if err := f.loop.Once(context.Background()); err != nil {
		b.Fatal(err)
	}
	for _, m := range f.members {
		requests += len(m.taken())
	}
	if err := f.loop.Close(); err != nil {
		b.Fatal(err)
	}
	return requests, len(names) * benchConfigMaps
}

// bare is how many objects a second a plain loop applies: the same manifests
// in other namespaces, encoded beforehand.
func (f *benchFleet) bare(b *testing.B) float64 {
	b.Helper()
	first, rest := f.bareRequests(b)
	began := time.Now()
	var done sync.WaitGroup
	for _, name := range names {
		done.Go(func() {
			send(b, f.members[name].config, first[name])
			send(b, f.members[name].config, rest[name])
		})
	}
	done.Wait()
	return float64(f.objects()) / time.Since(began).Seconds()
}

type bareRequest struct {
	path string
	body []byte
}

// bareRequests are the namespaces, then all the rest, by cluster.
func (f *benchFleet) bareRequests(b *testing.B) (first, rest map[string][]bareRequest) {
	b.Helper()
	repo := sourcetest.New(b)
	repo.Commit("bare", benchFiles("bare-"+f.prefix, "1"))
	opened, err := history.OpenRepo(context.Background(), repo.Dir, "", source.Auth{})
	if err != nil {
		b.Fatal(err)
	}
	head, err := opened.Resolve("main")
	if err != nil {
		b.Fatal(err)
	}
	state, err := history.New(opened, ".").At(head)
	if err != nil {
		b.Fatal(err)
	}
	first, rest = map[string][]bareRequest{}, map[string][]bareRequest{}
	for binding := range state.Bindings.Values() {
		for _, w := range binding.Works {
			body, err := json.Marshal(state.Manifest(binding.ID, w.Want))
			if err != nil {
				b.Fatal(err)
			}
			into := rest
			path := "/api/v1/namespaces/" + binding.Namespace + "/configmaps/" + binding.Name
			switch binding.Kind {
			case "Namespace":
				path, into = "/api/v1/namespaces/"+binding.Name, first
			case "Deployment":
				path = "/apis/apps/v1/namespaces/" + binding.Namespace + "/deployments/" + binding.Name
			}
			into[w.Cluster] = append(into[w.Cluster], bareRequest{path, body})
		}
	}
	return first, rest
}

func send(b *testing.B, config *rest.Config, requests []bareRequest) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		b.Error(err)
		return
	}
	queue := make(chan bareRequest)
	var done sync.WaitGroup
	for range benchParallel {
		done.Go(func() {
			for r := range queue {
				if err := apply(client, config.Host, r); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for _, r := range requests {
		queue <- r
	}
	close(queue)
	done.Wait()
}

func apply(client *http.Client, host string, r bareRequest) error {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	request, err := http.NewRequest(http.MethodPatch, strings.TrimSuffix(host, "/")+r.path+"?fieldManager=fairlead&force=true", bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/apply-patch+yaml")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s: %s %s", r.path, response.Status, answer)
	}
	return nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// The cost of a commit follows what it changes: one template of many is one
// render, one PATCH per cluster, and nothing else.
func TestCostFollowsTheChange(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("bulk", benchFiles("bulk", "1"))
	l := w.open()
	defer l.Close()
	if err := l.Once(context.Background()); err != nil {
		t.Fatal(err, w.said())
	}
	for _, m := range w.members {
		m.reset()
	}
	for name, content := range benchFiles("bulk", "2") {
		if name == "configmaps/007.yaml" {
			w.repo.Commit("one of five hundred", map[string]string{name: content})
		}
	}
	renders := l.Renders()
	if err := l.Once(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := l.Renders() - renders; got != 1 {
		t.Errorf("%d units were rendered for one file", got)
	}
	for _, m := range w.members {
		if got := m.taken(); len(got) != 1 || got[0] != "PATCH /api/v1/namespaces/bulk-2/configmaps/config-007" {
			t.Errorf("%s was sent %q", m.name, got)
		}
	}
	w.repo.Commit("words", map[string]string{"README.md": "words"})
	renders = l.Renders()
	if err := l.Once(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, m := range w.members {
		if got := m.taken(); len(got) != 0 || l.Renders() != renders {
			t.Errorf("an unrelated commit: %s was sent %q, %d renders", m.name, got, l.Renders()-renders)
		}
	}
	if _, err := os.Stat(filepath.Join(w.state, "checkpoint.db")); err != nil {
		t.Error(err)
	}
}
