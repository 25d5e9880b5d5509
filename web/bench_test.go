// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/web"
)

// benchFleet is a repository with templates in 20 namespaces and clusters in 8 regions. Of
// each namespace a few templates are held, and each template goes to some of the clusters:
// at most on.
func benchFleet(b *testing.B, clusters, templates, on int) *sourcetest.Repo {
	b.Helper()
	const namespaces = 20
	files := map[string]string{}
	var names []string
	for i := range clusters {
		name := fmt.Sprintf("cluster-%03d", i)
		names = append(names, name)
		files["clusters/"+name+".yaml"] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata:\n  name: %s\nspec: {syncMode: Push, region: region-%d}\n", name, i%8)
	}
	on = min(on, clusters)
	for i := range namespaces {
		first := i * on % (clusters - on + 1)
		where := strings.Join(names[first:first+on], ", ")
		policy := "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: %s, namespace: ns-%02d}\nspec:\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, %s}]\n  placement: {clusterAffinity: {clusterNames: [%s]}}\n%s"
		files[fmt.Sprintf("ns-%02d/policy.yaml", i)] = fmt.Sprintf(policy, "all", i, "labelSelector: {matchLabels: {held: \"no\"}}", where, "")
		files[fmt.Sprintf("ns-%02d/held.yaml", i)] = fmt.Sprintf(policy, "held", i, "labelSelector: {matchLabels: {held: \"yes\"}}", where, "  suspension: {dispatchingOnClusters: {clusterNames: ["+strings.Join(names[first:first+on/2], ", ")+"]}}\n")
	}
	for i := range templates {
		files[benchFile(i)] = benchTemplate(i, "1.0.0")
	}

	g := sourcetest.New(b)
	g.Commit("first", files)
	return g
}

func benchFile(i int) string { return fmt.Sprintf("ns-%02d/web-%d.yaml", i%20, i) }

func benchTemplate(i int, version string) string {
	held := "no"
	if i/20%5 == 0 && i%20 < 10 {
		held = "yes"
	}
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web-%d, namespace: ns-%02d, labels: {held: %q}}\nspec:\n  replicas: 3\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - name: web\n        image: registry.example.com/web:%s\n        env: [{name: PORT, value: \"80\"}]\n", i, i%20, held, version)
}

// BenchmarkPage is the first page of 100 clusters with 300 templates, and of 1,000 clusters
// with 10,000 templates, after a commit and again: how long it takes and how much is sent.
// The memory is what it takes in a process whose loop has folded the same, and of that the
// part that was made to be shown.
func BenchmarkPage(b *testing.B) {
	for _, size := range []struct{ clusters, templates, on int }{{100, 300, 100}, {1_000, 10_000, 50}} {
		b.Run(fmt.Sprintf("%dx%d", size.clusters, size.templates), func(b *testing.B) {
			g := benchFleet(b, size.clusters, size.templates, size.on)
			for i := range 20 {
				g.Commit(fmt.Sprintf("web-%d 2.0.%d", i, i), map[string]string{benchFile(i): benchTemplate(i, fmt.Sprintf("2.0.%d", i))})
			}
			for b.Loop() {
				loop := benchKnown(b, g.Dir)
				without := heap()
				s := open(b, g.Dir, func(o *web.Options) { o.Fleet.Known = func() *history.Known { return loop } })
				s.follow(g)
				page := benchGet(b, s, "/", "first")
				b.ReportMetric(float64(page)/1024, "KiB-first")
				with := heap()
				b.ReportMetric((with-without)/(1<<20), "MiB-above-loop")
				s.Forget()
				b.ReportMetric((with-heap())/(1<<20), "MiB-page")
				benchGet(b, s, "/", "counted")
				benchGet(b, s, "/", "again")
				benchGet(b, s, "/?show=held", "held")
				benchGet(b, s, "/?page=2&show=all", "page-2")
				benchGet(b, s, "/templates/deployment.apps/ns-00/web-0", "template")
				benchGet(b, s, "/clusters/cluster-000", "cluster")
				benchGet(b, s, "/holds", "holds")
				benchGet(b, s, "/timeline", "timeline")
				benchGet(b, s, "/?at=HEAD~13", "travel")
				benchGet(b, s, "/?at=HEAD~13&show=all", "travel-again")
			}
		})
	}
}

