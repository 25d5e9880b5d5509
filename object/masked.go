// SPDX-License-Identifier: Apache-2.0

package object

import "maps"

// Mask stands for a value that is not shown.
const Mask = "***"

// IsSecret reports whether a manifest is that of a Secret.
func IsSecret(manifest map[string]any) bool {
	return manifest["kind"] == "Secret" && manifest["apiVersion"] == "v1"
}

// Masked returns a manifest as it may be shown: of a Secret it has the keys and not the
// values. Its annotations are masked too, as tools leave whole manifests there, and so
// is a field that no Secret has, which may be a value that is indented wrongly.
func Masked(manifest map[string]any) map[string]any {
	if !IsSecret(manifest) {
		return manifest
	}

	masked := map[string]any{}
	for field, value := range manifest {
		switch field {
		case "apiVersion", "kind", "type", "immutable":
			masked[field] = value
		case "metadata":
			meta, _ := value.(map[string]any)
			meta = maps.Clone(meta)
			if meta["annotations"] != nil {
				meta["annotations"] = masks(meta["annotations"], true)
			}
			delete(meta, "managedFields")
			masked[field] = meta
		default:
			masked[field] = masks(value, false)
		}
	}
	return masked
}

// masks are the keys of a map with masked values; our own annotations are shown.
func masks(value any, annotations bool) any {
	values, ok := value.(map[string]any)
	if !ok {
		return Mask
	}
	out := make(map[string]any, len(values))
	for key, value := range values {
		out[key] = Mask
		if annotations && IsOurs(key) {
			out[key] = value
		}
	}
	return out
}
