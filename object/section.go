// SPDX-License-Identifier: Apache-2.0

package object

// Section returns the map in a field of m, and creates it if necessary.
func Section(m map[string]any, field string) map[string]any {
	inner, ok := m[field].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[field] = inner
	}
	return inner
}
