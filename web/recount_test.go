// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// counting is a repository with the state of each of its commits and what they did.
type counting struct {
	t      *testing.T
	git    *sourcetest.Repo
	repo   *source.Repo
	folds  *history.History
	log    *history.Log
	states []propagate.State
}

func newCounting(t *testing.T, files map[string]string) *counting {
	g := sourcetest.New(t)
	repo, err := source.Open(g.Dir)
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{t: t, git: g, repo: repo, folds: history.New(repo, "."), log: history.NewLog()}
	c.commit(files)
	return c
}

func (c *counting) commit(files map[string]string) {
	c.t.Helper()
	c.git.Commit("commit "+fmt.Sprint(len(c.states)), files)
	head, err := c.repo.Resolve("main")
	if err != nil {
		c.t.Fatal(err)
	}
	var before propagate.State
	if n := len(c.states); n > 0 {
		before = c.states[n-1]
	}
	commits, err := c.folds.Commits(before.Commit, head)
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = c.folds.Fold(before, commits, func(of *source.Commit, after propagate.State) error {
		c.log.Step(of, &before, &after)
		before = after
		c.states = append(c.states, after)
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// overview counts everything as of a commit.
func (c *counting) overview(i int) *overview {
	return newOverview(&c.states[i], c.states[i].Commit, c.log, nil)
}

// after counts what is another as of a commit.
func (c *counting) after(o *overview, i int) *overview {
	return o.after(&c.states[i], o.state.Commit, c.states[i].Commit, c.log, nil)
}

// dump is all that an overview has counted.
func dump(o *overview) string {
	var b strings.Builder
	fmt.Fprintln(&b, "all", o.total)
	for _, g := range o.groups {
		fmt.Fprintln(&b, g.Name, g.tally, g.waves, g.clusters, g == o.byName.At(g.Name))
		for _, r := range g.rows {
			fmt.Fprintln(&b, " ", r.id, r.policy, r.follows, r.tally, r == o.rows.At(r.id.Key()))
		}
	}
	for _, c := range o.clusters {
		fmt.Fprintln(&b, c.Name, c.tally, c.wave)
	}
	for policy, n := range o.claims.All() {
		if n != 0 {
			fmt.Fprintln(&b, policy, n)
		}
	}
	for key, t := range o.held.All() {
		fmt.Fprintln(&b, key, t.Waiting, t.Held)
	}
	fmt.Fprintln(&b, o.rows.Len(), len(o.groups), o.byName.Len(), len(o.pending))
	for _, id := range slices.SortedFunc(maps.Keys(o.pending), func(a, b object.ID) int { return strings.Compare(a.Key(), b.Key()) }) {
		fmt.Fprintln(&b, id)
	}
	return b.String()
}

// An overview that is made of one of another commit, later or earlier, is the one that is
// counted from nothing.
func TestRecount(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 3
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			c := newCounting(t, countedFleet(random))
			made, some := []*overview{c.overview(0)}, 0
			for n := 1; n <= 25; n++ {
				c.commit(countedEdit(random, n))
				from := made[len(made)-1-random.IntN(min(3, len(made)))]
				o := c.after(from, n)
				if o == nil {
					made = append(made, c.overview(n))
					continue
				}
				some++
				made = append(made, o)
				if got, want := dump(o), dump(c.overview(n)); got != want {
					t.Fatalf("commit %d of %.7s:\n%s\nwant\n%s\n%s", n, from.state.Commit, got, want, c.git.Git("show"))
				}
				back := random.IntN(n)
				if o := c.after(o, back); o != nil && dump(o) != dump(made[back]) {
					t.Fatalf("back from %d to %d:\n%s\nwant\n%s", n, back, dump(o), dump(made[back]))
				}
			}
			if some < 4 {
				t.Errorf("only %d of 25 were made of another", some)
			}
		})
	}
}