// BenchmarkPageSlope takes the time of the first page after a commit of one file, over
// decades of one size, and of the same page again, and reports the exponents with which
// they grow: 0 is not at all, 1 as much.
func BenchmarkPageSlope(b *testing.B) {
	for _, s := range []struct {
		what  string
		sizes [3][3]int // clusters, templates, clusters of a template
	}{
		{"templates", [3][3]int{{100, 100, 10}, {100, 1_000, 10}, {100, 10_000, 10}}},
		{"clusters", [3][3]int{{10, 100, 10}, {100, 100, 10}, {1_000, 100, 10}}},
		{"works", [3][3]int{{1_000, 100, 10}, {1_000, 100, 100}, {1_000, 100, 1_000}}},
	} {
		b.Run(s.what, func(b *testing.B) {
			for b.Loop() {
				var first, again [3]float64
				for i, n := range s.sizes {
					first[i], again[i] = pageSlope(b, n[0], n[1], n[2])
					b.ReportMetric(first[i]*1000, fmt.Sprintf("ms-first-%d", i+1))
					b.ReportMetric(again[i]*1000, fmt.Sprintf("ms-again-%d", i+1))
				}
				b.ReportMetric(math.Log10(first[2]/first[0])/2, "exponent-first")
				b.ReportMetric(math.Log10(again[2]/again[0])/2, "exponent-again")
			}
		})
	}
}

// pageSlope is the shortest of some times of the page after a commit, and of it again.
func pageSlope(b *testing.B, clusters, templates, on int) (first, again float64) {
	b.Helper()
	g := benchFleet(b, clusters, templates, on)
	s := open(b, g.Dir)
	first, again = math.Inf(1), math.Inf(1)
	for i := range 7 {
		g.Commit("web-1 again", map[string]string{benchFile(1): benchTemplate(1, fmt.Sprintf("2.0.%d", i))})
		s.follow(g)
		for _, least := range []*float64{&first, &again} {
			began := time.Now()
			if r := s.get("/", "Accept-Encoding", "gzip"); r.Code != http.StatusOK {
				b.Fatal(r.Code)
			}
			*least = min(*least, time.Since(began).Seconds())
		}
	}
	return first, again
}

// benchKnown is the state of a loop.
func benchKnown(b *testing.B, dir string) *history.Known {
	b.Helper()
	repo, err := source.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	head, err := repo.Resolve("main")
	if err != nil {
		b.Fatal(err)
	}
	h := history.New(repo, ".")
	state, err := h.At(head)
	if err != nil {
		b.Fatal(err)
	}
	return h.Known(state)
}

// benchGet reports how long a page takes, and returns how much is sent.
func benchGet(b *testing.B, s *site, path, name string) int {
	b.Helper()
	began := time.Now()
	r := s.get(path, "Accept-Encoding", "gzip")
	b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "ms-"+name)
	if r.Code != http.StatusOK {
		b.Fatalf("%s: %d %s", path, r.Code, r.Body)
	}
	return r.Body.Len()
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkTravel is a history of 10,000 commits on 300 templates and 100 clusters: how long
// it takes to begin, and to go to commits all over it.
func BenchmarkTravel(b *testing.B) {
	const commits = 10_000
	g := benchFleet(b, 100, 300, 100)
	var in strings.Builder
	for i := range commits {
		from := ""
		if i == 0 {
			from = "from refs/heads/main^0\n"
		}
		n, message := i*7%300, fmt.Sprintf("web-%d 3.0.%d", i*7%300, i)
		text := benchTemplate(n, fmt.Sprintf("3.0.%d", i))
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter Ada <ada@example.com> %d +0000\ndata %d\n%s\n%sM 100644 inline %s\ndata %d\n%s\n", 1767300000+i*60, len(message), message, from, benchFile(n), len(text), text)
	}
	g.GitIn(g.Dir, in.String(), "fast-import", "--quiet")
	for b.Loop() {
		before := heap()
		began := time.Now()
		s := open(b, g.Dir)
		s.follow(g)
		b.ReportMetric(time.Since(began).Seconds(), "s-begin")
		b.ReportMetric((heap()-before)/(1<<20), "MiB-after")
		worst := time.Duration(0)
		for i := range 12 {
			began := time.Now()
			path := fmt.Sprintf("/?at=HEAD~%d", 7+i*831)
			if r := s.get(path); r.Code != http.StatusOK {
				b.Fatalf("%s: %d %s", path, r.Code, r.Body)
			}
			worst = max(worst, time.Since(began))
		}
		b.ReportMetric(float64(worst.Milliseconds()), "ms-worst-travel")
		benchGet(b, s, "/timeline", "timeline")
		benchGet(b, s, "/templates/deployment.apps/ns-00/web-0", "template")
		benchGet(b, s, "/holds", "holds")
	}
}
