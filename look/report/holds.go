// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
)

// The codes of findings about holds. One depends on the date, so they are found here
// and not in the fold.
const (
	FindingHoldExpired     = "hold-expired"
	FindingHoldUnexplained = "hold-unexplained"
)

// HoldFindings returns findings about the holds of head: those that have expired by
// now, and those that base does not have and no note explains.
func HoldFindings(base, head *propagate.State, now time.Time) (found []fleet.Finding) {
	if head.Snapshot == nil {
		return nil
	}

	day := Today(now)
	for p := range head.Snapshot.Policies.Values() {
		var before *fleet.Policy
		if base.Snapshot != nil {
			before, _ = base.Snapshot.Policies.Get(p.Ref.Key())
		}
		found = append(found, expired(p, day)...)
		found = append(found, unexplained(before, p)...)
	}

	return found
}

// Today returns the date that decides whether a hold has expired. It is in UTC, so
// that it is the same everywhere.
func Today(now time.Time) string { return now.UTC().Format(time.DateOnly) }

// Held returns what a policy suspends: names of clusters, or AllClusters.
func Held(p *fleet.Policy) []string {
	if p == nil {
		return nil
	}
	everywhere, names := p.Suspended()
	if everywhere {
		return []string{fleetv1alpha1.AllClusters}
	}
	return names
}

func expired(p *fleet.Policy, day string) (found []fleet.Finding) {
	over := map[fleetv1alpha1.Hold][]string{}
	for _, cluster := range Held(p) {
		if h, ok := p.Holds[cluster]; ok && h.Until != "" && h.Until < day {
			over[h] = append(over[h], cluster)
		}
	}

	holds := slices.SortedFunc(maps.Keys(over), func(a, b fleetv1alpha1.Hold) int { return slices.Compare(over[a], over[b]) })
	for _, h := range holds {
		found = append(found, fleet.Finding{
			Code: FindingHoldExpired, Severity: fleet.SeverityNotice, Policy: p.Ref, Clusters: over[h],
			Origin:  p.At("metadata.annotations." + fleetv1alpha1.AnnotationHolds),
			Message: fmt.Sprintf("%s still holds %s: the hold was until %s%s", p.Ref, spoken(over[h]), h.Until, noted(h)),
		})
	}

	return found
}

func unexplained(before, p *fleet.Policy) []fleet.Finding {
	old := Held(before)
	if slices.Contains(old, fleetv1alpha1.AllClusters) {
		return nil // nothing new is held
	}

	var names []string
	for _, cluster := range Held(p) {
		if _, ok := p.Note(cluster); !ok && !slices.Contains(old, cluster) {
			names = append(names, cluster)
		}
	}

	if names == nil {
		return nil
	}

	return []fleet.Finding{{
		Code: FindingHoldUnexplained, Severity: fleet.SeverityNotice, Policy: p.Ref, Clusters: names, Origin: p.At("spec.suspension"),
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

// spoken lists clusters for a sentence.
func spoken(clusters []string) string {
	if slices.Equal(clusters, []string{fleetv1alpha1.AllClusters}) {
		return "every cluster"
	}
	return strings.Join(clusters, ", ")
}
