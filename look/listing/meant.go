// SPDX-License-Identifier: Apache-2.0

package listing

import "strings"

// Meant returns the noun that a word is one typo away from; "" if there is none. A
// resource of Kubernetes with such a name is told by its group, as in works.example.com.
func Meant(word string) string {
	if IsNoun(word) || len(word) < 4 {
		return ""
	}
	for _, noun := range Nouns {
		for _, form := range []string{noun, strings.TrimSuffix(noun, "s"), strings.TrimSuffix(noun, "ies") + "y"} {
			if IsNoun(form) && isOneTypo(strings.ToLower(word), form) {
				return noun
			}
		}
	}
	return ""
}

// isOneTypo reports whether one letter more, less or other, or two that are swapped,
// make a word of another one.
func isOneTypo(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}

	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch restA, restB := a[i:], b[i:]; {
	case len(a) < len(b):
		return restA == restB[1:]
	case len(restA) == 0:
		return true
	case restA[1:] == restB[1:]:
		return true
	default:
		return len(restA) > 1 && restA[0] == restB[1] && restA[1] == restB[0] && restA[2:] == restB[2:]
	}
}
