// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// FleetOptions are what a user says of a new Fleet.
type FleetOptions struct {
	Name, Namespace  string
	URL, Branch      string
	SourceRef        string // GitRepository/NAME or GitRepository/NAME.NAMESPACE
	Path             string
	Interval         time.Duration // 0: the default of the kind
	SecretRef        string
	KubeConfigSecret string
	ServiceAccount   string
	DecryptionSecret string
	PublishURL       string
	PublishSecret    string
}

// NewFleet is the Fleet as it is applied.
func NewFleet(o FleetOptions) (*unstructured.Unstructured, error) {
	fleet := &fleetv1alpha1.Fleet{
		TypeMeta:   metav1.TypeMeta{APIVersion: fleetv1alpha1.GroupVersion.String(), Kind: fleetv1alpha1.KindFleet},
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace},
		Spec:       fleetv1alpha1.FleetSpec{Path: o.Path, Members: fleetv1alpha1.MembersSpec{ServiceAccountName: o.ServiceAccount}},
	}
	if err := o.follow(&fleet.Spec); err != nil {
		return nil, err
	}

	if o.Interval != 0 {
		fleet.Spec.Interval = &metav1.Duration{Duration: o.Interval}
	}
	if o.KubeConfigSecret != "" {
		fleet.Spec.Members.KubeConfig = &fleetv1alpha1.KubeConfigSpec{SecretRef: fluxmeta.SecretKeyReference{Name: o.KubeConfigSecret}}
	}
	if o.DecryptionSecret != "" {
		fleet.Spec.Decryption = &fleetv1alpha1.DecryptionSpec{Provider: "sops", SecretRef: fluxmeta.LocalObjectReference{Name: o.DecryptionSecret}}
	}
	if o.PublishURL != "" {
		fleet.Spec.Publish = &fleetv1alpha1.PublishSpec{URL: o.PublishURL, SecretRef: reference(o.PublishSecret)}
	}
	return sparse(fleet)
}

// follow sets where the fleet's repository is.
func (o FleetOptions) follow(spec *fleetv1alpha1.FleetSpec) error {
	if o.SourceRef == "" {
		spec.Git = &fleetv1alpha1.GitSource{URL: o.URL, Branch: o.Branch, SecretRef: reference(o.SecretRef)}
		return nil
	}

	kind, name, ok := strings.Cut(o.SourceRef, "/")
	if !ok || kind != "GitRepository" || name == "" {
		return fmt.Errorf("%q must be GitRepository/NAME", o.SourceRef)
	}
	name, namespace, _ := strings.Cut(name, ".")
	spec.SourceRef = &fleetv1alpha1.SourceReference{Kind: kind, Name: name, Namespace: namespace}
	return nil
}

func reference(name string) *fluxmeta.LocalObjectReference {
	if name == "" {
		return nil
	}
	return &fluxmeta.LocalObjectReference{Name: name}
}

// sparse is a Fleet without what nobody has set: an apply would own that.
func sparse(fleet *fleetv1alpha1.Fleet) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fleet)
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	for _, field := range []string{"members", "readiness"} {
		if value, _, _ := unstructured.NestedMap(object, "spec", field); len(value) == 0 {
			unstructured.RemoveNestedField(object, "spec", field)
		}
	}
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: object}, nil
}

// CreateFleet applies a Fleet, and waits until it is ready. It returns the message of
// its condition.
func (c *Cluster) CreateFleet(ctx context.Context, fleet *unstructured.Unstructured) (string, error) {
	c.tell(Action, "applying Fleet")
	outcome, err := c.apply(ctx, fleet)
	if meta.IsNoMatchError(err) {
		return "", fmt.Errorf("the cluster does not serve the kind Fleet: 'fairlead install' first")
	}
	if err != nil {
		return "", err
	}

	c.tell(Change, "%s %s", named(fleet), outcome)
	c.tell(Waiting, "waiting for Fleet reconciliation")
	return c.ready(ctx, client.ObjectKeyFromObject(fleet), "")
}

// Reconcile asks for a Fleet to be reconciled now, and waits until that has been done.
// It returns the message of its condition.
func (c *Cluster) Reconcile(ctx context.Context, key types.NamespacedName, now time.Time) (string, error) {
	fleet, err := c.fleet(ctx, key)
	if err != nil {
		return "", err
	}
	if fleet.Spec.Suspend {
		return "", fmt.Errorf("%s is suspended: set spec.suspend to false", fleetNamed(key))
	}

	c.tell(Action, "annotating %s", fleetNamed(key))
	before := client.MergeFrom(fleet.DeepCopy())
	token := now.Format(time.RFC3339Nano)
	metav1.SetMetaDataAnnotation(&fleet.ObjectMeta, fluxmeta.ReconcileRequestAnnotation, token)
	if err := c.client.Patch(ctx, fleet, before, client.FieldOwner(manager)); err != nil {
		return "", fmt.Errorf("annotate %s: %w", fleetNamed(key), err)
	}
	c.tell(Done, "Fleet annotated")
	c.tell(Waiting, "waiting for Fleet reconciliation")
	return c.ready(ctx, key, token)
}

func (c *Cluster) fleet(ctx context.Context, key types.NamespacedName) (*fleetv1alpha1.Fleet, error) {
	fleet := &fleetv1alpha1.Fleet{}
	switch err := c.client.Get(ctx, key, fleet); {
	case meta.IsNoMatchError(err):
		return nil, finalError{fmt.Errorf("the cluster does not serve the kind Fleet: 'fairlead install' first")}
	case apierrors.IsNotFound(err):
		return nil, finalError{fmt.Errorf("there is no %s", fleetNamed(key))}
	case err != nil:
		return nil, err
	}
	return fleet, nil
}

func fleetNamed(key types.NamespacedName) string { return "Fleet/" + key.String() }

// ready waits until a Fleet's spec, and the request with a token, have been handled,
// and the outcome is known.
func (c *Cluster) ready(ctx context.Context, key types.NamespacedName, token string) (message string, err error) {
	err = c.until(ctx, func(ctx context.Context) (string, error) {
		fleet, err := c.fleet(ctx, key)
		if err != nil {
			return "", err
		}
		condition := meta.FindStatusCondition(fleet.Status.Conditions, fluxmeta.ReadyCondition)
		switch {
		case token != "" && fleet.Status.LastHandledReconcileAt != token:
			return "the controller has not handled the request yet", nil
		case condition == nil:
			return "the controller has not reconciled the Fleet yet", nil
		case condition.Status == metav1.ConditionFalse && (token != "" || meta.IsStatusConditionTrue(fleet.Status.Conditions, fluxmeta.StalledCondition)):
			return "", finalError{fmt.Errorf("%s: %s", condition.Reason, condition.Message)}
		case condition.Status == metav1.ConditionFalse:
			return condition.Reason + ": " + condition.Message, nil // it is tried again
		case condition.Status == metav1.ConditionTrue && fleet.Status.ObservedGeneration == fleet.Generation:
			message = condition.Message
			return "", nil
		}
		return condition.Message, nil
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", fleetNamed(key), err)
	}
	return message, nil
}
