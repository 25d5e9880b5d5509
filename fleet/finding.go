// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/fairlead/fairlead/object"

// Severity says how much a finding matters.
type Severity string

// An error needs fixing, a caution needs a look, a notice is for information.
const (
	SeverityError   Severity = "error"
	SeverityCaution Severity = "caution"
	SeverityNotice  Severity = "notice"
)

// The codes of findings. They are part of the JSON output and do not change.
const (
	FindingRenderError      = "render-error"
	FindingFleetWideDelete  = "fleet-wide-delete"
	FindingNoPolicy         = "no-policy"
	FindingUnknownCluster   = "unknown-cluster"
	FindingNotPropagated    = "not-propagated"
	FindingDeleteSuspended  = "delete-while-suspended"
	FindingDropSuspended    = "drop-while-suspended"
	FindingOrphanOnMove     = "orphan-on-move"
	FindingPolicyHoldStays  = "policy-removed-hold-stays"
	FindingReplicaShortfall = "replica-shortfall"
	FindingReplicaExcess    = "replica-excess"
	FindingNewCluster       = "new-cluster"
	FindingClusterLeft      = "cluster-left"
	FindingBaseMoved        = "base-moved"
	FindingMergeConflict    = "merge-conflict"
	FindingOverrideFailed   = "override-failed"
	FindingOwnersDisagree   = "dependency-policy-conflict"
	FindingNoEffect         = "no-effect"
	FindingNotActivated     = "lazy-not-activated"
	FindingWaits            = "waiting-for-overrides"
	FindingUnscheduled      = "unscheduled"
	FindingInterpreter      = "interpreter-failed"
	FindingNotPlaced        = "rebalances-nothing"
	FindingFrozen           = "frozen-unit"
	FindingRefused          = "refused-everywhere"
	FindingRenamed          = "fleet-renamed"
	FindingLimitRaised      = "limit-raised"
	FindingScopeAssumed     = "scope-assumed"
	FindingPolicyRemoved    = "policy-removed"
	FindingPolicyUnmatched  = "policy-unmatched"
	FindingSelectsNothing   = "selector-matches-nothing"
	FindingConflictChanged  = "conflict-resolution-changed"
	FindingPreserveChanged  = "preserve-changed"
	FindingHoldChanged      = "hold-changed"
	FindingWavesChanged     = "waves-changed"
	FindingGateChanged      = "gate-changed"
	FindingNamespaceCreated = "namespace-created"
	FindingUnusedComponent  = "unused-component"
	FindingUnlisted         = "not-listed"
	FindingEncrypted        = "encrypted"
	FindingNotApplied       = "field-not-applied"
	FindingOldSpelling      = "old-spelling"
)

// Finding tells a reviewer something about a commit without refusing it.
type Finding struct {
	Code     string
	Severity Severity
	Message  string
	Object   object.ID
	Clusters []string
	Policy   PolicyRef
	Origin   Origin
	// Trailer is the commit message line that confirms a commit which the guard
	// stopped.
	Trailer string
}

// String reads "file:line: message".
func (f Finding) String() string { return Problem{f.Origin, f.Message}.Error() }
