// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/fairlead/fairlead/interpret"

// quantityFields are the fields of a pod that hold quantities. True means a map of
// them by resource.
var quantityFields = map[string]bool{"requests": true, "limits": true, "overhead": true, "sizeLimit": false, "divisor": false}

// hasUnusableQuantity reports whether a pod has a quantity that is out of range
// (T26).
func hasUnusableQuantity(value any) bool {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if hasUnusableQuantity(item) {
				return true
			}
		}
	case map[string]any:
		for key, item := range value {
			if _, holds := quantityFields[key]; holds && Immense(item) || hasUnusableQuantity(item) {
				return true
			}
		}
	}

	return false
}

// Immense reports whether a text inside value is not a usable quantity (T26).
func Immense(value any) bool {
	switch value := value.(type) {
	case string:
		return !interpret.IsQuantity(value)
	case []any:
		for _, item := range value {
			if Immense(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range value {
			if Immense(item) {
				return true
			}
		}
	}

	return false
}
