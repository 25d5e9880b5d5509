// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/config"
)

const (
	// Namespace is where the controller is installed by default.
	Namespace = "fairlead-system"
	// Repository of the controller's image.
	Repository = "ghcr.io/fairlead/fairlead"
	// Name of the controller's StatefulSet and of its ServiceAccount.
	Name = "fairlead-controller"

	labelPrefix = "app.kubernetes.io/"
	product     = "fairlead"
)

// Options are of an installation. The zero value is what config/default has.
type Options struct {
	Namespace string // default: fairlead-system
	Version   string // default: latest; the label and the tag of the image
	Image     string // default: the repository of the product, with the version
	// EventsAddr is where events are posted, in the form of Flux's notification-controller.
	EventsAddr string
}

func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = Namespace
	}
	if o.Version == "" {
		o.Version = "latest"
	}
	if o.Image == "" {
		o.Image = Repository + ":" + o.Version
	}
	return o
}

// order is in which order kinds are applied, so that nothing is refused for what comes
// later. They are deleted in reverse.
var order = []string{
	"CustomResourceDefinition", "Namespace", "ClusterRole", "ServiceAccount", "Role", "ClusterRoleBinding", "RoleBinding",
	"NetworkPolicy", "Service", "PodDisruptionBudget", "StatefulSet",
}

// Manifests returns what is installed, in the order in which it is applied. It equals
// what kustomize makes of config/default.
func Manifests(o Options) ([]*unstructured.Unstructured, error) {
	return o.manifests(config.Controller())
}

// Installed returns what there may be of an installation: Manifests, and what somebody has
// applied of config/page and config/sharding.
func Installed(o Options) ([]*unstructured.Unstructured, error) {
	return o.manifests(config.Controller(), config.Additions())
}

func (o Options) manifests(from ...fs.FS) (objects []*unstructured.Unstructured, err error) {
	o = o.withDefaults()
	for _, files := range from {
		some, err := read(files)
		if err != nil {
			return nil, err
		}
		objects = append(objects, some...)
	}

	for _, object := range objects {
		if err := o.place(object); err != nil {
			return nil, fmt.Errorf("%s: %w", named(object), err)
		}
	}

	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return slices.Index(order, a.GetKind()) - slices.Index(order, b.GetKind())
	})
	return objects, nil
}

// read reads manifests that the program has.
func read(files fs.FS) (objects []*unstructured.Unstructured, err error) {
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Base(name) == "kustomization.yaml" {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		in, err := decode(content)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, in...)
		return nil
	})
	return objects, err
}

func decode(content []byte) (objects []*unstructured.Unstructured, err error) {
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := documents.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		}
		objects = append(objects, object)
	}
}

// place puts an object into the namespace, labels it, and makes the settings.
func (o Options) place(object *unstructured.Unstructured) error {
	switch {
	case object.GetKind() == "Namespace":
		object.SetName(o.Namespace)
	case object.GetNamespace() != "":
		object.SetNamespace(o.Namespace)
	}

	if err := o.label(object, "metadata"); err != nil {
		return err
	}

	switch object.GetKind() {
	case "ClusterRoleBinding", "RoleBinding":
		return o.bind(object)
	case "StatefulSet":
		return o.run(object)
	}
	return nil
}

func (o Options) label(object *unstructured.Unstructured, metadata ...string) error {
	labels, _, err := unstructured.NestedStringMap(object.Object, append(metadata, "labels")...)
	if err != nil {
		return err
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelPrefix+"component"] = Name
	labels[labelPrefix+"instance"] = o.Namespace
	labels[labelPrefix+"part-of"] = product
	labels[labelPrefix+"version"] = o.Version
	return unstructured.SetNestedStringMap(object.Object, labels, append(metadata, "labels")...)
}

// bind names the namespace of the accounts that a role is given to.
func (o Options) bind(object *unstructured.Unstructured) error {
	subjects, _, err := unstructured.NestedSlice(object.Object, "subjects")
	if err != nil {
		return err
	}
	for _, subject := range subjects {
		subject.(map[string]any)["namespace"] = o.Namespace
	}
	return unstructured.SetNestedSlice(object.Object, subjects, "subjects")
}

// run sets the image and the arguments of the controller.
func (o Options) run(object *unstructured.Unstructured) error {
	if err := o.label(object, "spec", "template", "metadata"); err != nil {
		return err
	}
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}

	controller := containers[0].(map[string]any)
	controller["image"] = o.Image
	if o.EventsAddr != "" {
		controller["args"] = append(controller["args"].([]any), "--events-addr="+o.EventsAddr)
	}
	return unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers")
}

// Write writes objects as YAML documents, each after a line of three dashes.
func Write(out io.Writer, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("%s: %w", named(object), err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", document); err != nil {
			return err
		}
	}
	return nil
}

// named reads "StatefulSet/fairlead-system/fairlead-controller".
func named(object *unstructured.Unstructured) string {
	return strings.Join(slices.DeleteFunc([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, func(s string) bool { return s == "" }), "/")
}
