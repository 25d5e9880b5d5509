// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/fleet"
)

// originAnnotation is where kustomize writes the origin of an object.
const originAnnotation = "config.kubernetes.io/origin"

// documents decodes the result of a build.
func (k *kustomized) documents(file string, built resmap.ResMap) ([]*document, []fleet.Problem) {
	if n := built.Size(); n > maxObjects {
		return nil, []fleet.Problem{problem(file, 0, fmt.Sprintf("kustomization makes %d objects, at most %d are read", n, maxObjects))}
	}

	size := 0
	docs := make([]*document, 0, built.Size())
	for _, resource := range built.Resources() {
		b, err := resource.MarshalJSON()
		if err != nil {
			return nil, []fleet.Problem{problem(file, 0, fmt.Sprintf("kustomize: object %s: %s", resource.CurId(), k.words(err)))}
		}

		if size += len(b); size > maxOutput {
			return nil, []fleet.Problem{problem(file, 0, fmt.Sprintf("kustomization makes more than %d bytes", maxOutput))}
		}

		object, err := decode(b)
		if err != nil {
			return nil, []fleet.Problem{problem(file, 0, fmt.Sprintf("kustomize: object %s: %s", resource.CurId(), k.words(err)))}
		}

		d := &document{object: object, origin: fleet.Origin{File: file}, lines: func() map[string]int { return nil }}
		k.locate(d)
		docs = append(docs, d)
	}

	return docs, nil
}

// locate finds the file and line that an object comes from.
func (k *kustomized) locate(d *document) {
	meta, _ := d.object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	text, _ := annotations[originAnnotation].(string)
	if k.strip && text != "" {
		if delete(annotations, originAnnotation); len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}

	var origin struct{ Path, ConfiguredIn string }
	if raw, err := yaml.YAMLToJSON([]byte(text)); err == nil {
		_ = json.Unmarshal(raw, &origin) // an unreadable annotation means an unknown origin
	}

	name, _ := meta["name"].(string)
	kind, _ := d.object["kind"].(string)
	switch {
	case origin.Path != "":
		d.origin.File = path.Join(k.root, origin.Path)
		if source := k.sources[d.origin.File].find(kind, name); source != nil {
			d.origin, d.lines = source.origin, source.lines
		}
	case text == "":
		if source := k.sourceNamed(kind, name); source != nil {
			d.origin, d.lines = source.origin, source.lines
		}
	case origin.ConfiguredIn != "":
		d.origin.File = path.Join(k.root, origin.ConfiguredIn)
		d.origin.Line = k.generatorLine(d.origin.File, kind, name)
	}
}

// sourceNamed is the only document of a kind and name; nil if there is none, or are
// several.
func (k *kustomized) sourceNamed(kind, name string) *document {
	if k.named == nil {
		k.named = map[[2]string]*document{}
		for _, s := range k.sources {
			for key, d := range s.named {
				if _, several := k.named[key]; several {
					d = nil
				}
				k.named[key] = d
			}
		}
	}
	return k.named[[2]string{kind, name}]
}

// generatorLine is the line of the generator that makes a ConfigMap or Secret.
func (k *kustomized) generatorLine(file, kind, name string) int {
	b, err := read(k.fsys, file)
	if err != nil {
		return 0
	}

	parsed, wrong := parseKustomization(path.Dir(file), path.Base(file), b)
	if len(wrong) > 0 {
		return 0
	}

	field := map[string]string{"ConfigMap": "configMapGenerator", "Secret": "secretGenerator"}[kind]
	list, _ := parsed.fields[field].([]any)
	longest, line := -1, 0
	for i, entry := range list {
		generator, _ := entry.(map[string]any)
		named, _ := generator["name"].(string)
		if strings.Contains(name, named) && len(named) > longest {
			longest, line = len(named), parsed.problem(fmt.Sprintf("%s[%d]", field, i), "").Line
		}
	}

	return line
}
