// SPDX-License-Identifier: Apache-2.0

package member

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead/fairlead/object"
)

// Fields is a digest of which fields of an object are ours, as its server has
// it: whoever changes one of them takes it from us, and whoever changes others
// does not touch it. So a hand edit shows in the metadata alone, and a status
// that is written every second does not. The zero Fields is not known.
//
// The last bit says whether spec.replicas is among them, which is left out of
// the rest: an autoscaler may have it.
type Fields uint64

const OwnsReplicas Fields = 1

// Same reports whether the same fields are ours; retained leaves the replicas out.
func (f Fields) Same(g Fields, retained bool) bool {
	if retained {
		return f|OwnsReplicas == g|OwnsReplicas
	}
	return f == g
}

// Owns reports whether every field of a manifest is among those of an entry of
// managedFields. The entry itself tells how lists are merged: one that is
// empty stands for all below it. It is asked where nothing is known of what
// was ours, so that it costs rendering the manifest.
func Owns(fields json.RawMessage, manifest map[string]any, retained bool) bool {
	for range Lost(fields, manifest, retained) {
		return false
	}
	return true
}

// Lost yields the paths of the fields of a manifest that are not among those of an
// entry of managedFields: somebody else has written them since. A path reads
// spec.template.spec.containers[name=web].image; it has no value of the object but the
// keys of list items.
func Lost(fields json.RawMessage, manifest map[string]any, retained bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		var set map[string]any
		if json.Unmarshal(fields, &set) != nil {
			yield("all of it")
			return
		}

		for _, key := range slices.Sorted(maps.Keys(manifest)) {
			value := manifest[key]
			switch key {
			case "apiVersion", "kind":
				continue
			case "sops":
				if object.IsEncrypted(manifest) {
					continue // it was sent decrypted
				}
			case "stringData":
				if object.IsSecret(manifest) {
					key = "data" // it was sent as that
				}
			case "metadata":
				meta, _ := value.(map[string]any)
				value = map[string]any{"labels": meta["labels"], "annotations": meta["annotations"]}
			case "spec":
				if spec, ok := value.(map[string]any); ok && retained && spec["replicas"] != nil {
					spec = maps.Clone(spec)
					delete(spec, "replicas")
					value = spec
				}
			}
			if !lostBelow(set["f:"+key], value, key, yield) {
				return
			}
		}
	}
}

// lostBelow yields what is lost of a value, and reports whether to go on.
func lostBelow(set, value any, path string, yield func(string) bool) bool {
	if value == nil {
		return true // nothing is set
	}

	fields, ok := set.(map[string]any)
	_, isMap := value.(map[string]any)
	switch {
	case !ok && isEmpty(value):
		return true
	case !ok && !isMap:
		return yield(path)
	case ok && len(fields) == 0:
		return true // all of it, as one
	}

	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if !lostBelow(fields["f:"+key], value[key], path+"."+key, yield) {
				return false
			}
		}
	case []any:
		for i, item := range value {
			of, key := ownedItem(fields, item)
			if key == "" {
				key = strconv.Itoa(i)
			}
			if !lostBelow(of, item, path+"["+key+"]", yield) {
				return false
			}
		}
	}
	return true
}

// isEmpty is of values that a server may leave out.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			if !isEmpty(child) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	}
	return value == nil
}

// ownedItem is what a set says of an item of a list: by its keys, or by its
// value; nil when it has none. key reads name=web, empty for a value.
func ownedItem(fields map[string]any, item any) (set any, key string) {
	object, ok := item.(map[string]any)
	if !ok {
		raw, err := json.Marshal(item)
		if err != nil {
			return nil, ""
		}
		return fields["v:"+string(raw)], ""
	}

	for key, set := range fields {
		text, ok := strings.CutPrefix(key, "k:")
		var keys map[string]any
		if ok && json.Unmarshal([]byte(text), &keys) == nil && hasKeys(object, keys) {
			return set, keyText(keys)
		}
	}
	return nil, ""
}

func keyText(keys map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, keys[name]))
	}
	return strings.Join(parts, ",")
}

// hasKeys reports whether an item has these keys; one that it leaves out is the
// server's default.
func hasKeys(item, keys map[string]any) bool {
	for key, want := range keys {
		if have, ok := item[key]; ok && fmt.Sprint(have) != fmt.Sprint(want) {
			return false
		}
	}
	return true
}
