// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FleetStatus is what the controller has observed. Revisions are BRANCH@sha1:COMMIT.
type FleetStatus struct {
	// ObservedGeneration is the generation that was reconciled last, or that is stalled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, always; Reconciling and Stalled, while they are True; Held, while a
	// suspension keeps something back; and with --enable-sharding Dispatching.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// LastHandledReconcileAt is the last value of the annotation
	// reconcile.fluxcd.io/requestedAt that was handled.
	fluxmeta.ReconcileRequestStatus `json:",inline"`
	// LastAttemptedRevision is the head of the branch when it was last read.
	// +optional
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`
	// LastAppliedRevision is what every cluster that is not held back has in full.
	// +optional
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	// Clusters counts the clusters by state.
	// +optional
	Clusters *ClusterCounts `json:"clusters,omitempty"`
	// Works counts the works by what keeps them back.
	// +optional
	Works *WorkCounts `json:"works,omitempty"`
	// Refusal is why the head is not the fleet's commit.
	// +optional
	Refusal *RefusalStatus `json:"refusal,omitempty"`
	// History has the last five revisions that were applied, the newest first.
	// +optional
	History fluxmeta.History `json:"history,omitempty"`
	// Shards are the parts of the fleet that replicas share, each as its holder has seen it.
	// Without --enable-sharding there are none.
	// +listType=map
	// +listMapKey=name
	// +optional
	Shards []ShardStatus `json:"shards,omitempty"`
	// Members are the clusters of the shards: all of a fleet with up to 500, otherwise some of
	// those that do not have everything.
	// +listType=map
	// +listMapKey=name
	// +optional
	Members []MemberStatus `json:"members,omitempty"`
	// WebhookPath is the path of the receiver for spec.webhook.
	// +optional
	WebhookPath string `json:"webhookPath,omitempty"`
}

// ShardStatus is a part of the fleet's clusters. Its field manager is fairlead-shard-NAME,
// whichever replica holds it.
type ShardStatus struct {
	// Name is the number of the shard: "07".
	Name string `json:"name"`
	// Holder is the replica that dispatches to the clusters; empty if none does. Then all of
	// them are unknown.
	// +optional
	Holder string `json:"holder,omitempty"`
	// Commit is the accepted one that the clusters are compared with.
	// +optional
	Commit string `json:"commit,omitempty"`
	// Clusters counts those of the shard, and the rest of them by state.
	Clusters   int `json:"clusters"`
	Current    int `json:"current"`
	InProgress int `json:"inProgress"`
	Held       int `json:"held"`
	Pending    int `json:"pending"`
	Failed     int `json:"failed"`
	Unknown    int `json:"unknown"`
	// ObservedAt is when that was seen.
	ObservedAt metav1.Time `json:"observedAt"`
}

// MemberStatus is a cluster of a shard.
type MemberStatus struct {
	Name string `json:"name"`
	// Shard is the number of its shard: "07".
	Shard string `json:"shard"`
	// State is unknown, failed, in-progress, pending, held or current.
	State string `json:"state"`
	// Message is why it does not have everything.
	// +optional
	Message string `json:"message,omitempty"`
}

// ClusterCounts counts clusters. A cluster is in one state, the first that it is in of
// unknown, failed, in progress, pending, held and current.
type ClusterCounts struct {
	Total int `json:"total"`
	// Current have everything.
	Current int `json:"current"`
	// InProgress are being sent what they lack.
	InProgress int `json:"inProgress"`
	// Held have everything but what a suspension keeps back.
	Held int `json:"held"`
	// Pending were never reached.
	Pending int `json:"pending"`
	// Failed refuse something, or cannot be told.
	Failed int `json:"failed"`
	// Unknown do not answer.
	Unknown int `json:"unknown"`
	// Summary reads "10/12": those that have everything that is not held, and all.
	Summary string `json:"summary"`
}

// WorkCounts counts works: one object on one cluster each.
type WorkCounts struct {
	Total int `json:"total"`
	// Held are suspended, and differ from what git wants.
	Held int `json:"held"`
	// Deferred wait until their template changes.
	Deferred int `json:"deferred"`
	// Blocked cannot be made, for a reason that git has.
	Blocked int `json:"blocked"`
}

// RefusalStatus is why the head is not the fleet's commit.
type RefusalStatus struct {
	// Revision that is refused, or awaits confirmation.
	Revision string `json:"revision"`
	// Reason is CommitRefused or ConfirmationRequired.
	Reason string `json:"reason"`
	// Message has a file and a line where they are known.
	Message string `json:"message"`
	// Trailer is the line of a commit message that confirms it.
	// +optional
	Trailer string `json:"trailer,omitempty"`
}

// GetConditions returns the conditions.
func (f *Fleet) GetConditions() []metav1.Condition { return f.Status.Conditions }

// SetConditions replaces the conditions.
func (f *Fleet) SetConditions(conditions []metav1.Condition) { f.Status.Conditions = conditions }
