// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"path"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	kyaml "sigs.k8s.io/kustomize/kyaml/utils"
)

// writing is a field that a replacement writes, and how many bytes it may add to it in
// one object.
type writing struct {
	path  []string
	bytes int
}

// replacementsIn are the replacements of a kustomization or plugin, with its keys
// folded, and those that stand in files.
func (k *kustomized) replacementsIn(dir string, fields map[string]any) (all []map[string]any) {
	list, _ := fields["replacements"].([]any)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		file, ok := entry["path"].(string)
		if !ok {
			all = append(all, entry)
			continue
		}

		b, err := k.content(path.Join(dir, file))
		if err != nil {
			continue // it was reported
		}
		for _, part := range split(b, false) {
			raw, err := yaml.YAMLToJSON(part.text)
			if err != nil {
				continue
			}
			var one map[string]any
			var many []map[string]any
			if json.Unmarshal(raw, &one) == nil {
				many = append(many, one)
			} else if json.Unmarshal(raw, &many) != nil {
				continue // kustomize reports it
			}
			for _, one := range many {
				all = append(all, k.folded(file, one))
			}
		}
	}

	return all
}

// replacements counts what replacements write. A value that was itself written by a
// replacement may be as long as all that was written there: forty of them can make of
// ten bytes as many terabytes.
func (t *cost) replacements(objects []source, replacements []map[string]any) (wrong string) {
	items := 0
	for i := range objects {
		items += listItems(objects[i].object)
	}

	for _, r := range replacements {
		t.spend("replacements", len(objects)+len(t.wrote))
		if t.took() > maxSteps || len(t.wrote) > maxWritings {
			t.spend("replacements", maxSteps+1)
			return ""
		}

		value := t.valueOf(objects, r)
		targets, _ := r["targets"].([]any)
		for _, item := range targets {
			target, _ := item.(map[string]any)
			options, _ := target["options"].(map[string]any)
			fieldPaths, _ := target["fieldpaths"].([]any)
			if len(fieldPaths) == 0 {
				fieldPaths = []any{"metadata.name"}
			}

			for _, f := range fieldPaths {
				text, _ := f.(string)
				at := kyaml.SmarterPathSplitter(text, ".")
				if options["create"] == true && !creatable(at) {
					return "fieldPath " + strconv.Quote(text) + " cannot be created: what selects a list item must be a plain value, and no * may follow"
				}

				places := len(objects)
				if strings.ContainsAny(text, "*[") {
					places += items + t.items
				}
				t.spend("replacements", 20*len(objects)+places)
				t.bytes += product(value, places)
				t.grown += value
				t.wrote = append(t.wrote, writing{at, product(value, 1+places-len(objects))})
			}
		}
	}

	return ""
}

// valueOf is how long the value of a replacement may be.
func (t *cost) valueOf(objects []source, r map[string]any) int {
	if value, ok := r["sourcevalue"].(string); ok {
		return len(value)
	}

	from, _ := r["source"].(map[string]any)
	text, _ := from["fieldpath"].(string)
	if text == "" {
		text = "metadata.name"
	}
	return t.valueAt(objects, text)
}

// slackOfValue is what prefixes, suffixes and hashes add to a name.
const slackOfValue = 256

// valueAt is how long a value at a path may be in any of the objects.
func (t *cost) valueAt(objects []source, text string) int {
	at := kyaml.SmarterPathSplitter(text, ".")
	size := 0
	for i := range objects {
		size = max(size, sizeAt(objects[i], at))
	}

	size += slackOfValue + t.grownBy(at)
	for _, w := range t.wrote {
		if overlaps(w.path, at) {
			size = min(size+w.bytes, 1<<40)
		}
	}

	return size
}

// grownBy is what patches may have added under a path.
func (t *cost) grownBy(at []string) int {
	if len(at) > 0 && at[0] == "metadata" {
		return 0 // names and annotations of patches count with the objects
	}
	return t.grown
}

func sizeAt(s source, at []string) int {
	if s.object == nil {
		return s.size
	}

	var value any = s.object
	for _, part := range at {
		m, ok := value.(map[string]any)
		if !ok {
			break // a list, or a document inside a string: at most all of it
		}
		if value = m[part]; value == nil {
			return 0
		}
	}

	return minJSONSize(value)
}

// overlaps reports whether a field is in the other one, or the other in it. What selects
// list items may select any.
func overlaps(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		selects := func(s string) bool { return s == "*" || strings.HasPrefix(s, "[") || number.MatchString(s) }
		if a[i] != b[i] && !(selects(a[i]) && selects(b[i])) {
			return false
		}
	}
	return true
}

var (
	number   = regexp.MustCompile(`^-?[0-9]+$`)
	selector = regexp.MustCompile(`^\[[A-Za-z0-9_./-]*=[A-Za-z0-9_/:-]+\]$`)
)

// creatable reports whether kustomize can create the field at a path. It looks for the
// list item that it has created, and creates another if it does not find it: forever,
// if the value that selects an item does not match itself.
func creatable(at []string) bool {
	selected := false
	for _, part := range at {
		switch {
		case part == "*" && selected:
			return false
		case strings.HasPrefix(part, "["):
			if selected = true; !selector.MatchString(strings.ReplaceAll(part, ".", "-")) {
				return false
			}
		}
	}
	return true
}

// variables counts what the old vars write into the fields that name them.
func (t *cost) variables(objects []source, list any) {
	vars, _ := list.([]any)
	if len(vars) == 0 {
		return
	}

	uses := 0
	for i := range objects {
		uses += dollars(objects[i].object)
	}
	longest := 0
	for _, item := range vars {
		v, _ := item.(map[string]any)
		ref, _ := v["fieldref"].(map[string]any)
		text, _ := ref["fieldpath"].(string)
		if text == "" {
			text = "metadata.name"
		}
		longest = max(longest, t.valueAt(objects, text))
	}

	t.spend("vars", product(len(vars), 20*len(objects)))
	t.bytes += product(uses, longest)
}

// dollars counts the places at which a variable may be named.
func dollars(value any) (n int) {
	switch value := value.(type) {
	case string:
		return strings.Count(value, "$(")
	case map[string]any:
		for _, v := range value {
			n += dollars(v)
		}
	case []any:
		for _, v := range value {
			n += dollars(v)
		}
	}
	return n
}
