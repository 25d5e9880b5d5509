// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// readImmediate parses what a template's own annotations hold and keep (decisions
// 51 and 52).
func (t *Template) readImmediate(c *check, annotations map[string]string) {
	suspension := heldByAnnotation(c, annotations)
	t.Holds = readHolds(c, annotations)

	keeps := false
	switch text := annotations[fleetv1alpha1.AnnotationPreserve]; text {
	case "", "false":
	case "true":
		keeps = true
	default:
		c.at(annotationPath(fleetv1alpha1.AnnotationPreserve), "annotation %s is %q, must be \"true\" or \"false\"", fleetv1alpha1.AnnotationPreserve, text)
	}

	if suspension != nil || keeps {
		t.Immediate = &Immediate{Suspension: suspension}
	}
	if keeps {
		t.Immediate.Preserve = &keeps
	}
}

// heldByAnnotation reads the annotation as the suspension that a policy would have.
func heldByAnnotation(c *check, annotations map[string]string) *policyv1alpha1.Suspension {
	text, ok := annotations[fleetv1alpha1.AnnotationHold]
	if !ok {
		return nil
	}

	var names []string
	for name := range strings.SplitSeq(text, ",") {
		names = append(names, strings.TrimSpace(name))
	}

	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case names[0] == "":
		c.at(annotationPath(fleetv1alpha1.AnnotationHold), "annotation %s is %q, must be names of clusters separated by commas, or %q", fleetv1alpha1.AnnotationHold, text, fleetv1alpha1.AllClusters)
		return nil
	case slices.Contains(names, fleetv1alpha1.AllClusters):
		everywhere := true
		return &policyv1alpha1.Suspension{Dispatching: &everywhere}
	}
	return &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: names}}
}

// Suspends returns how the template's own annotation holds a cluster. It must hold
// it.
func (t *Template) Suspends(cluster string) string {
	if t.Immediate.all() {
		return fmt.Sprintf("annotation %s holds every cluster", fleetv1alpha1.AnnotationHold)
	}
	return fmt.Sprintf("annotation %s names %s", fleetv1alpha1.AnnotationHold, cluster)
}

// Suspended returns what the template's own annotation holds: every cluster, or the
// named ones.
func (t *Template) Suspended() (everywhere bool, clusters []string) {
	if t.Immediate == nil {
		return false, nil
	}
	return t.Immediate.all(), t.Immediate.names()
}

// Note returns the note about the hold of a cluster, and whether there is one.
func (t *Template) Note(cluster string) (fleetv1alpha1.Hold, bool) {
	everywhere, _ := t.Suspended()
	return note(t.Holds, cluster, everywhere)
}
