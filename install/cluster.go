// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// manager is the field manager of what the program applies.
const manager = "fairlead"

// Interval is how often what is waited for is looked at.
var Interval = time.Second

// Mark says what a line tells: Flux has the same.
type Mark string

// The marks.
const (
	Action  Mark = "►" // what is begun
	Change  Mark = "✚" // what is made
	Waiting Mark = "◎" // what is waited for
	Done    Mark = "✔"
	Warning Mark = "⚠️" // what the cluster's API warns of
	Failed  Mark = "✗"
)

// Tell is told each step, as one line of text.
type Tell func(mark Mark, text string)

// Cluster is where the controller runs.
type Cluster struct {
	Namespace string // of the kubeconfig's context
	client    client.Client
	tell      func(mark Mark, format string, args ...any)
}

// Connect finds a cluster in a kubeconfig as kubectl does: by default the current
// context of the files that KUBECONFIG names.
func Connect(kubeconfig, kubeContext string, tell Tell) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: kubeContext})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	c, err := For(config, tell)
	if err != nil {
		return nil, err
	}
	if c.Namespace, _, err = loaded.Namespace(); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return c, nil
}

// For is the cluster of a client's configuration.
func For(config *rest.Config, tell Tell) (*Cluster, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(errors.Join(fleetv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)))
	config = rest.CopyConfig(config)
	config.QPS = -1 // one command makes few requests, and waits for no one
	config.WarningHandler = warnings(tell)
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", config.Host, err)
	}
	return &Cluster{client: c, tell: func(mark Mark, format string, args ...any) { tell(mark, fmt.Sprintf(format, args...)) }}, nil
}

// warnings tells what the cluster's API warns of.
type warnings Tell

func (w warnings) HandleWarningHeader(_ int, _ string, text string) { w(Warning, text) }

// apply is one server-side apply, and says what became of it, as kubectl does.
func (c *Cluster) apply(ctx context.Context, object *unstructured.Unstructured) (outcome string, err error) {
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(object.GroupVersionKind())
	err = client.IgnoreNotFound(c.client.Get(ctx, client.ObjectKeyFromObject(object), before))
	if err != nil {
		return "", fmt.Errorf("get %s: %w", named(object), err)
	}

	applied := object.DeepCopy()
	if err := c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(manager), client.ForceOwnership); err != nil {
		return "", fmt.Errorf("apply %s: %w", named(object), err)
	}
	switch {
	case before.GetUID() == "":
		return "created", nil
	case applied.GetResourceVersion() == before.GetResourceVersion():
		return "unchanged", nil
	}
	return "configured", nil
}

// until looks until there is nothing left to wait for. What is missing is told, and is the
// error when ctx is over. A look that fails is repeated: the server may be starting.
func (c *Cluster) until(ctx context.Context, look func(context.Context) (missing string, err error)) error {
	missing := ""
	err := wait.PollUntilContextCancel(ctx, Interval, true, func(ctx context.Context) (bool, error) {
		now, err := look(ctx)
		if isFinal(err) {
			return false, err
		}
		if ctx.Err() != nil {
			return false, ctx.Err() // what was seen before says more than err
		}
		if err != nil {
			now = err.Error()
		}
		if now != missing && now != "" {
			c.tell(Waiting, "%s", now)
		}
		missing = now
		return missing == "", nil
	})
	switch {
	case !wait.Interrupted(err) || missing == "":
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("timed out: %s", missing)
	}
	return fmt.Errorf("interrupted: %s", missing)
}

// finalError is not mended by waiting.
type finalError struct{ error }

func isFinal(err error) bool {
	return errors.As(err, new(finalError)) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}
