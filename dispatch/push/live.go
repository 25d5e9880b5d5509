// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Live reads the objects of one resource from a member, as they are.
func Live(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace string) ([]map[string]any, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
	}
	found, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
	}
	objects := make([]map[string]any, len(found.Items))
	for i := range found.Items {
		objects[i] = found.Items[i].Object
	}
	return objects, nil
}
