// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/base64"
	"maps"
)

// Stored returns a Secret as a server keeps it: its stringData is in its data, where it
// wins. Any other manifest is returned as it is, and so are values that a server refuses.
//
// A Secret is sent and compared so: whoever applies stringData owns none of the keys that
// it becomes, so that a key removed in git would stay, and a change by hand not be seen.
func Stored(manifest map[string]any) map[string]any {
	text, ok := manifest["stringData"].(map[string]any)
	if !ok || !IsSecret(manifest) {
		return manifest
	}
	was, ok := manifest["data"].(map[string]any)
	if !ok && manifest["data"] != nil {
		return manifest
	}

	data, refused := maps.Clone(was), map[string]any{}
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range text {
		if s, ok := value.(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(s))
		} else {
			refused[key] = value
		}
	}

	stored := maps.Clone(manifest)
	delete(stored, "stringData")
	if len(refused) > 0 {
		stored["stringData"] = refused
	}
	if len(data) > 0 {
		stored["data"] = data
	}
	return stored
}
