// SPDX-License-Identifier: Apache-2.0

package source

// Short is a commit's hash as people write it.
func Short(hash string) string { return hash[:min(len(hash), 7)] }
