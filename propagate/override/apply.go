// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// Apply returns a copy of the object with the overriders of one rule applied,
// in Karmada's fixed order: image, command, args, labels, annotations, fields,
// plaintext. If one fails, Apply fails.
func Apply(object map[string]any, o *policyv1alpha1.Overriders) (map[string]any, error) {
	if err := checkCost(object, o); err != nil {
		return nil, err
	}

	e := &edit{object: runtime.DeepCopyJSON(object)}
	for _, stage := range []func(*policyv1alpha1.Overriders) error{
		e.images, e.commands, e.arguments, e.labels, e.annotations, e.fields, e.plaintext,
	} {
		if err := stage(o); err != nil {
			return nil, err
		}
	}

	return e.object, nil
}

// edit is the copy that is being edited.
type edit struct{ object map[string]any }

// containers are those of the pod, or pod template, of the kinds that have one.
// Overriders find no containers in other kinds.
func (e *edit) containers() []map[string]any {
	var pod map[string]any
	switch e.object["kind"] {
	case "Pod":
		pod, _ = e.object["spec"].(map[string]any)
	case "ReplicaSet", "Deployment", "DaemonSet", "StatefulSet", "Job":
		spec, _ := e.object["spec"].(map[string]any)
		template, _ := spec["template"].(map[string]any)
		pod, _ = template["spec"].(map[string]any)
	}

	list, _ := pod["containers"].([]any)
	var containers []map[string]any
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			containers = append(containers, c)
		}
	}

	return containers
}

func (e *edit) images(o *policyv1alpha1.Overriders) error {
	for n, over := range o.ImageOverrider {
		if err := e.image(&over); err != nil {
			return fmt.Errorf("imageOverrider[%d]: %w", n, err)
		}
	}
	return nil
}

func (e *edit) image(over *policyv1alpha1.ImageOverrider) error {
	if over.Predicate == nil {
		for _, c := range e.containers() {
			reference, _ := c["image"].(string)
			changed, err := overrideImage(reference, over)
			if err != nil {
				return err
			}
			c["image"] = changed
		}
		return nil
	}

	reference, err := stringAt(e.object, over.Predicate.Path)
	if err != nil {
		return err
	}

	changed, err := overrideImage(reference, over)
	if err != nil {
		// What stands there may be anything, also a value of a Secret (decision 48).
		return fmt.Errorf("%s: is not an image reference", over.Predicate.Path)
	}

	return setStringAt(e.object, over.Predicate.Path, changed)
}

func overrideImage(reference string, over *policyv1alpha1.ImageOverrider) (string, error) {
	i, err := parseImage(reference)
	if err != nil {
		return "", err
	}

	switch over.Component {
	case policyv1alpha1.ImageRegistry:
		i.registry = changed(i.registry, over)
	case policyv1alpha1.ImageRepository:
		i.repository = changed(i.repository, over)
	case policyv1alpha1.ImageTag:
		if over.Operator == policyv1alpha1.OverriderRemove {
			i.tag, i.digest = "", ""
		} else {
			i.setVersion(changed(i.version(), over))
		}
	default:
		return "", fmt.Errorf("component %q must be one of Registry, Repository, Tag", over.Component)
	}

	return i.String(), nil
}

// changed is a component after the operator: add appends, and replacing with an
// empty value changes nothing.
func changed(part string, over *policyv1alpha1.ImageOverrider) string {
	switch {
	case over.Operator == policyv1alpha1.OverriderAdd:
		return part + over.Value
	case over.Operator == policyv1alpha1.OverriderRemove:
		return ""
	case over.Value != "":
		return over.Value
	}

	return part
}

func (e *edit) commands(o *policyv1alpha1.Overriders) error {
	e.lists("command", o.CommandOverrider)
	return nil
}

func (e *edit) arguments(o *policyv1alpha1.Overriders) error {
	e.lists("args", o.ArgsOverrider)
	return nil
}

// lists edits the command or arguments of containers by name. A missing
// container is not an error.
func (e *edit) lists(field string, overriders []policyv1alpha1.CommandArgsOverrider) {
	for _, over := range overriders {
		for _, c := range e.containers() {
			if c["name"] != over.ContainerName {
				continue
			}

			list, _ := c[field].([]any)
			list = slices.Clone(list)
			if over.Operator == policyv1alpha1.OverriderAdd {
				for _, v := range over.Value {
					list = append(list, v)
				}
			} else {
				list = slices.DeleteFunc(list, func(v any) bool {
					s, ok := v.(string)
					return ok && slices.Contains(over.Value, s)
				})
			}

			if list == nil {
				list = []any{}
			}

			c[field] = list
		}
	}
}

func (e *edit) labels(o *policyv1alpha1.Overriders) error {
	e.pairs("labels", o.LabelsOverrider)
	return nil
}

func (e *edit) annotations(o *policyv1alpha1.Overriders) error {
	e.pairs("annotations", o.AnnotationsOverrider)
	return nil
}

// pairs edits labels or annotations: add sets keys, replace only sets existing
// ones, remove ignores the values.
func (e *edit) pairs(field string, overriders []policyv1alpha1.LabelAnnotationOverrider) {
	if len(overriders) == 0 {
		return
	}

	meta, _ := e.object["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		e.object["metadata"] = meta
	}

	pairs, _ := meta[field].(map[string]any)
	if pairs == nil {
		pairs = map[string]any{}
	}

	for _, over := range overriders {
		for key, value := range over.Value {
			_, has := pairs[key]
			switch {
			case over.Operator == policyv1alpha1.OverriderRemove:
				delete(pairs, key)
			case over.Operator == policyv1alpha1.OverriderAdd || has:
				pairs[key] = value
			}
		}
	}

	meta[field] = pairs
	if len(pairs) == 0 {
		delete(meta, field)
	}
}
