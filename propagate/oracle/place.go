// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"
	"sort"
)

// placement is where a binding goes, and what decided that.
type placement struct {
	targets map[string]int64
	by      string // the placement that chose the targets
	reason  string
}

// place schedules a claimed template again if it has to be, and otherwise
// leaves it where it is (rule 15, digest §3.5). changed is whether the binding
// is not what it was.
func (st *step) place(was placement, b *Binding, changed bool) placement {
	f, p := st.now, b.policy
	wanted, workload := b.template.replicas()
	var sum int64
	again := was.by != canonical(p.placement) || was.reason != "Success"
	for c, n := range was.targets {
		sum += n
		again = again || f.clusters[c] == nil
	}
	divided := text(p.placement, "replicaScheduling", "replicaSchedulingType") == "Divided"
	switch {
	case !workload:
		again = true
	case divided:
		again = again || sum != wanted
	default:
		again = again || changed || st.concerns(at(p.placement, "clusterAffinity"))
	}
	if !again {
		return was
	}
	next := placement{targets: map[string]int64{}, by: canonical(p.placement), reason: "Success"}
	var fits []string
	for name, c := range f.clusters {
		_, target := was.targets[name]
		if !selected(at(p.placement, "clusterAffinity"), c) {
			continue
		}
		if !target && !(tolerated(list(p.placement["clusterTolerations"]), c) && st.serves(name, b.template)) {
			continue
		}
		fits = append(fits, name)
	}
	if len(fits) == 0 {
		next.reason = "NoClusterFit"
		return next
	}
	switch {
	case !workload:
		for _, c := range fits {
			next.targets[c] = 0
		}
	case !divided:
		for _, c := range fits {
			if wanted > 0 {
				next.targets[c] = wanted
			}
		}
	default:
		for c, n := range webster(wanted, f.weights(p, fits)) {
			if n > 0 {
				next.targets[c] = n
			}
		}
	}
	return next
}

// concerns reports whether a cluster that an affinity selects, or selected, is not
// what it was (digest §3.6).
func (st *step) concerns(affinity object) bool {
	for _, pair := range [][2]*fleet{{st.was, st.now}, {st.now, st.was}} {
		for name, c := range pair[0].clusters {
			if selected(affinity, c) && canonical(c) != canonical(pair[1].clusters[name]) {
				return true
			}
		}
	}
	return false
}

// serves reports whether a cluster has the kind of a template: it tells of no kinds
// at all, or of this one, or the fleet brings it the definition (rule 15).
func (st *step) serves(cluster string, t *template) bool {
	tells := list(at(st.now.clusters[cluster], "status")["apiEnablements"])
	for _, e := range tells {
		for _, r := range list(e.(object)["resources"]) {
			if text(e.(object), "groupVersion") == t.apiVersion && text(r.(object), "kind") == t.kind {
				return true
			}
		}
	}
	for key, d := range st.now.templates {
		spec := at(d.object, "spec")
		if d.kind != "CustomResourceDefinition" || text(spec, "names", "kind") != t.kind {
			continue
		}
		for _, v := range list(spec["versions"]) {
			_, placed := st.next.Bindings[key].Targets[cluster]
			if placed && text(spec, "group")+"/"+text(v.(object), "name") == t.apiVersion {
				return true
			}
		}
	}
	return len(tells) == 0
}

// lose is what happens to a binding that nobody claims: it loses clusters that
// are gone, and that is all.
func (f *fleet) lose(was placement) placement {
	next := was
	next.targets = map[string]int64{}
	for c, n := range was.targets {
		if f.clusters[c] != nil {
			next.targets[c] = n
		}
	}
	return next
}

// weights are those of a static list, the greatest that matches; the same for
// all if none does.
func (f *fleet) weights(p *policy, clusters []string) map[string]int64 {
	weights := map[string]int64{}
	for _, rule := range list(at(p.placement, "replicaScheduling", "weightPreference")["staticWeightList"]) {
		rule := rule.(object)
		for _, c := range clusters {
			if selected(at(rule, "targetCluster"), f.clusters[c]) {
				weights[c] = max(weights[c], int64(rule["weight"].(float64)))
			}
		}
	}
	if len(weights) == 0 {
		for _, c := range clusters {
			weights[c] = 1
		}
	}
	return weights
}

// webster gives one replica after the other to whoever has the greatest
// weight/(2·replicas+1); then to whoever has fewer; then by name.
func webster(replicas int64, weights map[string]int64) map[string]int64 {
	var clusters []string
	for c := range weights {
		clusters = append(clusters, c)
	}
	slices.Sort(clusters)
	seats := map[string]int64{}
	for range replicas {
		sort.SliceStable(clusters, func(i, j int) bool {
			a, b := clusters[i], clusters[j]
			x, y := weights[a]*(2*seats[b]+1), weights[b]*(2*seats[a]+1)
			if x != y {
				return x > y
			}
			if seats[a] != seats[b] {
				return seats[a] < seats[b]
			}
			return a < b
		})
		seats[clusters[0]]++
	}
	return seats
}
