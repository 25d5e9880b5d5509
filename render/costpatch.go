// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// copyLimit limits the bytes that the copy operations of one patch add to one object.
// The library counts them, as a copy into itself doubles what is copied next.
const copyLimit = 1 << 20

// patch is one entry of a kustomization's patches, or of a plugin that patches.
type patch struct {
	text    []byte
	target  map[string]any // nil without one
	renames bool           // it may give an object another name or kind
}

// patchesIn are the patches of a kustomization, or of a plugin, with its keys folded.
func (k *kustomized) patchesIn(dir string, fields map[string]any) (all []patch) {
	add := func(value any, isPath bool, entry map[string]any) {
		text, ok := value.(string)
		if !ok {
			return
		}
		if isPath {
			b, err := k.content(path.Join(dir, text))
			if err != nil {
				return // it was reported
			}
			text = string(b)
		}

		target, _ := entry["target"].(map[string]any)
		options, _ := entry["options"].(map[string]any)
		renames := options["allownamechange"] == true || options["allowkindchange"] == true
		all = append(all, patch{[]byte(text), target, renames})
	}

	entries := []any{}
	for _, field := range []string{"patches", "patchesjson6902"} {
		list, _ := fields[field].([]any)
		entries = append(entries, list...)
	}
	if kind, _ := fields["kind"].(string); strings.HasPrefix(kind, "Patch") {
		entries = append(entries, fields)
		add(fields["jsonop"], false, fields)
		add(fields["patches"], false, fields)
		paths, _ := fields["paths"].([]any)
		for _, p := range paths {
			add(p, true, fields)
		}
	}

	for _, item := range entries {
		entry, _ := item.(map[string]any)
		add(entry["path"], true, entry)
		add(entry["patch"], false, entry)
	}

	merged, _ := fields["patchesstrategicmerge"].([]any)
	for _, item := range merged {
		text, _ := item.(string)
		add(item, !strings.ContainsAny(text, "\n{") && !strings.Contains(text, ": "), nil)
	}

	return all
}

// parsed are the documents of a patch: lists of operations, and objects to merge.
func (p patch) parsed() (operations [][]any, merges []map[string]any) {
	for _, part := range split(p.text, false) {
		raw, err := yaml.YAMLToJSON(part.text)
		if err != nil {
			continue // it was reported, or kustomize reports it
		}

		var value any
		if json.Unmarshal(raw, &value) != nil {
			continue
		}
		switch value := value.(type) {
		case []any:
			operations = append(operations, value)
		case map[string]any:
			merges = append(merges, value)
		}
	}

	return operations, merges
}

// patches counts what patches cost on these objects, in their order: a later one edits
// what an earlier one made larger.
func (t *cost) patches(objects []source, patches []patch) {
	renames := t.renames(patches)
	for _, p := range patches {
		if t.spend("patches", 2*len(objects)); t.took() > maxSteps {
			return
		}

		operations, merges := p.parsed()
		for _, list := range operations {
			t.patch(matches(objects, p.target, renames), list, len(p.text))
		}
		for _, m := range merges {
			t.merge(objects, p, m, renames)
		}
	}
}

// renames reports whether the objects may get names or kinds that their files do not
// have, other than by prefixes and suffixes.
func (t *cost) renames(patches []patch) bool {
	for _, p := range patches {
		if p.renames || bytes.Contains(p.text, []byte("/metadata/name")) || bytes.Contains(p.text, []byte("/kind")) || bytes.Contains(p.text, []byte(`"/metadata"`)) {
			return true
		}
	}
	return len(t.wrote) > 0
}

// patch counts a list of operations on objects.
func (t *cost) patch(objects []source, operations []any, size int) {
	copies, largest := 0, 0
	for _, item := range operations {
		if operation, _ := item.(map[string]any); operation["op"] == "copy" {
			copies++
		}
	}

	for i := range objects {
		t.spend("patches", stepsPerPatch+5*len(operations)+(objects[i].size+t.grown+size)/bytesPerStep)
		largest = max(largest, objects[i].size)
	}

	added := size
	for range min(copies, 64) {
		added = min(added+added+largest+t.grown, size+copyLimit+largest+t.grown)
	}
	t.bytes += product(added, len(objects))
	t.grown += added
	t.items += len(operations)
	if copies > 0 {
		t.items += added / 2
	}
}

// merge counts a strategic merge. Without a target it merges with one object, of the
// same kind and name as far as names stay.
func (t *cost) merge(objects []source, p patch, from map[string]any, renames bool) {
	found := matches(objects, p.target, renames)
	if p.target == nil {
		kind, _ := from["kind"].(string)
		meta, _ := from["metadata"].(map[string]any)
		name, _ := meta["name"].(string)
		if found = matches(objects, map[string]any{"kind": kind, "name": name}, renames); len(found) == 0 {
			found = objects
		}
	}

	most := 0
	for i := range found {
		steps := stepsPerMerge + (found[i].size+t.grown+len(p.text))/bytesPerStep + min(mergeSteps(from, found[i].object, t.items), maxSteps)
		if most = max(most, steps); p.target != nil {
			t.spend("strategic merges", steps)
		}
	}
	if p.target == nil {
		t.spend("strategic merges", most)
		found = found[:min(len(found), 1)]
	}

	t.bytes += product(len(p.text), len(found))
	t.grown += len(p.text)
	t.items += listItems(from)
}

// mergeSteps is the work of merging two values: in lists of objects kustomize looks for
// each item among all of both, and in objects for each field.
func mergeSteps(patch, object any, items int) int {
	switch patch := patch.(type) {
	case map[string]any:
		into, _ := object.(map[string]any)
		steps := (len(patch) + len(into) + items) * (len(patch) + len(into)) / 50
		for key, v := range patch {
			if steps += mergeSteps(v, into[key], items); steps > maxSteps {
				return steps
			}
		}
		return steps
	case []any:
		into, _ := object.([]any)
		n := len(patch) + len(into) + items
		steps := product(n, n)
		if len(patch) > 0 {
			if _, objects := patch[0].(map[string]any); !objects {
				return n // replaced as a whole
			}
		}

		for _, item := range patch {
			if steps > maxSteps {
				return steps
			}
			most := 0
			if listItems(item) == 0 {
				continue // its fields are few against the items
			}
			for _, other := range into {
				most = max(most, mergeSteps(item, other, items))
			}
			steps += most
		}
		return steps
	}

	return 1
}

// listItems counts the items of all lists in a value.
func listItems(value any) (n int) {
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			n += listItems(v)
		}
	case []any:
		n = len(value)
		for _, v := range value {
			n += listItems(v)
		}
	}
	return n
}
