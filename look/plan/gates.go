// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
)

// codes are those of all findings that a plan can have.
var codes = []string{
	fleet.FindingRenderError, fleet.FindingFleetWideDelete, fleet.FindingNoPolicy, fleet.FindingUnknownCluster,
	fleet.FindingNotPropagated, fleet.FindingDeleteSuspended, fleet.FindingDropSuspended, fleet.FindingOrphanOnMove,
	fleet.FindingPolicyHoldStays, fleet.FindingReplicaShortfall, fleet.FindingReplicaExcess, fleet.FindingNewCluster,
	fleet.FindingClusterLeft, fleet.FindingBaseMoved, fleet.FindingMergeConflict, fleet.FindingOverrideFailed,
	fleet.FindingOwnersDisagree, fleet.FindingNoEffect, fleet.FindingNotActivated, fleet.FindingWaits,
	fleet.FindingUnscheduled, fleet.FindingInterpreter, fleet.FindingNotPlaced, fleet.FindingFrozen, fleet.FindingRefused,
	fleet.FindingRenamed, fleet.FindingLimitRaised, fleet.FindingScopeAssumed, fleet.FindingPolicyRemoved,
	fleet.FindingPolicyUnmatched, fleet.FindingSelectsNothing, fleet.FindingConflictChanged, fleet.FindingPreserveChanged,
	fleet.FindingHoldChanged, fleet.FindingWavesChanged, fleet.FindingGateChanged, fleet.FindingNamespaceCreated,
	fleet.FindingUnusedComponent, fleet.FindingUnlisted, fleet.FindingEncrypted, fleet.FindingNotApplied,
	fleet.FindingOldSpelling,
	report.FindingBaseStuck, report.FindingHoldExpired, report.FindingHoldUnexplained,
	FindingReleasedBeforeHold, FindingConfirmedHere, FindingBeginHere, FindingPositionDiffers,
}

// The words of a gate that are no code of a finding.
const (
	GateDelete  = "delete"  // an object is deleted on a cluster, as part of a move, too, and none takes its place
	GateMove    = "move"    // a cluster loses an object or replicas to another one
	GateCaution = "caution" // a finding is a caution or an error
	GateError   = "error"   // a finding is an error
)

// GateWords are those that Stops knows, sorted.
var GateWords = slices.Sorted(slices.Values(append([]string{GateDelete, GateMove, GateCaution, GateError}, codes...)))

// Stops returns which of the words apply to the plan, each with what it applies to.
func (r *Plan) Stops(words []string) (reasons []string) {
	for _, word := range slices.Compact(slices.Sorted(slices.Values(words))) {
		if n, first := r.stop(word); n > 1 {
			reasons = append(reasons, fmt.Sprintf("%s: %s and %d more", word, first, n-1))
		} else if n == 1 {
			reasons = append(reasons, word+": "+first)
		}
	}
	return reasons
}

// stop counts what a word applies to, and returns the first of it.
func (r *Plan) stop(word string) (n int, first string) {
	add := func(what string) {
		if n++; n == 1 {
			first = what
		}
	}

	_, replaced := r.replacements()
	for _, c := range r.Cells {
		switch {
		case word == GateDelete && c.Action == propagate.ActionDelete && !replaced[c.Change], word == GateMove && len(c.After) > 0:
			add(fmt.Sprintf("%s on %s", c.Object.Text(), c.Cluster))
		}
	}
	for _, f := range r.Findings {
		if f.Code == word || word == GateError && f.Severity == fleet.SeverityError || word == GateCaution && f.Severity != fleet.SeverityNotice {
			text, _, _ := strings.Cut(f.Message, "\n")
			add(text)
		}
	}
	return n, first
}

// replacements are the ids of the changes that bring generated objects in place of
// others, and of those that take the others away.
func (r *Plan) replacements() (come, gone map[string]bool) {
	come, gone = map[string]bool{}, map[string]bool{}
	for _, c := range r.Changes {
		come[c.ID], gone[c.ID] = c.Replaces != "", c.ReplacedBy != ""
	}
	return come, gone
}
