// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// latencyCommits is how many commits a median is of.
const latencyCommits = 50

// BenchmarkLatency changes one line of one of 500 templates, and takes the time
// from the commit being on its branch to all three real members having
// acknowledged it: reading or fetching git, folding, keeping, sending. The
// round begins when the commit is there, so the interval is not in it. Every
// second commit is of a file outside the fleet: it costs no render, and no
// request. The aim is 74 ms, and 20 where it is fetched.
func BenchmarkLatency(b *testing.B) {
	members := realMembers(b)
	limits := map[string]float64{"local": 74, "fetched": 20}
	for _, from := range []string{"local", "fetched"} {
		b.Run(from, func(b *testing.B) {
			for b.Loop() {
				took, unrelated := latency(b, members, from)
				slices.Sort(took)
				b.ReportMetric(median(took), "ms-median")
				b.ReportMetric(limits[from], "ms-limit")
				b.ReportMetric(took[len(took)*95/100], "ms-p95")
				b.ReportMetric(median(unrelated), "ms-unrelated")
			}
		})
	}
}

func latency(b *testing.B, members map[string]*testMember, from string) (took, unrelated []float64) {
	b.Helper()
	repo := sourcetest.New(b)
	repo.Commit("bulk", benchFiles("latency-"+from, "0"))
	address := repo.Dir
	if from == "fetched" {
		address = serveGit(b, repo)
	}
	loop, err := reconcile.Open(context.Background(), reconcile.Options{
		Repo: address, Ref: "main", Path: ".", StateDir: b.TempDir(), Report: func(reconcile.Event) {}, Watch: true,
		Members: func(c *fleet.Cluster) (member.Member, error) {
			return push.New(members[c.Name].counted(), push.Options{})
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer loop.Close()
	once := func() (ms float64, requests []string, renders int) {
		before := loop.Renders()
		began := time.Now()
		if err := loop.Once(context.Background()); err != nil {
			b.Fatal(err)
		}
		ms = time.Since(began).Seconds() * 1000
		for _, name := range names {
			for _, r := range members[name].taken() {
				requests = append(requests, name+" "+r)
			}
		}
		return ms, requests, loop.Renders() - before
	}
	once()
	time.Sleep(time.Second) // the watches begin
	once()
	for n := 1; n <= latencyCommits; n++ {
		name := fmt.Sprintf("deployments/%03d.yaml", n*7%benchDeployments)
		text := benchFiles("latency-"+from, "0")[name]
		repo.Commit("one line", map[string]string{name: strings.Replace(text, "web:0", fmt.Sprint("web:", n), 1)})
		ms, requests, renders := once()
		took = append(took, ms)
		if len(requests) != len(names) || renders != 1 || slices.ContainsFunc(requests, func(r string) bool { return !strings.Contains(r, " PATCH ") }) {
			b.Fatalf("one line is %d renders and %q", renders, requests)
		}
		repo.Commit("words", map[string]string{"README.md": fmt.Sprint(n)})
		ms, requests, renders = once()
		unrelated = append(unrelated, ms)
		if len(requests) != 0 || renders != 0 {
			b.Fatalf("a commit outside the fleet is %d renders and %q", renders, requests)
		}
	}
	return took, unrelated
}

// serveGit serves a repository over HTTP, and returns its address.
func serveGit(b *testing.B, repo *sourcetest.Repo) string {
	b.Helper()
	handler := &cgi.Handler{
		Path: filepath.Join(repo.Git("--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + repo.Dir, "GIT_HTTP_EXPORT_ALL=1"},
	}
	server := httptest.NewServer(handler)
	b.Cleanup(server.Close)
	return server.URL + "/.git"
}
