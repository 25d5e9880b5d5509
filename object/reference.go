// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/printable"
)

// Reference is an object as a user of kubectl names it: deploy/web,
// deployments.apps/shop/web or Deployment/web.
type Reference struct {
	Kind, Group     string // in lower case; group is "" where none is named
	Namespace, Name string // namespace is "" where none is named
}

// ParseReference reads KIND/NAME, KIND/NAMESPACE/NAME, or KIND and NAME as two
// arguments. namespace is what -n says.
func ParseReference(args []string, namespace string) (Reference, error) {
	parts := strings.Split(strings.Join(args, "/"), "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return Reference{}, fmt.Errorf("%q is neither KIND/NAME nor KIND/NAMESPACE/NAME, such as deploy/web or deploy/shop/web", strings.Join(args, " "))
	}
	r := Reference{Namespace: namespace, Name: parts[len(parts)-1]}
	if len(parts) == 3 {
		if namespace != "" && namespace != parts[1] {
			return Reference{}, fmt.Errorf("-n %s and %s name different namespaces", namespace, strings.Join(args, " "))
		}
		r.Namespace = parts[1]
	}
	r.Kind, r.Group, _ = strings.Cut(strings.ToLower(parts[0]), ".")
	return r, nil
}

// Matches reports whether the resource names an object. As kubectl does, it takes a
// kind, its plural or its short name, and a group with or without a version.
func (r Reference) Matches(id ID, k KindNames) bool {
	if r.Name != id.Name || r.Namespace != "" && r.Namespace != id.Namespace {
		return false
	}
	if r.Group != "" && r.Group != id.Group {
		_, group, versioned := strings.Cut(r.Group, ".")
		if !versioned || group != id.Group {
			return false
		}
	}
	return slices.Contains(k.names(id.GroupKind()), r.Kind)
}

// String reads "deployment.apps/shop/web".
func (r Reference) String() string {
	text := r.Kind
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Namespace != "" {
		text += "/" + r.Namespace
	}
	return text + "/" + r.Name
}

// One is the object that a resource names among ids, which are sorted; when it
// is more than one the error lists them.
func (r Reference) One(ids []ID) (ID, error) {
	if len(ids) == 1 {
		return ids[0], nil
	}
	var all strings.Builder
	for _, id := range ids {
		all.WriteString("\n  " + Argument(id))
	}
	return ID{}, fmt.Errorf("%s can be each of these, name one:%s", r, all.String())
}

// Argument is how an object is named on the command line.
func Argument(id ID) string {
	r := Reference{Kind: strings.ToLower(id.Kind), Group: id.Group, Namespace: id.Namespace, Name: id.Name}
	return r.String()
}

// KindNames are the names of kinds that the fleet itself defines.
type KindNames map[schema.GroupKind][]string

// names are the names of a kind, in lower case.
func (k KindNames) names(gk schema.GroupKind) []string {
	plural, singular := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	names := []string{singular.Resource, plural.Resource}
	if short := shortNames[gk.String()]; short != "" {
		names = append(names, short)
	}
	return append(names, k[gk]...)
}

// Define takes the names of a kind from its CustomResourceDefinition.
func (k KindNames) Define(id ID, definition map[string]any) {
	if id.GroupKind() != CRD {
		return
	}
	group, _, _ := unstructured.NestedString(definition, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition, "spec", "names", "kind")
	names, _, _ := unstructured.NestedStringSlice(definition, "spec", "names", "shortNames")
	for _, field := range []string{"plural", "singular"} {
		name, _, _ := unstructured.NestedString(definition, "spec", "names", field)
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

// ShortName is how people call an object: deploy/shop/web.
func ShortName(id ID) string {
	kind := shortNames[id.GroupKind().String()]
	if kind == "" {
		kind = strings.ToLower(id.Kind)
		if _, known := BuiltinScope(id.Group, id.Kind); !known && id.Group != "" {
			kind = schema.GroupKind{Group: id.Group, Kind: kind}.String()
		}
	}
	if id.Namespace != "" {
		kind += "/" + id.Namespace
	}
	return printable.Line(kind + "/" + id.Name)
}
