// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fairlead/fairlead/object"
)

// kind is a resource that is served.
type kind struct {
	schema.GroupVersionKind
	resource   string
	singular   string
	short      []string
	categories []string
	namespaced bool
	status     bool // has the status subresource
	// typed is the Go type of a built-in kind, nil for a custom one.
	typed reflect.Type
	// versions are those of a custom kind; objects are kept without one.
	versions  []string
	converter managedfields.TypeConverter
	columns   []column
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.resource}
}

func (k *kind) hasSubresource(name string) bool {
	return name == "status" && k.status || name == "scale" && k.scales() || name == "finalize" && k.Kind == "Namespace" && k.Group == ""
}

// verbs of discovery.
var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

const all = "all"

// builtin kinds are the same for every server.
var builtin = sync.OnceValue(func() []*kind {
	types := runtime.NewScheme()
	if err := scheme.AddToScheme(types); err != nil {
		panic(err)
	}
	if err := apiextensionsv1.AddToScheme(types); err != nil {
		panic(err)
	}
	ordinary := applyconfigurations.NewTypeConverter(scheme.Scheme)
	var out []*kind
	for _, row := range []struct {
		gv, kinds string
	}{
		// Kind, resource, short names, then: s has a status, a in the category
		// all.
		{"v1", `Namespace namespaces ns s; ConfigMap configmaps cm -; Secret secrets - -; Service services svc sa;
			ServiceAccount serviceaccounts sa -; Pod pods po sa; PersistentVolumeClaim persistentvolumeclaims pvc s;
			PersistentVolume persistentvolumes pv s; Node nodes no s; Endpoints endpoints ep -; Event events ev -;
			LimitRange limitranges limits -; ResourceQuota resourcequotas quota s;
			ReplicationController replicationcontrollers rc sa`},
		{"apps/v1", `Deployment deployments deploy sa; ReplicaSet replicasets rs sa; StatefulSet statefulsets sts sa;
			DaemonSet daemonsets ds sa; ControllerRevision controllerrevisions - -`},
		{"batch/v1", `Job jobs - sa; CronJob cronjobs cj sa`},
		{"autoscaling/v2", `HorizontalPodAutoscaler horizontalpodautoscalers hpa sa`},
		{"policy/v1", `PodDisruptionBudget poddisruptionbudgets pdb s`},
		{"networking.k8s.io/v1", `Ingress ingresses ing s; IngressClass ingressclasses - -; NetworkPolicy networkpolicies netpol -`},
		{"rbac.authorization.k8s.io/v1", `Role roles - -; RoleBinding rolebindings - -; ClusterRole clusterroles - -;
			ClusterRoleBinding clusterrolebindings - -`},
		{"storage.k8s.io/v1", `StorageClass storageclasses sc -`},
		{"scheduling.k8s.io/v1", `PriorityClass priorityclasses pc -`},
		{"coordination.k8s.io/v1", `Lease leases - -`},
		{"discovery.k8s.io/v1", `EndpointSlice endpointslices - -`},
		{"admissionregistration.k8s.io/v1", `ValidatingWebhookConfiguration validatingwebhookconfigurations - -;
			MutatingWebhookConfiguration mutatingwebhookconfigurations - -`},
		{"apiextensions.k8s.io/v1", `CustomResourceDefinition customresourcedefinitions crd,crds s`},
	} {
		gv, err := schema.ParseGroupVersion(row.gv)
		if err != nil {
			panic(err)
		}
		for text := range strings.SplitSeq(row.kinds, ";") {
			f := strings.Fields(text)
			namespaced, _ := object.BuiltinScope(gv.Group, f[0])
			k := &kind{
				GroupVersionKind: gv.WithKind(f[0]),
				resource:         f[1],
				singular:         strings.ToLower(f[0]),
				namespaced:       namespaced,
				status:           strings.Contains(f[3], "s"),
				versions:         []string{gv.Version},
				converter:        ordinary,
				columns:          columnsOf(f[0]),
			}
			if f[2] != "-" {
				k.short = strings.Split(f[2], ",")
			}
			if strings.Contains(f[3], "a") {
				k.categories = []string{all}
			}
			if gv == apiextensionsv1.SchemeGroupVersion {
				k.converter = deduced() // there is no schema of definitions to be had
			}
			sample, err := types.New(k.GroupVersionKind)
			if err != nil {
				panic(err)
			}
			k.typed = reflect.TypeOf(sample).Elem()
			out = append(out, k)
		}
	}
	return out
})

// deduced converts what has no schema.
var deduced = sync.OnceValue(managedfields.NewDeducedTypeConverter)

// custom are the kinds of a definition, one per served version.
func custom(definition map[string]any) []*kind {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition, &crd); err != nil {
		return nil
	}
	var versions []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	var out []*kind
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		names := crd.Spec.Names
		out = append(out, &kind{
			GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: names.Kind},
			resource:         names.Plural,
			singular:         names.Singular,
			short:            slices.Clone(names.ShortNames),
			categories:       slices.Clone(names.Categories),
			namespaced:       crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
			status:           v.Subresources != nil && v.Subresources.Status != nil,
			versions:         versions,
			converter:        deduced(),
			columns:          customColumns(v.AdditionalPrinterColumns),
		})
	}
	return out
}
