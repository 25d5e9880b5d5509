// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// spread is the spread constraints of a placement.
type spread struct {
	any             bool // whether there are any
	cluster, region *limits
	// A cluster without the property cannot be counted.
	provider, zone bool
}

// limits bound the number of chosen groups.
type limits struct{ min, max int }

func newSpread(constraints []policyv1alpha1.SpreadConstraint) spread {
	s := spread{any: len(constraints) > 0}
	for _, c := range constraints {
		l := &limits{c.MinGroups, c.MaxGroups}
		if l.max == 0 {
			l.max = math.MaxInt // decision 30
		}

		switch c.SpreadByField {
		case policyv1alpha1.SpreadByCluster:
			s.cluster = l
		case policyv1alpha1.SpreadByRegion:
			s.region = l
		case policyv1alpha1.SpreadByProvider:
			s.provider = true
		case policyv1alpha1.SpreadByZone:
			s.zone = true
		}
	}

	return s
}

// spreads reports whether the constraints choose among the feasible clusters.
// They do not if static weights name the clusters (digest §4.5).
func (p *Placement) spreads() bool {
	if !p.spread.any {
		return false
	}

	r := p.ReplicaScheduling
	if !p.Divided() || r.ReplicaDivisionPreference == policyv1alpha1.Aggregated {
		return true
	}

	w := r.WeightPreference
	return w != nil && (w.DynamicWeight != "" || len(w.StaticWeightList) == 0)
}

// choose is digest §4.5. The candidates are in the order of digest §4.3.
func (t *try) choose(candidates []candidate) ([]candidate, error) {
	switch {
	case !t.spreads():
		return candidates, nil
	case t.spread.region != nil:
		return t.byRegion(candidates)
	case t.spread.cluster != nil:
		return t.byCluster(candidates)
	}

	return nil, errors.New("just support cluster and region spread constraint")
}

// inOrder sorts by digest §4.3: lower tiers first, then clusters that already
// run the workload, then those with more capacity, then by name.
func inOrder(a, b candidate) int {
	switch {
	case a.tier != b.tier:
		return cmp.Compare(a.tier, b.tier)
	case a.target != b.target:
		if a.target {
			return -1
		}
		return 1
	case a.available() != b.available():
		return cmp.Compare(b.available(), a.available())
	}

	return strings.Compare(a.Name, b.Name)
}

// score is digest §4.3: a cluster that runs the workload is preferred.
func (c *candidate) score() int64 {
	if c.target {
		return 100
	}
	return 0
}

// byCluster takes the first clusters. If they divide the replicas and have too
// little capacity, larger ones replace them, starting with the last.
func (t *try) byCluster(candidates []candidate) ([]candidate, error) {
	l := t.spread.cluster
	if len(candidates) < l.min {
		return nil, errors.New("the number of feasible clusters is less than spreadConstraint.MinGroups")
	}

	n := min(len(candidates), l.max)
	taken, rest := candidates[:n], candidates[n:]
	if !t.Divided() || !t.Workload {
		return taken, nil
	}

	holds := sum(taken, (*candidate).available)
	for i := n - 1; i >= 0 && holds < t.Replicas; i-- {
		if j := mostAvailable(rest); j >= 0 && rest[j].available() > taken[i].available() {
			holds += rest[j].available() - taken[i].available()
			taken[i], rest[j] = rest[j], taken[i]
		}
	}

	if holds < t.Replicas {
		return nil, fmt.Errorf("no enough resource when selecting %d clusters", n)
	}

	return taken, nil
}

// mostAvailable is the first of those with the most capacity, -1 if there is
// none.
func mostAvailable(candidates []candidate) int {
	best := -1
	for i := range candidates {
		if best < 0 || candidates[i].available() > candidates[best].available() {
			best = i
		}
	}
	return best
}

func sum(candidates []candidate, of func(*candidate) int64) (total int64) {
	for i := range candidates {
		total += of(&candidates[i])
	}
	return total
}

// region is the candidates of one region.
type region struct {
	name     string
	clusters []candidate
	score    int64
}

// byRegion takes the best set of regions, the best cluster of each, and then
// more of their clusters as long as the constraint allows. One cluster of every
// region comes first, so there can be more than the cluster constraint allows,
// as in Karmada.
func (t *try) byRegion(candidates []candidate) ([]candidate, error) {
	regions := t.regions(candidates)
	if len(regions) < t.spread.region.min {
		return nil, errors.New("the number of feasible region is less than spreadConstraint.MinGroups")
	}

	s := search{regions: regions, region: *t.spread.region, cluster: limits{0, math.MaxInt}}
	if t.spread.cluster != nil {
		s.cluster = *t.spread.cluster
	}

	if len(candidates) < s.cluster.min {
		return nil, errors.New("the number of clusters is less than the cluster spreadConstraint.MinGroups")
	}
	if s.cells() > maxCells {
		return nil, fmt.Errorf("the spread constraints leave too many ways to choose among %d regions with %d clusters", len(regions), len(candidates))
	}

	path := s.best()
	if path == nil {
		return nil, errors.New("the number of clusters is less than the cluster spreadConstraint.MinGroups")
	}

	var chosen, more []candidate
	for _, i := range path {
		chosen = append(chosen, regions[i].clusters[0])
		more = append(more, regions[i].clusters[1:]...)
	}

	if n := min(len(more), s.cluster.max-len(chosen)); n > 0 {
		slices.SortFunc(more, inOrder)
		chosen = append(chosen, more[:n]...)
	}

	return chosen, nil
}

