// SPDX-License-Identifier: Apache-2.0

package object

// SizeOf is about the size of a value as JSON.
func SizeOf(value any) (size int) {
	switch value := value.(type) {
	case string:
		return len(value) + 2
	case map[string]any:
		for key, v := range value {
			size += len(key) + 4 + SizeOf(v)
		}
	case []any:
		for _, v := range value {
			size += 1 + SizeOf(v)
		}
	}

	return size + 1
}
