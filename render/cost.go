// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of one unit. They are counts of what a kustomization asks for, taken before
// kustomize begins, and not in seconds, because a commit must give the same result on
// every machine (docs/design/0019-limits.md).
const (
	maxUses    = 10_000 // kustomizations, counted each time they are used
	maxObjects = 5_000
	maxPairs   = 2 * maxObjects * maxObjects
	maxSteps   = 100_000_000 // of about a microsecond
	maxBytes   = 64 << 20    // read, and added by generators, patches and replacements
	maxOutput  = 64 << 20
)

// What kustomize does, in steps. They were measured on small objects; larger ones are
// counted by their size.
const (
	stepsPerPatch     = 700 // of one object, by operations
	stepsPerMerge     = 600 // of one object, by a strategic merge
	stepsPerImage     = 150 // for one object
	stepsPerMark      = 20  // of a transformer on an object, for each mark that it has
	stepsPerSetting   = 5   // of a kustomization, for one object
	stepsPerReference = 2   // to an object by its name, for one candidate
	stepsPerSpec      = 4   // of a configuration, for one object
	bytesPerStep      = 4   // parsed, copied and written again
	keysPerStep       = 100 // pairs of keys of one generated object
)

// cost is the work of building a kustomization and everything it uses. What is
// used twice counts twice.
type cost struct {
	uses     int // kustomizations, including itself
	objects  int
	pairs    int // of objects to compare
	steps    map[string]int
	bytes    int
	all      []source // the objects
	specs    int      // field specifications of configurations
	grown    int      // bytes that patches may have added to one object
	items    int      // list items that they may have added to it
	wrote    []writing
	passes   int  // transformers that an object may go through
	marks    int  // of those that kustomize would note on the objects
	reported bool // an exceeded limit was already reported
}

// source is an object before kustomize edits it.
type source struct {
	kind, name string
	object     map[string]any // nil for a generated one
	size       int
}

func (t *cost) add(used cost) {
	t.uses += used.uses
	t.objects += used.objects
	t.pairs += used.pairs
	t.bytes += used.bytes
	t.specs += used.specs
	t.grown += used.grown
	t.items += used.items
	t.marks += used.marks
	t.passes = max(t.passes, used.passes)
	t.wrote = append(t.wrote, used.wrote...)
	t.all = append(t.all, used.all...)
	for what, n := range used.steps {
		t.spend(what, n)
	}
	t.reported = t.reported || used.reported
}

// maxWritings limits the fields that replacements write. Each of them is compared with
// those that were written before.
const maxWritings = 10_000

// spend counts steps under what they are for.
func (t *cost) spend(what string, steps int) {
	if t.steps == nil {
		t.steps = map[string]int{}
	}
	t.steps[what] = min(t.steps[what]+steps, maxSteps+1)
}

// took is the sum of all steps.
func (t *cost) took() (sum int) {
	for _, n := range t.steps {
		sum += n
	}
	return sum
}

// exceeded names the limit that is exceeded and says what to do; "" if none is.
func (t *cost) exceeded() string {
	switch {
	case t.uses > maxUses:
		return fmt.Sprintf("kustomization uses more than %d kustomizations", maxUses)
	case t.objects > maxObjects:
		return fmt.Sprintf("kustomization makes more than %d objects, and kustomize compares each with every other: split it, or move what does not need kustomize into plain files outside", maxObjects)
	case t.pairs > maxPairs:
		return fmt.Sprintf("kustomization passes its %d objects through too many others, in each of which kustomize compares every one with every other: split it, or move what does not need kustomize into plain files outside", t.objects)
	case t.bytes > maxBytes:
		return fmt.Sprintf("kustomization reads, generates and copies more than %d bytes: split it, or move what does not need kustomize into plain files outside", maxBytes)
	case t.took() > maxSteps:
		return fmt.Sprintf("kustomization would take kustomize more than %d steps, most of them for %s: split it, or move what does not need kustomize into plain files outside", maxSteps, t.most())
	}

	return ""
}

// most names what takes most of the steps.
func (t *cost) most() (what string) {
	for _, name := range slices.Sorted(maps.Keys(t.steps)) {
		if what == "" || t.steps[name] > t.steps[what] {
			what = name
		}
	}
	return what
}