// countedFleet is a fleet of six clusters, and of templates in four namespaces.
func countedFleet(random *rand.Rand) map[string]string {
	files := map[string]string{"fairlead.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: 100%}\n"}
	for i := range 6 {
		files[fmt.Sprintf("clusters/c%d.yaml", i)] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: c%d}\nspec: {syncMode: Push, region: r%d}\n", i, i%2)
	}
	for namespace := range 4 {
		files[fmt.Sprintf("p%d.yaml", namespace)] = countedPolicy(random, namespace)
		for n := range 12 {
			files[fmt.Sprintf("t%d-%d.yaml", namespace, n)] = countedTemplate(namespace, n, "0")
		}
	}
	return files
}

func countedTemplate(namespace, n int, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: t%d, namespace: ns-%d}\ndata: {v: %q}\n", n, namespace, value)
}

func countedPolicy(random *rand.Rand, namespace int) string {
	policy := fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: ns-%d}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n", namespace)
	clusters := func() string {
		var some []string
		for _, i := range random.Perm(6)[:1+random.IntN(5)] {
			some = append(some, fmt.Sprintf("c%d", i))
		}
		return strings.Join(some, ", ")
	}
	policy += "  placement: {clusterAffinity: {clusterNames: [" + clusters() + "]}}\n"
	if random.IntN(2) == 0 {
		policy += "  suspension: {dispatchingOnClusters: {clusterNames: [" + clusters() + "]}}\n"
	}
	if random.IntN(3) == 0 {
		policy += "  activationPreference: Lazy\n"
	}
	return policy
}

// countedEdit is a commit of one kind or another.
func countedEdit(random *rand.Rand, n int) map[string]string {
	namespace, files := random.IntN(5), map[string]string{} // nothing claims what is in the last one
	for range 1 + random.IntN(3) {
		template := random.IntN(14)
		file := fmt.Sprintf("t%d-%d.yaml", namespace, template)
		switch random.IntN(24) {
		case 0, 1, 2:
			files[file] = sourcetest.Delete
		case 3, 4:
			files[fmt.Sprintf("p%d.yaml", namespace%4)] = countedPolicy(random, namespace%4)
		case 7, 8:
			files["o.yaml"] = fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {name: all}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  overrideRules: [{targetCluster: {clusterNames: [c%d]}, overriders: {labelsOverrider: [{operator: add, value: {n: n%d}}]}}]\n", random.IntN(6), n)
		case 5:
			files["fairlead.yaml"] = fmt.Sprintf("apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: 100%%, waves: [{name: first, clusters: [c%d]}]}\n", random.IntN(2))
		case 6:
			i := random.IntN(6)
			files[fmt.Sprintf("clusters/c%d.yaml", i)] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: c%d}\nspec: {syncMode: Push, region: r%d}\n", i, random.IntN(3))
		default:
			files[file] = countedTemplate(namespace, template, fmt.Sprint(n))
		}
	}
	return files
}

// What is counted for the page of a commit follows what it changes, and not how many
// templates or clusters there are, nor how many of them are held.
func TestPageFollowsTheChange(t *testing.T) {
	counted := func(clusters, templates int) int {
		files := map[string]string{}
		for i := range clusters {
			files[fmt.Sprintf("clusters/c%d.yaml", i)] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: c%d}\nspec: {syncMode: Push}\n", i)
		}
		files["p.yaml"] = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: ns-0}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  suspension: {dispatchingOnClusters: {clusterNames: [c1]}}\n"
		for n := range templates {
			files[fmt.Sprintf("t%d.yaml", n)] = countedTemplate(0, n, "0")
		}
		c := newCounting(t, files)
		first := c.overview(0)
		if first.counted != templates {
			t.Errorf("the first page counts %d of %d templates", first.counted, templates)
		}
		c.commit(map[string]string{"t1.yaml": countedTemplate(0, 1, "1"), "t3.yaml": countedTemplate(0, 3, "1")})
		return c.after(first, 1).counted
	}
	for _, size := range [][2]int{{2, 10}, {2, 1_000}, {200, 10}} {
		if n := counted(size[0], size[1]); n != 2 {
			t.Errorf("with %d clusters and %d templates a commit of two has %d counted", size[0], size[1], n)
		}
	}
}
