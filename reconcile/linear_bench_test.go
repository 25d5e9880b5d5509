// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// BenchmarkBulkGrowth brings 500 and 2,000 templates to three real members, in
// turns: four times the templates should take four times as long.
func BenchmarkBulkGrowth(b *testing.B) {
	members := realMembers(b)
	for b.Loop() {
		var small, large []float64
		for round := range 3 {
			small = append(small, bulkSeconds(b, members, 1, fmt.Sprintf("small%d", round)))
			large = append(large, bulkSeconds(b, members, 4, fmt.Sprintf("large%d", round)))
		}
		b.ReportMetric(median(small), "s-on-500")
		b.ReportMetric(median(large), "s-on-2000")
		b.ReportMetric(median(large)/median(small), "ratio")
	}
}

// bulkSeconds is how long it takes to bring some times 500 templates, in
// namespaces of their own, to the members.
func bulkSeconds(b *testing.B, members map[string]*testMember, times int, prefix string) float64 {
	b.Helper()
	files := map[string]string{}
	for i := range times {
		at := fmt.Sprintf("%s%d", prefix, i)
		for name, content := range benchFiles(at, "1") {
			if strings.Contains(name, "/") && !strings.HasPrefix(name, "clusters/") {
				name = at + "/" + name
			}
			files[name] = content // the policy and the clusters are the same in all
		}
	}
	repo := sourcetest.New(b)
	repo.Commit("bulk", files)
	began := time.Now()
	loop, err := reconcile.Open(context.Background(), reconcile.Options{
		Repo: repo.Dir, Ref: "main", Path: ".", StateDir: b.TempDir(), Report: func(reconcile.Event) {},
		Members: func(c *fleet.Cluster) (member.Member, error) { return push.New(members[c.Name].config, push.Options{}) },
	})
	if err != nil {
		b.Fatal(err)
	}
	defer loop.Close()
	if err := loop.Once(context.Background()); err != nil {
		b.Fatal(err)
	}
	return time.Since(began).Seconds()
}