// clamped keeps sums in range.
func (t cost) clamped() cost {
	t.uses, t.objects, t.pairs, t.bytes = min(t.uses, maxUses), min(t.objects, maxObjects), min(t.pairs, maxPairs), min(t.bytes, maxBytes)
	t.specs, t.grown, t.items = min(t.specs, maxSteps), min(t.grown, maxBytes), min(t.items, maxSteps)
	if t.took() > maxSteps {
		t.steps = map[string]int{t.most(): maxSteps}
	}
	t.marks = min(t.marks, maxSteps)
	t.all = t.all[:min(len(t.all), maxObjects)]
	t.wrote = t.wrote[:min(len(t.wrote), maxWritings)]
	return t
}

// product multiplies counts without overflow; beyond every limit it need not be exact.
func product(a, b int) int {
	if a > 0 && b > 1<<40/a {
		return 1 << 40
	}
	return a * b
}

// sourceOf is a document as kustomize reads it.
func sourceOf(d *document) source {
	meta, _ := d.object["metadata"].(map[string]any)
	s := source{object: d.object, size: minJSONSize(d.object)}
	s.name, _ = meta["name"].(string)
	s.kind, _ = d.object["kind"].(string)
	return s
}

// settings counts what a kustomization, or a plugin, says for all of its objects.
func (t *cost) settings(objects []source, value any) {
	t.spend("labels, names and other settings", product(stepsPerSetting*nodes(value), len(objects)))
	t.bytes += product(minJSONSize(value), len(objects))
}

// nodes counts a value and everything in it.
func nodes(value any) (n int) {
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			n += nodes(v)
		}
	case []any:
		for _, v := range value {
			n += nodes(v)
		}
	}
	return n + 1
}

// images counts a list of images: each is a pass through all objects.
func (t *cost) images(objects []source, images int) {
	size := 0
	for i := range objects {
		size += objects[i].size + t.grown
	}
	t.spend("images", product(images, len(objects)*stepsPerImage+size/bytesPerStep))
}

// references counts the fields that name another object. In the end, kustomize looks
// for each of them among all objects.
func (t *cost) references() {
	found := 0
	for i := range t.all {
		found += referencesIn("", t.all[i].object)
	}
	t.spend("references by name", product(stepsPerReference*(found+t.items), t.objects))
}

// referring are the fields of the kinds of Kubernetes that kustomize takes for the name
// of another object, each with the field that it is in; "" is any.
var referring = map[string]string{
	"secretName": "", "claimName": "", "serviceName": "", "serviceAccountName": "", "storageClassName": "", "volumeName": "",
	"priorityClassName": "", "ingressClassName": "", "policyName": "", "resourceNames": "", "service": "clientConfig",
}

// named are the fields of which "name" is such a name.
var named = []string{
	"secretKeyRef", "secretRef", "configMapRef", "configMapKeyRef", "configMap", "secret", "imagePullSecrets",
	"scaleTargetRef", "service", "roleRef", "subjects", "configSource",
}

func referencesIn(parent string, value any) (n int) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			n += referencesIn(parent, item)
		}
	case map[string]any:
		for key, v := range value {
			in, known := referring[key]
			switch {
			case known && (in == "" || in == parent), key == "name" && slices.Contains(named, parent):
				if list, ok := v.([]any); ok {
					n += len(list)
				} else {
					n++
				}
			case key == "annotations":
				continue // a few keys of ingress controllers
			}
			n += referencesIn(key, v)
		}
	}

	return n
}

// generator counts the keys and bytes of a ConfigMap or Secret. Adding a key looks at
// all others.
func (t *cost) generator(kind, name string, keys, size int) {
	t.objects++
	t.bytes += size
	t.all = append(t.all, source{kind: kind, name: name, size: size})
	t.spend("keys of generated objects", product(keys, keys)/keysPerStep)
}

// matches are the objects that a target may select. A name or kind without a wildcard
// selects objects of that name or kind, unless something renames them.
func matches(objects []source, target map[string]any, renames bool) []source {
	text := func(key string) string { s, _ := target[key].(string); return s }
	kind, name := text("kind"), text("name")
	literal := func(s string) bool { return s != "" && !strings.ContainsAny(s, `\.+*?()|[]{}^$`) }

	var found []source
	for _, o := range objects {
		switch {
		case renames:
		case literal(kind) && kind != o.kind:
			continue
		case literal(name) && o.name != "" && !strings.Contains(name, o.name):
			continue
		}
		found = append(found, o)
	}

	return found
}