// regions groups the candidates, the smallest regions first.
func (t *try) regions(candidates []candidate) []region {
	at := map[string]int{}
	var regions []region
	for _, c := range candidates {
		i, ok := at[c.Spec.Region]
		if !ok {
			i = len(regions)
			at[c.Spec.Region] = i
			regions = append(regions, region{name: c.Spec.Region})
		}
		regions[i].clusters = append(regions[i].clusters, c)
	}

	for i := range regions {
		regions[i].score = t.regionScore(regions[i].clusters)
	}

	slices.SortFunc(regions, func(a, b region) int {
		return cmp.Or(cmp.Compare(len(a.clusters), len(b.clusters)), cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
	})
	return regions
}

// scoreUnit makes capacity count for more than the preference for targets.
const scoreUnit = 1000

// regionScore rates a region: by the clusters that can run all replicas, or by
// the share of the replicas that its clusters can hold.
func (t *try) regionScore(clusters []candidate) int64 {
	if !t.Divided() {
		var valid, score int64
		for i := range clusters {
			if clusters[i].available() >= t.Replicas {
				valid++
				score += clusters[i].score()
			}
		}

		if valid == 0 {
			return 0
		}

		return scoreUnit*valid + score/valid
	}

	atLeast := t.spread.region.min
	target := t.Replicas
	if atLeast > 0 {
		target = (t.Replicas + int64(atLeast) - 1) / int64(atLeast)
	}
	if t.spread.cluster != nil {
		atLeast = max(atLeast, t.spread.cluster.min)
	}

	var holds, score int64
	visited := 0
	for i := range clusters {
		holds += clusters[i].available()
		score += clusters[i].score()
		visited++
		if visited >= atLeast && holds >= target {
			break
		}
	}

	if holds < target {
		return scoreUnit*holds + score/int64(visited)
	}

	return scoreUnit*target + score/int64(visited)
}

// search finds the best set of regions. It visits sets in the order of the
// regions, and does not extend a set that is large enough.
type search struct {
	regions         []region
	region, cluster limits
}

// found is what the best completion of a set adds to it.
type found struct {
	ok          bool
	score, size int64
}

// best is the set with the greatest score, then the most clusters, then the
// first visited; of that set the shortest prefix, by score and then name, that
// is large enough itself. It is nil if no set is large enough.
func (s *search) best() []int {
	chosen := s.complete()
	if chosen == nil {
		return nil
	}

	slices.SortFunc(chosen, func(i, j int) int {
		a, b := &s.regions[i], &s.regions[j]
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
	})

	for n := 1; n < len(chosen); n++ {
		if s.visits(chosen[:n]) {
			return chosen[:n]
		}
	}

	return chosen
}

// maxCells limits the table of a search: 250 regions of which 100 are chosen,
// with 150 clusters, fit into it.
const maxCells = 1 << 22

// most is the largest number of regions that a set can need. Every region has a
// cluster, so a set with enough of both is not extended.
func (s *search) most() int {
	return min(len(s.regions), s.region.max, max(s.region.min, s.cluster.min, 1))
}

// cells is the size of the table of complete. There are at least as many clusters
// as it asks for, so neither factor exceeds their number.
func (s *search) cells() int { return len(s.regions) * (s.most() + 1) * (s.cluster.min + 1) }

// complete works backwards from the last region: given k of the regions before
// i with n clusters in total, it finds the best completion. There are as many
// sets as subsets of the regions, but few such states, because numbers of
// clusters above the limit need not be distinguished.
func (s *search) complete() []int {
	most, enough := s.most(), s.cluster.min
	width := enough + 1
	next := make([]found, (most+1)*width)
	take := make([][]bool, len(s.regions))
	for i := len(s.regions) - 1; i >= 0; i-- {
		take[i] = make([]bool, most*width)
		score, size := s.regions[i].score, len(s.regions[i].clusters)
		now := slices.Clone(next)
		for k := range min(i+1, most) {
			for n := range width {
				with := found{ok: true}
				if after := min(n+size, enough); !s.largeEnough(k+1, after) {
					with = next[(k+1)*width+after]
				}
				with.score, with.size = with.score+score, with.size+int64(size)
				if at := k*width + n; with.ok && !now[at].beats(with) {
					now[at], take[i][at] = with, true
				}
			}
		}

		next = now
	}

	if !next[0].ok {
		return nil
	}

	var set []int
	for i, n := 0, 0; !s.largeEnough(len(set), n); i++ {
		if take[i][len(set)*width+n] {
			set = append(set, i)
			n = min(n+len(s.regions[i].clusters), enough)
		}
	}

	return set
}

// beats is false for equals: the set visited first has the earlier region.
func (f found) beats(g found) bool {
	return f.ok && (f.score > g.score || f.score == g.score && f.size > g.size)
}

func (s *search) largeEnough(regions, clusters int) bool {
	return regions >= max(s.region.min, 1) && regions <= s.region.max && clusters >= s.cluster.min
}

// visits reports whether the search visits this set: it is large enough, and
// without its last region it is not.
func (s *search) visits(set []int) bool {
	set = slices.Sorted(slices.Values(set))
	size := 0
	for n, i := range set {
		if s.largeEnough(n, size) {
			return false
		}
		size += len(s.regions[i].clusters)
	}

	return s.largeEnough(len(set), size)
}
