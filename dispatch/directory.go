// SPDX-License-Identifier: Apache-2.0

package dispatch

// Directory is a member as a directory of YAML files, one per object, that the
// member's own tools apply.
func Directory(dir string) Member { return nil }
