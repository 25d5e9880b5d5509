// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// packedEntry is an Entry in half the memory: the API version, which thousands share, is
// there once, and a UUID is its 16 bytes. What was left running is not in it.
type packedEntry struct {
	apiVersion unique.Handle[string]
	uuid       [16]byte // zero: none
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
func parseUUID(uid types.UID) (uuid [16]byte, ok bool) {
	if len(uid) != len(uuidForm) {
		return uuid, false
	}

	digits := 0
	for i := range len(uuidForm) {
		if uuidForm[i] == '-' {
			if uid[i] != '-' {
				return uuid, false
			}
			continue
		}
		value := strings.IndexByte(hexDigits, uid[i])
		if value < 0 {
			return uuid, false
		}
		uuid[digits/2] = uuid[digits/2]<<4 | byte(value)
		digits++
	}
	return uuid, uuid != [16]byte{}
}

// formatUUID returns the text of a UUID, and none for zero.
func formatUUID(uuid [16]byte) types.UID {
	if uuid == ([16]byte{}) {
		return ""
	}

	text, digits := []byte(uuidForm), 0
	for i, c := range text {
		if c == '-' {
			continue
		}
		half := uuid[digits/2]
		if digits%2 == 0 {
			half >>= 4
		}
		text[i] = hexDigits[half&0xf]
		digits++
	}
	return types.UID(text)
}

const (
	uuidForm  = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	hexDigits = "0123456789abcdef"
)
