// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/propagate"
)

// resource is an object as a user of kubectl names it: deploy/web,
// deployments.apps/shop/web or Deployment/web.
type resource struct {
	kind, group     string // in lower case; group is "" where none is named
	namespace, name string // namespace is "" where none is named
}

// parseResource reads KIND/NAME, KIND/NAMESPACE/NAME, or KIND and NAME as two
// arguments. namespace is what -n says.
func parseResource(args []string, namespace string) (resource, error) {
	parts := strings.Split(strings.Join(args, "/"), "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return resource{}, usagef("%q is no KIND/NAME or KIND/NAMESPACE/NAME, such as deploy/web or deploy/shop/web", strings.Join(args, " "))
	}
	r := resource{namespace: namespace, name: parts[len(parts)-1]}
	if len(parts) == 3 {
		if namespace != "" && namespace != parts[1] {
			return resource{}, usagef("-n says namespace %s, and %s names another", namespace, strings.Join(args, " "))
		}
		r.namespace = parts[1]
	}
	r.kind, r.group, _ = strings.Cut(strings.ToLower(parts[0]), ".")
	return r, nil
}

// optionalResource is parseResource of a flag's value; nil where it is empty.
func optionalResource(value, namespace string) (*resource, error) {
	if value == "" {
		return nil, nil
	}
	r, err := parseResource([]string{value}, namespace)
	return &r, err
}

// is reports whether the resource names an object. As kubectl does, it takes a
// kind, its plural or its short name, and a group with or without a version.
func (r resource) is(id propagate.ID, k kindNames) bool {
	if r.name != id.Name || r.namespace != "" && r.namespace != id.Namespace {
		return false
	}
	if r.group != "" && r.group != id.Group {
		_, group, versioned := strings.Cut(r.group, ".")
		if !versioned || group != id.Group {
			return false
		}
	}
	return slices.Contains(k.of(id.GroupKind()), r.kind)
}

func (r resource) String() string {
	text := r.kind
	if r.group != "" {
		text += "." + r.group
	}
	if r.namespace != "" {
		text += "/" + r.namespace
	}
	return text + "/" + r.name
}

// one is the object that a resource names among ids, which are sorted; when it
// is more than one the error lists them.
func (r resource) one(ids []propagate.ID) (propagate.ID, error) {
	if len(ids) == 1 {
		return ids[0], nil
	}
	var all strings.Builder
	for _, id := range ids {
		all.WriteString("\n  " + argument(id))
	}
	return propagate.ID{}, fmt.Errorf("%s can be each of these, name one:%s", r, all.String())
}

// argument is how an object is named on the command line.
func argument(id propagate.ID) string {
	r := resource{kind: strings.ToLower(id.Kind), group: id.Group, namespace: id.Namespace, name: id.Name}
	return r.String()
}

// kindNames are the names of kinds that the fleet itself defines.
type kindNames map[schema.GroupKind][]string

// of are the names of a kind, in lower case.
func (k kindNames) of(gk schema.GroupKind) []string {
	plural, singular := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	names := []string{singular.Resource, plural.Resource}
	if short := shortNames[gk.String()]; short != "" {
		names = append(names, short)
	}
	return append(names, k[gk]...)
}

// define takes the names of a kind from its CustomResourceDefinition.
func (k kindNames) define(t *propagate.Template) {
	if t.Kind != "CustomResourceDefinition" || t.Group != "apiextensions.k8s.io" {
		return
	}
	group, _, _ := unstructured.NestedString(t.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(t.Object, "spec", "names", "kind")
	names, _, _ := unstructured.NestedStringSlice(t.Object, "spec", "names", "shortNames")
	for _, field := range []string{"plural", "singular"} {
		name, _, _ := unstructured.NestedString(t.Object, "spec", "names", field)
		names = append(names, name)
	}
	k[schema.GroupKind{Group: group, Kind: kind}] = names
}

// shortNames are those that API servers have for kinds of Kubernetes.
var shortNames = map[string]string{
	"ConfigMap":             "cm",
	"Endpoints":             "ep",
	"Event":                 "ev",
	"LimitRange":            "limits",
	"Namespace":             "ns",
	"Node":                  "no",
	"PersistentVolume":      "pv",
	"PersistentVolumeClaim": "pvc",
	"Pod":                   "po",
	"ReplicationController": "rc",
	"ResourceQuota":         "quota",
	"Service":               "svc",
	"ServiceAccount":        "sa",

	"CertificateSigningRequest.certificates.k8s.io": "csr",
	"CronJob.batch": "cj",
	"CustomResourceDefinition.apiextensions.k8s.io": "crd",
	"DaemonSet.apps":                      "ds",
	"Deployment.apps":                     "deploy",
	"HorizontalPodAutoscaler.autoscaling": "hpa",
	"Ingress.networking.k8s.io":           "ing",
	"NetworkPolicy.networking.k8s.io":     "netpol",
	"PodDisruptionBudget.policy":          "pdb",
	"PriorityClass.scheduling.k8s.io":     "pc",
	"ReplicaSet.apps":                     "rs",
	"StatefulSet.apps":                    "sts",
	"StorageClass.storage.k8s.io":         "sc",
}
