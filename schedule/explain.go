// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Cause is why a cluster is not a target.
type Cause string

// The causes, in the order in which a placement checks them.
const (
	CauseAPI      Cause = "api"      // it does not serve the kind
	CauseTaint    Cause = "taint"    // it has an untolerated taint
	CauseAffinity Cause = "affinity" // the affinity in use does not match it
	CauseProvider Cause = "provider" // it has no provider, and the placement needs one
	CauseRegion   Cause = "region"   // it has no region, and the placement needs one
	CauseZone     Cause = "zone"     // it has no zones, and the placement needs them
	CauseEviction Cause = "eviction" // the workload is being evicted from it
	CauseSpread   Cause = "spread"   // it fits, but the constraints chose others
	CauseReplicas Cause = "replicas" // it is chosen, but its share is 0
	CauseFailed   Cause = "failed"   // it fits, but the schedule fails as a whole
)

// Verdict is the decision about one cluster.
type Verdict struct {
	Cluster string
	Chosen  bool
	Count   int64 // replicas; 0 for a kind without
	// Cause and Detail say why it is not chosen. Detail refers to the cluster as
	// "it".
	Cause  Cause
	Detail string

	reason string // of the filter; "" if it passed
}

// Explain returns the decision of Schedule about every cluster, by name, and
// why. The chosen ones are Schedule's targets; if it fails, the targets that
// stay.
func (p *Placement) Explain(r Request, clusters []*Cluster) []Verdict {
	out, t := p.decide(&r, clusters)
	verdicts := make([]Verdict, 0, len(clusters))
	for _, c := range clusters {
		v := Verdict{Cluster: c.Name}
		if i := slices.IndexFunc(out.Targets, func(s Share) bool { return s.Name == c.Name }); i >= 0 {
			v.Chosen, v.Count = true, out.Targets[i].Count
		} else {
			t.explainRejected(c, &out, &v)
		}
		verdicts = append(verdicts, v)
	}

	slices.SortFunc(verdicts, func(a, b Verdict) int { return strings.Compare(a.Cluster, b.Cluster) })
	return verdicts
}

// explainRejected says why a cluster is not a target.
func (t *try) explainRejected(c *Cluster, out *Outcome, v *Verdict) {
	_, target := t.previous[c.Name]
	_, v.reason = t.admit(c, target)

	switch {
	case v.reason != "":
		v.Cause, v.Detail = t.unfit(c, v.reason)
	case out.Reason != workv1alpha2.ReasonSuccess:
		v.Cause, v.Detail = CauseFailed, out.Message
	case !slices.ContainsFunc(t.chosen, func(o candidate) bool { return o.Name == c.Name }):
		v.Cause, v.Detail = CauseSpread, "it fits, but the spread constraints chose other clusters"
	case t.Replicas == 0:
		v.Cause, v.Detail = CauseReplicas, "the template asks for no replicas"
	case t.Divided() && !t.byCapacity() && t.weights.weigh(c) == 0:
		v.Cause, v.Detail = CauseReplicas, "the static weights give it no replicas"
	default:
		v.Cause, v.Detail = CauseReplicas, fmt.Sprintf("its share of %d replicas is 0", t.Replicas)
	}
}

// unfit turns a reason of the filter into a sentence about one cluster.
func (t *try) unfit(c *Cluster, reason string) (Cause, string) {
	switch reason {
	case unfitAPI:
		return CauseAPI, fmt.Sprintf("it does not serve %s %s", t.APIVersion, t.Kind)
	case unfitAffinity:
		return CauseAffinity, t.group.misses(c, t.Workload)
	case unfitProvider:
		return CauseProvider, "it has no provider, but the placement spreads by provider"
	case unfitRegion:
		return CauseRegion, "it has no region, but the placement spreads by region"
	case unfitZone:
		return CauseZone, "it has no zones, but the placement spreads by zone"
	case unfitEviction:
		return CauseEviction, "the workload is being moved away from it"
	}

	for i := range c.taints {
		if c.taints[i].reason == reason {
			return CauseTaint, fmt.Sprintf("it has the untolerated taint %s", taintText(c.taints[i].Taint))
		}
	}

	return CauseTaint, reason
}

// misses says why no tier of the group matches a cluster.
func (g *group) misses(c *Cluster, workload bool) string {
	why := g.tiers[0].Misses(c.Cluster)
	if g.name == "" {
		return why
	}
	if workload && len(g.tiers) > 1 {
		return fmt.Sprintf("it is neither in the active affinity group %s nor in its overflow: %s", g.name, why)
	}
	return fmt.Sprintf("it is not in the active affinity group %s: %s", g.name, why)
}

// Misses says which part of the affinity does not match a cluster; "" if it
// matches.
func (a *Affinity) Misses(c *clusterv1alpha1.Cluster) string {
	switch {
	case a == nil:
		return ""
	case a.names != nil && !a.names[c.Name]:
		return "clusterNames does not list it"
	case a.exclude != nil && a.exclude[c.Name]:
		return "exclude lists it"
	case a.labels != nil && !a.labels.Matches(labels.Set(c.Labels)):
		return fmt.Sprintf("labelSelector %s does not match its labels", a.labels)
	case a.FieldSelector != nil && !matchFields(a.FieldSelector, c):
		return "fieldSelector does not match its provider, region and zones"
	}

	return ""
}

// Matches says by what the active group matches a cluster; "" without an
// affinity, which matches everything.
func (p *Placement) Matches(c *Cluster, group string) string {
	g := &p.groups[p.start(Request{Affinity: group})]
	tier, ok := g.tier(c, true)
	if !ok {
		return ""
	}

	a := g.tiers[tier]
	var by []string
	switch {
	case a == nil:
		return ""
	case a.names != nil:
		by = append(by, "clusterNames lists it")
	case a.exclude != nil:
		by = append(by, "exclude does not list it")
	}

	if a.labels != nil {
		by = append(by, fmt.Sprintf("labelSelector %s matches its labels", a.labels))
	}
	if a.FieldSelector != nil && len(a.FieldSelector.MatchExpressions) > 0 {
		by = append(by, "fieldSelector matches it")
	}
	if g.name != "" {
		by = append([]string{"affinity group " + g.name}, by...)
	}

	return strings.Join(by, ", ")
}

// Weights are the static weights of clusters by name; nil if the replicas are
// not divided by them.
func (p *Placement) Weights(clusters []*Cluster) []Share {
	if !p.Divided() || p.byCapacity() {
		return nil
	}
	chosen := make([]candidate, len(clusters))
	for i, c := range clusters {
		chosen[i].Cluster = c
	}
	return p.weights.of(chosen)
}
