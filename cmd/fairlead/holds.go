// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/propagate"
)

// What is worth saying of a hold. The day decides one of them, so it is asked
// for here and never in the fold.
const (
	findingHoldExpired     = "hold-expired"
	findingHoldUnexplained = "hold-unexplained"
)

// today is the day that a hold is measured against, everywhere the same.
func today() string { return time.Now().UTC().Format(time.DateOnly) }

// holdFindings are about the holds of head: those past their day, and those
// that base does not have and nobody explains.
func holdFindings(base, head *propagate.State, day string) (found []propagate.Finding) {
	if head.Snapshot == nil {
		return nil
	}
	for p := range head.Snapshot.Policies.Values() {
		var before *propagate.Policy
		if base.Snapshot != nil {
			before, _ = base.Snapshot.Policies.Get(p.Ref.Key())
		}
		found = append(found, expired(p, day)...)
		found = append(found, unexplained(before, p)...)
	}
	return found
}

// held is what a policy suspends: names of clusters, or AllClusters.
func held(p *propagate.Policy) []string {
	if p == nil {
		return nil
	}
	everywhere, names := p.Suspended()
	if everywhere {
		return []string{fleetv1alpha1.AllClusters}
	}
	return names
}

func expired(p *propagate.Policy, day string) (found []propagate.Finding) {
	over := map[fleetv1alpha1.Hold][]string{}
	for _, cluster := range held(p) {
		if h, ok := p.Holds[cluster]; ok && h.Until != "" && h.Until < day {
			over[h] = append(over[h], cluster)
		}
	}
	holds := slices.SortedFunc(maps.Keys(over), func(a, b fleetv1alpha1.Hold) int { return slices.Compare(over[a], over[b]) })
	for _, h := range holds {
		found = append(found, propagate.Finding{
			Code: findingHoldExpired, Level: propagate.LevelNotice, Policy: p.Ref, Clusters: over[h],
			Origin:  p.At("metadata.annotations." + fleetv1alpha1.AnnotationHolds),
			Message: fmt.Sprintf("%s still holds %s: the hold was until %s%s", p.Ref, spoken(over[h]), h.Until, noted(h)),
		})
	}
	return found
}

func unexplained(before, p *propagate.Policy) []propagate.Finding {
	old := held(before)
	if slices.Contains(old, fleetv1alpha1.AllClusters) {
		return nil // nothing is held that was not
	}
	var names []string
	for _, cluster := range held(p) {
		if _, ok := p.Note(cluster); !ok && !slices.Contains(old, cluster) {
			names = append(names, cluster)
		}
	}
	if names == nil {
		return nil
	}
	return []propagate.Finding{{
		Code: findingHoldUnexplained, Level: propagate.LevelNotice, Policy: p.Ref, Clusters: names, Origin: p.At("spec.suspension"),
		Message: fmt.Sprintf("%s holds %s, and no %s says why", p.Ref, spoken(names), fleetv1alpha1.AnnotationHolds),
	}}
}

// noted reads ` (ann: "soak", CHG-1)`.
func noted(h fleetv1alpha1.Hold) string {
	var parts []string
	who, _, _ := strings.Cut(h.By, " <")
	switch {
	case h.By != "" && h.Reason != "":
		parts = append(parts, fmt.Sprintf("%s: %q", who, h.Reason))
	case h.Reason != "":
		parts = append(parts, fmt.Sprintf("%q", h.Reason))
	case h.By != "":
		parts = append(parts, who)
	}
	if h.Ticket != "" {
		parts = append(parts, h.Ticket)
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// spoken lists clusters in a sentence.
func spoken(clusters []string) string {
	if slices.Equal(clusters, []string{fleetv1alpha1.AllClusters}) {
		return "every cluster"
	}
	return strings.Join(clusters, ", ")
}
