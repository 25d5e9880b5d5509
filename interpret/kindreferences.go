// SPDX-License-Identifier: Apache-2.0

package interpret

// naming is a path where an object names another in its namespace. Without a kind
// the path leads to objects that have a kind and a name.
type naming struct{ kind, path string }

// PodTemplates are the pod templates of an object.
func (k *Kind) PodTemplates(object map[string]any) (templates []map[string]any) {
	for _, path := range k.pods {
		for _, v := range at(object, path) {
			if m, ok := v.(map[string]any); ok {
				templates = append(templates, m)
			}
		}
	}
	return templates
}

// Names calls add for each object that an object names outside its pod
// templates.
func (k *Kind) Names(object map[string]any, add func(kind, name string)) {
	for _, n := range k.names {
		for _, v := range at(object, n.path) {
			if n.kind != "" {
				name, _ := v.(string)
				add(n.kind, name)
				continue
			}

			m, _ := v.(map[string]any)
			if kind := textAt(m, "kind"); kind == "ConfigMap" || kind == "Secret" {
				add(kind, textAt(m, "name"))
			}
		}
	}
}
