// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"encoding/json"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// scales reports whether the kind has the subresource scale.
func (k *kind) scales() bool {
	switch k.Kind {
	case "Deployment", "ReplicaSet", "StatefulSet":
		return k.Group == "apps"
	}
	return k.Kind == "ReplicationController" && k.Group == ""
}

// scale serves the subresource by which autoscalers and kubectl change
// nothing but replicas.
func (c *call) scale(w http.ResponseWriter) {
	o, err := c.s.get(c.kind, c.namespace, c.name)
	if err == nil && c.r.Method != http.MethodGet {
		o, err = c.rescale()
	}
	if err != nil {
		refuse(w, err)
		return
	}
	send(w, http.StatusOK, scaleOf(o.decoded()))
}

func scaleOf(u *unstructured.Unstructured) *autoscalingv1.Scale {
	replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	have, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas")
	match, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: "autoscaling/v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(), CreationTimestamp: u.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(replicas)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(have), Selector: labels.Set(match).String()},
	}
}

func (c *call) rescale() (*stored, error) {
	raw, err := c.body()
	if err != nil {
		return nil, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	live := c.s.objects[c.groupResource()][key(c.namespace, c.name)]
	if live == nil {
		return nil, apierrors.NewNotFound(c.groupResource(), c.name)
	}
	if c.r.Method == http.MethodPatch {
		was, err := json.Marshal(scaleOf(live.decoded()))
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(c.r.Header.Get("Content-Type"), "application/json-patch") {
			patch, patchErr := jsonpatch.DecodePatch(raw)
			if patchErr != nil {
				return nil, apierrors.NewBadRequest(patchErr.Error())
			}
			raw, err = patch.Apply(was)
		} else {
			raw, err = jsonpatch.MergePatch(was, raw)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	sent, err := c.decode(raw)
	if err != nil {
		return nil, err
	}
	replicas, ok, err := unstructured.NestedInt64(sent.Object, "spec", "replicas")
	if err != nil || !ok {
		return nil, apierrors.NewBadRequest("spec.replicas is not a number")
	}
	now := live.decoded()
	if err := unstructured.SetNestedField(now.Object, replicas, "spec", "replicas"); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	now.SetResourceVersion(sent.GetResourceVersion())
	return c.write(live, now, c.tracked)
}
