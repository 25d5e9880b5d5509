// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fields is a digest of which fields of an object are ours, as its server has
// it: whoever changes one of them takes it from us, and whoever changes others
// does not touch it. So a hand edit shows in the metadata alone, and a status
// that is written every second does not. The zero Fields is not known.
//
// The last bit says whether spec.replicas is among them, which is left out of
// the rest: an autoscaler may have it.
type Fields uint64

const ownsReplicas Fields = 1

// same is whether the same fields are ours; retained leaves the replicas out.
func (f Fields) same(g Fields, retained bool) bool {
	if retained {
		return f|ownsReplicas == g|ownsReplicas
	}
	return f == g
}

// manager is an entry of metadata.managedFields, as much of it as is needed.
type manager struct {
	Manager     string          `json:"manager"`
	Operation   string          `json:"operation"`
	Subresource string          `json:"subresource"`
	Time        string          `json:"time"`
	FieldsV1    json.RawMessage `json:"fieldsV1"`
}

// owned are the fields that are ours.
func owned(managers []manager) Fields { return fieldsOf(ownSet(managers)) }

// ownSet is our entry.
func ownSet(managers []manager) json.RawMessage {
	for _, m := range managers {
		if m.Manager == Manager && m.Operation == string(metav1.ManagedFieldsOperationApply) && m.Subresource == "" {
			return m.FieldsV1
		}
	}
	return nil
}

func fieldsOf(raw []byte) Fields {
	var replicas Fields
	if bytes.Contains(raw, []byte(`"f:replicas"`)) {
		raw, replicas = withoutReplicas(raw)
	}
	sum := sha256.Sum256(raw)
	return Fields(binary.BigEndian.Uint64(sum[:]))&^ownsReplicas | replicas
}

func withoutReplicas(raw []byte) ([]byte, Fields) {
	var all, spec map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil || json.Unmarshal(all["f:spec"], &spec) != nil || spec["f:replicas"] == nil {
		return raw, 0
	}
	delete(spec, "f:replicas")
	var err error
	if all["f:spec"], err = json.Marshal(spec); err != nil {
		return raw, 0
	}
	if raw, err = json.Marshal(all); err != nil {
		return raw, 0
	}
	return raw, ownsReplicas
}

// lastWriter is who wrote an object last, other than us and than those who
// write its status; "" when nobody did.
func lastWriter(managers []manager) string {
	var last manager
	for _, m := range managers {
		if m.Manager != Manager && m.Subresource != "status" && m.Time >= last.Time {
			last = m
		}
	}
	return last.Manager
}

// versionOf is a resourceVersion as a number that grows; 0 when it is none.
func versionOf(resourceVersion string) uint64 {
	v, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// owns is whether every field of a manifest is among those of an entry of
// managedFields. The entry itself tells how lists are merged: one that is
// empty stands for all below it. It is asked where nothing is known of what
// was ours, so that it costs rendering the manifest.
func owns(fields json.RawMessage, manifest map[string]any, retained bool) bool {
	var set map[string]any
	if json.Unmarshal(fields, &set) != nil {
		return false
	}
	for key, value := range manifest {
		switch key {
		case "apiVersion", "kind":
			continue
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
		if !ownsBelow(set["f:"+key], value) {
			return false
		}
	}
	return true
}

func ownsBelow(set, value any) bool {
	if value == nil {
		return true // nothing is set
	}
	fields, ok := set.(map[string]any)
	if !ok {
		return isEmpty(value)
	}
	if len(fields) == 0 {
		return true // all of it, as one
	}
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if !ownsBelow(fields["f:"+key], child) {
				return false
			}
		}
	case []any:
		for _, item := range value {
			if !ownsBelow(ownedItem(fields, item), item) {
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
// value; nil when it has none.
func ownedItem(fields map[string]any, item any) any {
	object, ok := item.(map[string]any)
	if !ok {
		raw, err := json.Marshal(item)
		if err != nil {
			return nil
		}
		return fields["v:"+string(raw)]
	}
	for key, set := range fields {
		text, ok := strings.CutPrefix(key, "k:")
		var keys map[string]any
		if ok && json.Unmarshal([]byte(text), &keys) == nil && hasKeys(object, keys) {
			return set
		}
	}
	return nil
}

// hasKeys is whether an item has these keys; one that it leaves out is the
// server's default.
func hasKeys(item, keys map[string]any) bool {
	for key, want := range keys {
		if have, ok := item[key]; ok && fmt.Sprint(have) != fmt.Sprint(want) {
			return false
		}
	}
	return true
}
