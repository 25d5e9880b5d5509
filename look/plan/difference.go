// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Path is one field in which what a cluster would have differs from what it has.
type Path struct {
	// Path is dotted, and names an element of a list by its merge key, else by its
	// index: spec.template.spec.containers[name=web].image.
	Path string `json:"path"`
	// Before and After are null where the field is not set. A long text is cut, and
	// the value of a Secret, or one that SOPS encrypted, is a [Redacted].
	Before any `json:"before"`
	After  any `json:"after"`
}

// Redacted stands for a value that is never shown.
type Redacted struct {
	Redacted bool `json:"redacted"`
	Same     bool `json:"same"`
}

// difference is what differs between two contents of an object.
type difference struct {
	paths  []Path
	hidden int    // paths of noise, which are not in paths
	key    string // is equal for equal differences, but for the share of replicas
}

// compare returns the difference between what a cluster runs and what it would have. It
// has no paths if one of them is missing, or not at hand.
func compare(runs, wants *propagate.Content, noise bool) *difference {
	before, after := runs.Object(), wants.Object()
	d := &difference{}
	if before == nil || after == nil {
		return d
	}

	encrypted := object.IsEncrypted(before) || object.IsEncrypted(after)
	var key []byte
	for _, f := range push.Changes(before, after) {
		if !noise && isNoise(f, encrypted) {
			d.hidden++
			continue
		}
		if f.Path != pathReplicas {
			key = append(key, keyOf(f)...)
		}
		d.paths = append(d.paths, shown(f, encrypted))
	}

	d.key = object.DigestOf(key).String()
	return d
}

// pathReplicas is the field that divided clusters have otherwise each.
const pathReplicas = "spec.replicas"

// keyOf is equal for equal fields. A value that JSON cannot have is not in a manifest.
func keyOf(f push.Difference) []byte {
	key, err := json.Marshal(f)
	if err != nil {
		return []byte(f.Path)
	}
	return key
}

func shown(f push.Difference, encrypted bool) Path {
	if f.Redacted || encrypted && (isCiphertext(f.Before) || isCiphertext(f.After)) {
		return Path{Path: f.Path, Before: Redacted{Redacted: true}, After: Redacted{Redacted: true}}
	}
	return Path{Path: f.Path, Before: clipped(f.Before), After: clipped(f.After)}
}

func isCiphertext(v any) bool {
	s, ok := v.(string)
	return ok && strings.HasPrefix(s, "ENC[")
}

// Values of a plan are cut beyond so many bytes: a diff has the whole.
const (
	mostText  = 1024
	mostValue = 4096
)

// clipped returns a value that is no longer than a plan may show.
func clipped(v any) any {
	if s, ok := v.(string); ok {
		if len(s) <= mostText {
			return s
		}
		cut := mostText
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		return fmt.Sprintf("%s… (%d bytes)", s[:cut], len(s))
	}

	raw, err := json.Marshal(v)
	if err != nil || len(raw) > mostValue {
		return fmt.Sprintf("(%d bytes)", len(raw))
	}
	return v
}

// isNoise reports whether a field follows from another change, and tells a reviewer
// nothing: checksums, the version of a chart, what SOPS notes of itself, and the hash in
// the name of a generated object.
func isNoise(f push.Difference, encrypted bool) bool {
	path := f.Path
	switch {
	case encrypted && (path == "sops" || strings.HasPrefix(path, "sops.")):
		return true
	case strings.Contains(path, "metadata.annotations"):
		return strings.Contains(path, "checksum") || strings.Contains(path, "last-applied-configuration")
	case strings.Contains(path, "metadata.labels"):
		return strings.Contains(path, "helm.sh/chart")
	}
	return !f.Redacted && rehashed(f.Before, f.After)
}

// rehashed reports whether nothing differs but references that follow generated objects
// to their next names.
func rehashed(before, after any) bool {
	switch b := before.(type) {
	case string:
		a, ok := after.(string)
		if !ok || a == b {
			return ok
		}
		was, _, generated := object.CutHash(b)
		is, _, still := object.CutHash(a)
		return generated && still && was == is
	case []any:
		a, ok := after.([]any)
		return ok && slices.EqualFunc(b, a, rehashed)
	case map[string]any:
		a, ok := after.(map[string]any)
		return ok && maps.EqualFunc(b, a, rehashed)
	}
	return reflect.DeepEqual(before, after)
}

// withoutShare returns paths without that of the replicas.
func withoutShare(paths []Path) []Path {
	return slices.DeleteFunc(slices.Clone(paths), func(p Path) bool { return p.Path == pathReplicas })
}
