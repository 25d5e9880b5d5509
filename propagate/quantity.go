// SPDX-License-Identifier: Apache-2.0

package propagate

import "github.com/fairlead/fairlead/propagate/interpret"

// amounts are the fields of a pod that have quantities: those of the first
// kind by resource.
var amounts = map[string]bool{"requests": true, "limits": true, "overhead": true, "sizeLimit": false, "divisor": false}

// immense is whether a pod has a quantity that nobody computes with (T26).
func immense(value any) bool {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if immense(item) {
				return true
			}
		}
	case map[string]any:
		for key, item := range value {
			if _, holds := amounts[key]; holds && Immense(item) || immense(item) {
				return true
			}
		}
	}
	return false
}

// Immense is whether one of the texts in a value is no quantity that can be
// computed with (T26).
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
