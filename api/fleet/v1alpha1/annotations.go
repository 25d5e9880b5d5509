// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Annotations of a policy. Holds and waves do not influence where a template
// goes: an edit of them alone changes nothing.
const (
	// AnnotationActivate forces a policy into effect when its value changes.
	AnnotationActivate = "fairlead.dev/activate"
	// AnnotationHolds is who holds a cluster, why and until when: a map of Hold by
	// cluster, as YAML or JSON. AllClusters stands for suspension.dispatching.
	AnnotationHolds = "fairlead.dev/holds"
	// AnnotationWaves is the order in which clusters are promoted: a list of lists
	// of cluster names, as YAML or JSON.
	AnnotationWaves = "fairlead.dev/waves"
)

// Annotations of a template. Like suspension and preserveResourcesOnDeletion they
// act at once and are no update of it (decisions 51 and 52). AnnotationHolds can
// stand beside them.
const (
	// AnnotationHold names the clusters on which this template is held, separated by
	// commas, or AllClusters.
	AnnotationHold = "fairlead.dev/hold"
	// AnnotationPreserve is "true" where what is removed of this template is left
	// running.
	AnnotationPreserve = "fairlead.dev/preserve"
)

// AllClusters is the key of a hold on every cluster.
const AllClusters = "*"

// Hold is a note for people about a suspension.
type Hold struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Until is the last day of the hold, 2006-01-02. A hold past that day is
	// reported and stays.
	Until  string `json:"until,omitempty"`
	Ticket string `json:"ticket,omitempty"`
}
