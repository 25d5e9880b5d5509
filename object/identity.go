// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"strings"
)

// SameIdentity returns an error if an edit of before would make after another
// object (T42).
func SameIdentity(before, after map[string]any) error {
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		if was, is := textAt(before, path), textAt(after, path); was != is {
			return fmt.Errorf("it must not change %s from %q to %q", strings.Join(path, "."), was, is)
		}
	}
	return nil
}

func textAt(object map[string]any, path []string) string {
	for _, field := range path[:len(path)-1] {
		object, _ = object[field].(map[string]any)
	}
	text, _ := object[path[len(path)-1]].(string)
	return text
}
