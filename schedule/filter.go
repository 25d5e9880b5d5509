// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
)

// Reasons for rejecting a cluster, in Karmada's words (digest §4.2).
const (
	unfitAPI      = "cluster(s) did not have the API resource"
	unfitTaint    = "cluster(s) had untolerated taint {%s}"
	unfitAffinity = "cluster(s) did not match the placement cluster affinity constraint"
	unfitProvider = "cluster(s) did not have provider property"
	unfitRegion   = "cluster(s) did not have region property"
	unfitZone     = "cluster(s) did not have zones property"
	unfitEviction = "cluster(s) is in the process of eviction"
)

// candidate is a cluster that may be chosen.
type candidate struct {
	*Cluster
	tier   int   // the first of the affinities that the cluster matches
	target bool  // it already runs the workload
	had    int64 // replicas it runs
	free   int64 // additional replicas that fit; only set if needed
}

// available is the total number of replicas that fit.
func (c *candidate) available() int64 { return c.free + c.had }

// filter is digest §4.2: the clusters that one group of the placement allows.
func (t *try) filter(clusters []*Cluster) ([]candidate, error) {
	feasible := make([]candidate, 0, len(clusters))
	var why unfit
	for _, c := range clusters {
		had, target := t.previous[c.Name]
		tier, reason := t.admit(c, target)
		if reason != "" {
			why.add(reason)
			continue
		}
		feasible = append(feasible, candidate{Cluster: c, tier: tier, target: target, had: had})
	}

	if len(feasible) == 0 {
		return nil, &failure{workv1alpha2.ReasonNoClusterFit, why.text(len(clusters))}
	}

	return feasible, nil
}

// admit returns why a cluster is rejected, or its tier. A cluster that already
// runs the workload is not rejected because it no longer lists the API, nor for
// a taint that was added later.
func (t *try) admit(c *Cluster, target bool) (tier int, reason string) {
	tier, matches := t.group.tier(c, t.Workload)
	if !target {
		taint, observed := t.untolerated(c)
		t.observed = t.observed || matches && observed

		if !t.served(c) {
			// The observation was decisive only if nothing else rejects the cluster.
			t.observed = t.observed || matches && taint == ""
			return 0, unfitAPI
		}

		if taint != "" {
			return 0, taint
		}
	}

	switch {
	case !matches:
		return 0, unfitAffinity
	case t.spread.provider && c.Spec.Provider == "":
		return 0, unfitProvider
	case t.spread.region != nil && c.Spec.Region == "":
		return 0, unfitRegion
	case t.spread.zone && len(c.Spec.Zones) == 0:
		return 0, unfitZone
	case slices.Contains(t.Evicting, c.Name):
		return 0, unfitEviction
	}

	return tier, ""
}

// served is fold rule 15: a cluster that lists no APIs at all may serve any,
// and one that will receive the kind's definition serves it.
func (t *try) served(c *Cluster) bool {
	if c.apis == nil || c.apis[api{t.APIVersion, t.Kind}] {
		return true
	}
	return t.PlacesAPI != nil && t.PlacesAPI(c.Name)
}

// Tolerates reports whether a taint is tolerated, and for how many seconds
// after it was added; nil means forever. The first matching toleration counts.
func (p *Placement) Tolerates(taint *corev1.Taint) (tolerated bool, seconds *int64) {
	for i := range p.ClusterTolerations {
		if t := &p.ClusterTolerations[i]; tolerates(t, taint) {
			return true, t.TolerationSeconds
		}
	}
	return false, nil
}

// untolerated returns the reason of the first untolerated taint, "" if there is
// none, and whether that taint was observed.
func (p *Placement) untolerated(c *Cluster) (reason string, observed bool) {
	for i := range c.taints {
		if taint := &c.taints[i]; !slices.ContainsFunc(p.ClusterTolerations, func(t corev1.Toleration) bool { return tolerates(&t, &taint.Taint) }) {
			return taint.reason, taint.observed
		}
	}
	return "", false
}

// tolerates is Kubernetes' rule: an empty effect or key matches all.
func tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect:
		return false
	case t.Key != "" && t.Key != taint.Key:
		return false
	}
	return t.Operator == corev1.TolerationOpExists || t.Value == taint.Value
}

// unfit counts the rejected clusters by reason.
type unfit []struct {
	reason string
	n      int
}

func (u *unfit) add(reason string) {
	for i := range *u {
		if (*u)[i].reason == reason {
			(*u)[i].n++
			return
		}
	}

	*u = append(*u, struct {
		reason string
		n      int
	}{reason, 1})
}

// text is the message of a NoClusterFit for a number of clusters.
func (u unfit) text(clusters int) string {
	if clusters == 0 {
		return "0/0 clusters are available: no cluster exists."
	}

	var parts []string
	for _, r := range u {
		parts = append(parts, fmt.Sprintf("%d %s", r.n, r.reason))
	}

	slices.Sort(parts)
	return fmt.Sprintf("0/%d clusters are available: %s.", clusters, strings.Join(parts, ", "))
}
