// SPDX-License-Identifier: Apache-2.0

package object

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Digest is a SHA-256. The zero Digest stands for no content.
type Digest [sha256.Size]byte

// DigestOf hashes bytes.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// String reads "sha256:" and 64 hex digits; the zero Digest is empty.
func (d Digest) String() string {
	if d == (Digest{}) {
		return ""
	}
	return "sha256:" + hex.EncodeToString(d[:])
}

// ParseDigest is the inverse of String.
func ParseDigest(s string) (Digest, bool) {
	var d Digest
	if s == "" {
		return d, true
	}
	if len(s) != len("sha256:")+2*len(d) || s[:len("sha256:")] != "sha256:" {
		return d, false
	}

	var digits [2 * len(d)]byte // not from the heap, since a large fleet has a million digests
	copy(digits[:], s[len("sha256:"):])
	_, err := hex.Decode(d[:], digits[:])
	return d, err == nil
}

// MarshalText writes what String reads.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, ok := ParseDigest(string(text))
	if !ok {
		return fmt.Errorf("invalid digest %q", text)
	}
	*d = parsed
	return nil
}

// DigestJSON hashes v's JSON. It panics if v cannot be marshalled.
func DigestJSON(v any) Digest {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("object: marshal %T: %v", v, err))
	}
	return DigestOf(b)
}
