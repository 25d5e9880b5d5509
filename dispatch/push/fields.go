// SPDX-License-Identifier: Apache-2.0

package push

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// manager is an entry of metadata.managedFields, as much of it as is needed.
type manager struct {
	Manager     string          `json:"manager"`
	Operation   string          `json:"operation"`
	Subresource string          `json:"subresource"`
	Time        string          `json:"time"`
	FieldsV1    json.RawMessage `json:"fieldsV1"`
}

// owned are the fields that are ours.
func owned(managers []manager) member.Fields { return fieldsOf(ownSet(managers)) }

// ownSet is our entry.
func ownSet(managers []manager) json.RawMessage {
	for _, m := range managers {
		if m.Manager == object.Manager && m.Operation == string(metav1.ManagedFieldsOperationApply) && m.Subresource == "" {
			return m.FieldsV1
		}
	}
	return nil
}

func fieldsOf(raw []byte) member.Fields {
	var replicas member.Fields
	if bytes.Contains(raw, []byte(`"f:replicas"`)) {
		raw, replicas = withoutReplicas(raw)
	}
	sum := sha256.Sum256(raw)
	return member.Fields(binary.BigEndian.Uint64(sum[:]))&^member.OwnsReplicas | replicas
}

func withoutReplicas(raw []byte) ([]byte, member.Fields) {
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
	return raw, member.OwnsReplicas
}

// lastWriter is who wrote an object last, other than us and than those who
// write its status; "" when nobody did.
func lastWriter(managers []manager) string {
	var last manager
	for _, m := range managers {
		if m.Manager != object.Manager && m.Subresource != "status" && m.Time >= last.Time {
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
