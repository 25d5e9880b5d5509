// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// inventoryRecord is a dispatch.Entry on disk.
type inventoryRecord struct {
	APIVersion string        `json:"apiVersion"`
	UID        types.UID     `json:"uid,omitempty"`
	Digest     object.Digest `json:"digest"`
	Fields     member.Fields `json:"fields,omitempty"`
	Left       types.UID     `json:"left,omitempty"`
	Version    uint64        `json:"-"`
}

// openInventoryRecord decodes a sealed record. A large fleet has a million of them, so
// those in the exact form that seal writes are decoded by hand, and others as JSON.
func openInventoryRecord(sealed []byte) (inventoryRecord, error) {
	if intact(sealed) {
		if r, ok := quickInventoryRecord(sealed[checksumSize:]); ok {
			return r, nil
		}
	}
	var r inventoryRecord
	err := unseal(sealed, &r)
	return r, err
}

func quickInventoryRecord(raw []byte) (r inventoryRecord, ok bool) {
	text := func(before string) (value []byte) {
		rest, found := bytes.CutPrefix(raw, []byte(before))
		end := bytes.IndexByte(rest, '"')
		if !found || end < 0 {
			return nil
		}
		raw = rest[end+1:]
		return rest[:end]
	}
	apiVersion, uid, digest := text(`{"apiVersion":"`), text(`,"uid":"`), text(`,"digest":"`)
	fields, isNumber := bytes.CutPrefix(raw, []byte(`,"fields":`))
	fields, whole := bytes.CutSuffix(fields, []byte{'}'})
	n, err := strconv.ParseUint(string(fields), 10, 64)
	if apiVersion == nil || uid == nil || !isNumber || !whole || err != nil || bytes.IndexByte(apiVersion, '\\') >= 0 || bytes.IndexByte(uid, '\\') >= 0 {
		return r, false
	}

	r.Digest, ok = object.ParseDigest(string(digest))
	r.APIVersion, r.UID, r.Fields = string(apiVersion), types.UID(uid), member.Fields(n)
	return r, ok
}
