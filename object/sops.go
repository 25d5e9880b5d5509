// SPDX-License-Identifier: Apache-2.0

package object

// IsEncrypted reports whether a manifest is encrypted with SOPS.
func IsEncrypted(manifest map[string]any) bool {
	_, sops := manifest["sops"].(map[string]any)
	return sops
}
