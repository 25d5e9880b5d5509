// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strconv"

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
func owned(managers []manager) Fields {
	for _, m := range managers {
		if m.Manager == Manager && m.Operation == string(metav1.ManagedFieldsOperationApply) && m.Subresource == "" {
			return fieldsOf(m.FieldsV1)
		}
	}
	return fieldsOf(nil)
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
