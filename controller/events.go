// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// recorders write events about Fleets: to the API server, and to --events-addr.
type recorders struct {
	hub   record.EventRecorder
	posts *posts // nil if nothing is posted
}

// revisionKey is the metadata of an event that has the revision.
const revisionKey = "fairlead.dev/" + eventv1.MetaRevisionKey

// event writes one event. What is posted is about the GitRepository, too, if the Fleet
// follows one: Flux's Alerts select no kind but Flux's own.
func (r recorders) event(f *v1alpha1.Fleet, revision, kind, reason, message string) {
	metadata := map[string]string{}
	if revision != "" {
		metadata[revisionKey] = revision
	}

	r.hub.AnnotatedEventf(f, metadata, kind, reason, "%s", message)
	if r.posts == nil {
		return
	}
	r.posts.add(post{f.DeepCopy(), metadata, kind, reason, message})
	from, ok := sourceOf(f)
	if !ok {
		return
	}
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: from.Namespace, Name: from.Name}}
	about.SetGroupVersionKind(gitRepositories)
	metadata = maps.Clone(metadata)
	if revision != "" {
		metadata[gitRepositories.Group+"/"+eventv1.MetaRevisionKey] = revision
	}
	r.posts.add(post{about, metadata, kind, reason, message})
}

// announceReady writes an event if the condition Ready says something else than before.
func (r recorders) announceReady(before, after *v1alpha1.Fleet) {
	was, is := conditions.Get(before, meta.ReadyCondition), conditions.Get(after, meta.ReadyCondition)
	if is == nil || is.Status == metav1.ConditionUnknown {
		return
	}
	if was != nil && was.Status == is.Status && was.Reason == is.Reason && before.Status.LastAppliedRevision == after.Status.LastAppliedRevision &&
		refusedRevision(before) == refusedRevision(after) {
		return
	}

	kind := corev1.EventTypeNormal
	if is.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeWarning
	}
	r.event(after, after.Status.LastAttemptedRevision, kind, is.Reason, is.Message)
}

func refusedRevision(f *v1alpha1.Fleet) string {
	if f.Status.Refusal == nil {
		return ""
	}
	return f.Status.Refusal.Revision
}
