// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// firstStage is what others need, and what is waited for before they are applied.
var firstStage = []string{"CustomResourceDefinition", "Namespace", "ClusterRole"}

// Install applies objects in stages, and waits until the controller is ready.
func (c *Cluster) Install(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, stage := range stages(objects) {
		for _, object := range stage {
			outcome, err := c.apply(ctx, object)
			if err != nil {
				return err
			}
			c.tell(Change, "%s %s", named(object), outcome)
		}
		for _, object := range stage {
			if err := c.served(ctx, object); err != nil {
				return err
			}
		}
	}

	c.tell(Waiting, "verifying installation")
	for _, object := range objects {
		if object.GetKind() != "StatefulSet" {
			continue
		}
		if err := c.until(ctx, func(ctx context.Context) (string, error) { return c.rollout(ctx, object) }); err != nil {
			return fmt.Errorf("%s: %w", named(object), err)
		}
		c.tell(Done, "%s: statefulset ready", object.GetName())
	}
	return nil
}

// stages splits objects, which are in order.
func stages(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	n := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return !slices.Contains(firstStage, o.GetKind()) })
	if n < 0 {
		n = len(objects)
	}
	return [][]*unstructured.Unstructured{objects[:n], objects[n:]}
}

// served waits until a definition's kind can be asked for.
func (c *Cluster) served(ctx context.Context, object *unstructured.Unstructured) error {
	if object.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	err := c.until(ctx, func(ctx context.Context) (string, error) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(object), &crd); err != nil {
			return "", err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return "", nil
			}
		}
		return "the kind is not served yet", nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", named(object), err)
	}
	return nil
}

// rollout says what a StatefulSet lacks.
func (c *Cluster) rollout(ctx context.Context, of *unstructured.Unstructured) (missing string, err error) {
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(of.GroupVersionKind())
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(of), set); err != nil {
		return "", err
	}

	number := func(fields ...string) int64 {
		n, _, _ := unstructured.NestedInt64(set.Object, fields...)
		return n
	}
	want, updated, ready := number("spec", "replicas"), number("status", "updatedReplicas"), number("status", "readyReplicas")
	switch {
	case number("status", "observedGeneration") < set.GetGeneration():
		return "the StatefulSet has not been observed yet", nil
	case updated < want:
		return fmt.Sprintf("%d of %d replicas are updated", updated, want), nil
	case ready < want:
		return fmt.Sprintf("%d of %d replicas are ready", ready, want), nil
	}
	return "", nil
}
