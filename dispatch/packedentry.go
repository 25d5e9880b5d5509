// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"unique"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// packedEntry is an Entry in half the memory: the API version, which thousands share, is
// there once, and a UUID is its 16 bytes. What was left running is not in it.
type packedEntry struct {
	apiVersion unique.Handle[string]
	uuid       uuid.UUID // zero: none
	digest     object.Digest
	fields     member.Fields
	version    uint64
}

// pack reports false if the UID of the entry is something else than a UUID, which files
// have. It is left out then.
func (e *Entry) pack(apiVersion unique.Handle[string]) (p packedEntry, whole bool) {
	p = packedEntry{apiVersion: apiVersion, digest: e.Digest, fields: e.Fields, version: e.Version}
	if e.UID == "" {
		return p, true
	}
	p.uuid, whole = parseUUID(e.UID)
	return p, whole
}

func (p *packedEntry) unpack() Entry {
	return Entry{APIVersion: p.apiVersion.Value(), UID: formatUUID(p.uuid), Digest: p.digest, Fields: p.fields, Version: p.version}
}

// parseUUID reports false for everything that formatUUID does not write.
func parseUUID(uid types.UID) (uuid.UUID, bool) {
	u, err := uuid.Parse(string(uid))
	if err != nil || formatUUID(u) != uid {
		return uuid.Nil, false
	}
	return u, true
}

// formatUUID returns the text of a UUID, and none for zero.
func formatUUID(u uuid.UUID) types.UID {
	if u == uuid.Nil {
		return ""
	}
	return types.UID(u.String())
}
