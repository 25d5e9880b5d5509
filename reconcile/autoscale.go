// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/propagate"
)

// labelRetain on a template leaves its replicas to whoever scales it in the
// cluster.
const labelRetain = "resourcetemplate.karmada.io/retain-replicas"

// retains is whether the replicas of a work belong to an autoscaler (fold rule
// 23): its template says so, or a HorizontalPodAutoscaler that the fleet has on
// the same cluster scales it.
func (l level) retains(b *propagate.Binding, w *propagate.Work) bool {
	if b.Group != "apps" || b.Kind != "Deployment" && b.Kind != "StatefulSet" && b.Kind != "ReplicaSet" {
		return false
	}
	if w.Want.Template.Labels[labelRetain] == "true" {
		return true
	}
	for _, scaler := range l.scalers.of(l.state, b.ID) {
		there := scaler.Work(w.Cluster)
		if there == nil {
			continue
		}
		if t := released(scaler, there); t != nil && targetOf(t) == b.ID {
			return true
		}
	}
	return false
}

// scalers are the autoscalers' bindings of a level by what they scale. A
// namespace is looked at when the first of its workloads is asked for.
type scalers struct {
	mu    sync.Mutex
	known map[string]map[propagate.ID][]*propagate.Binding // by namespace
}

func (s *scalers) of(state *propagate.State, id propagate.ID) []*propagate.Binding {
	s.mu.Lock()
	defer s.mu.Unlock()
	targets, ok := s.known[id.Namespace]
	if !ok {
		targets = scalersIn(state, id.Namespace)
		if s.known == nil {
			s.known = map[string]map[propagate.ID][]*propagate.Binding{}
		}
		s.known[id.Namespace] = targets
	}
	return targets[id]
}

func scalersIn(state *propagate.State, namespace string) map[propagate.ID][]*propagate.Binding {
	targets := map[propagate.ID][]*propagate.Binding{}
	first := propagate.ID{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Namespace: namespace}.Key()
	for key, b := range state.Bindings.From(first) {
		if !strings.HasPrefix(key, first) {
			break
		}
		seen := map[*propagate.Template]bool{}
		for i := range b.Works {
			t := released(b, &b.Works[i])
			if t == nil || seen[t] {
				continue
			}
			seen[t] = true
			target := targetOf(t)
			targets[target] = append(targets[target], b)
		}
	}
	return targets
}

// released is the template that a cluster may run, nil when there is none. A
// restored state has no content of what is held; what is in effect stands in.
func released(b *propagate.Binding, w *propagate.Work) *propagate.Template {
	switch {
	case w.Released == nil:
		return nil
	case w.Released.Template == nil:
		return b.Active.Template
	}
	return w.Released.Template
}

// targetOf reads spec.scaleTargetRef; its version makes no other object of it.
func targetOf(t *propagate.Template) propagate.ID {
	ref, _, _ := unstructured.NestedStringMap(t.Object, "spec", "scaleTargetRef")
	gvk := schema.FromAPIVersionAndKind(ref["apiVersion"], ref["kind"])
	return propagate.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: t.Namespace, Name: ref["name"]}
}
