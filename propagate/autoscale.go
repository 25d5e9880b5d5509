// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// labelRetain on a template leaves its replicas to whoever scales it in the
// cluster.
const labelRetain = "resourcetemplate.karmada.io/retain-replicas"

// Retain reports whether the replicas of a work belong to an autoscaler (fold rule
// 23): its template says so, or a HorizontalPodAutoscaler that the fleet has on
// the same cluster scales it.
func (s *Scalers) Retain(b *Binding, w *Work) bool {
	if !fleet.CanScale(b.GroupKind()) {
		return false
	}

	if w.Want.Template.Labels[labelRetain] == "true" {
		return true
	}

	for _, scaler := range s.of(b.ID) {
		there := scaler.Work(w.Cluster)
		if there == nil {
			continue
		}
		if t := releasedTemplate(scaler, there); t != nil && targetOf(t) == b.ID {
			return true
		}
	}

	return false
}

// Scalers are the bindings of autoscalers by what they scale. A namespace
// is read when the first of its workloads is looked up. Several goroutines may
// look up at once.
type Scalers struct {
	state *State

	mu    sync.Mutex
	known map[string]map[object.ID][]*Binding // by namespace
}

// NewScalers reads them off a state, which must not change.
func NewScalers(state *State) *Scalers { return &Scalers{state: state} }

func (s *Scalers) of(id object.ID) []*Binding {
	s.mu.Lock()
	defer s.mu.Unlock()

	targets, ok := s.known[id.Namespace]
	if !ok {
		targets = scalersIn(s.state, id.Namespace)
		if s.known == nil {
			s.known = map[string]map[object.ID][]*Binding{}
		}
		s.known[id.Namespace] = targets
	}
	return targets[id]
}

func scalersIn(state *State, namespace string) map[object.ID][]*Binding {
	targets := map[object.ID][]*Binding{}
	first := object.ID{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Namespace: namespace}.Key()
	for key, b := range state.Bindings.From(first) {
		if !strings.HasPrefix(key, first) {
			break
		}

		seen := map[*fleet.Template]bool{}
		for i := range b.Works {
			t := releasedTemplate(b, &b.Works[i])
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

// releasedTemplate is the template that a cluster may run, nil when there is none. A
// restored state has no content of what is held; what is in effect stands in.
func releasedTemplate(b *Binding, w *Work) *fleet.Template {
	switch {
	case w.Released == nil:
		return nil
	case w.Released.Template == nil:
		return b.Active.Template
	}
	return w.Released.Template
}

// targetOf reads spec.scaleTargetRef; its version makes no other object of it.
func targetOf(t *fleet.Template) object.ID {
	ref, _, _ := unstructured.NestedStringMap(t.Object(), "spec", "scaleTargetRef")
	gvk := schema.FromAPIVersionAndKind(ref["apiVersion"], ref["kind"])
	return object.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: t.Namespace, Name: ref["name"]}
}
