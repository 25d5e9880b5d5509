// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// Keep is what an uninstallation leaves.
type Keep struct {
	CRDs      bool // and with them every Fleet
	Namespace bool
}

// Uninstall deletes objects, the last one first. The controller goes first, and its pods
// are waited for, so that no request to a member is in flight; Fleets lose the
// finalizer that nobody would remove any more. No member is reached.
func (c *Cluster) Uninstall(ctx context.Context, objects []*unstructured.Unstructured, keep Keep) error {
	objects = slices.Clone(objects)
	slices.Reverse(objects)
	drained := false
	for _, object := range objects {
		if !drained && object.GetKind() != "StatefulSet" {
			if err := c.drained(ctx, namespaceOf(objects)); err != nil {
				return err
			}
			drained = true
		}

		if kept, err := c.keeps(ctx, object, keep); err != nil {
			return err
		} else if kept != "" {
			c.tell(Done, "%s kept: %s", named(object), kept)
			continue
		}

		switch err := c.client.Delete(ctx, object.DeepCopy()); {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		case err != nil:
			return fmt.Errorf("delete %s: %w", named(object), err)
		default:
			if err := c.gone(ctx, object); err != nil {
				return err
			}
			c.tell(Done, "%s deleted", named(object))
		}
	}
	return nil
}

// gone waits until Fleets are not served any more, if it was their definition that was
// deleted: the API server ends that on its own time, and what is installed until then would
// go with it.
func (c *Cluster) gone(ctx context.Context, deleted *unstructured.Unstructured) error {
	if deleted.GetKind() != "CustomResourceDefinition" {
		return nil
	}

	return c.until(ctx, func(ctx context.Context) (string, error) {
		err := c.client.Get(ctx, client.ObjectKeyFromObject(deleted), deleted.DeepCopy())
		if apierrors.IsNotFound(err) {
			err = c.client.List(ctx, &fleetv1alpha1.FleetList{})
		}
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("wait for %s to go: %w", named(deleted), err)
		}
		return named(deleted) + " is still there", nil
	})
}

// namespaceOf is the namespace of an installation.
func namespaceOf(objects []*unstructured.Unstructured) string {
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			return object.GetName()
		}
	}
	return ""
}

// drained waits until no controller is left, and takes the finalizer off every Fleet.
func (c *Cluster) drained(ctx context.Context, namespace string) error {
	c.tell(Waiting, "waiting for the controller to end")
	err := c.until(ctx, func(ctx context.Context) (string, error) {
		var pods corev1.PodList
		if err := c.client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": Name}); err != nil {
			return "", err
		}
		if len(pods.Items) > 0 {
			return "Pod/" + namespace + "/" + pods.Items[0].Name + " is still there", nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}

	var fleets fleetv1alpha1.FleetList
	switch err := c.client.List(ctx, &fleets); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil // nor is there a definition
	case err != nil:
		return fmt.Errorf("list Fleets: %w", err)
	}
	for i := range fleets.Items {
		if err := c.unfinalize(ctx, &fleets.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) unfinalize(ctx context.Context, fleet *fleetv1alpha1.Fleet) error {
	before := client.MergeFromWithOptions(fleet.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if !controllerutil.RemoveFinalizer(fleet, fleetv1alpha1.Finalizer) {
		return nil
	}
	if err := client.IgnoreNotFound(c.client.Patch(ctx, fleet, before, client.FieldOwner(manager))); err != nil {
		return fmt.Errorf("remove the finalizer of %s: %w", fleetNamed(client.ObjectKeyFromObject(fleet)), err)
	}
	c.tell(Change, "%s finalizer removed", fleetNamed(client.ObjectKeyFromObject(fleet)))
	return nil
}

// keeps says why an object is not deleted. A namespace with somebody else's pods would
// take them along.
func (c *Cluster) keeps(ctx context.Context, object *unstructured.Unstructured, keep Keep) (why string, err error) {
	switch {
	case object.GetKind() == "CustomResourceDefinition" && keep.CRDs:
		return "--keep-crds", nil
	case object.GetKind() != "Namespace":
		return "", nil
	case keep.Namespace:
		return "--keep-namespace", nil
	}

	var pods corev1.PodList
	if err := c.client.List(ctx, &pods, client.InNamespace(object.GetName())); err != nil {
		return "", fmt.Errorf("list the pods of %s: %w", named(object), err)
	}
	for _, pod := range pods.Items {
		if pod.Labels[labelPrefix+"part-of"] != product {
			return "Pod " + pod.Name + " in it is not fairlead's", nil
		}
	}
	return "", nil
}
