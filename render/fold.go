// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// folded is a copy of what kustomize reads with all keys in lower case, as it ignores
// their case. Which of two that differ in nothing else it takes is hard to tell, so
// there may not be two, except where keys are a user's own.
func (k *kustomized) folded(file string, fields map[string]any) map[string]any {
	out, twice := foldMap(fields, false)
	if twice != "" {
		k.wrong(problem(file, 0, fmt.Sprintf("%s is set twice, in another case", twice)))
	}
	return out
}

// own are the fields under which a user chooses the keys.
var own = []string{"labels", "annotations", "commonlabels", "commonannotations", "pairs", "labelselector"}

func foldMap(fields map[string]any, free bool) (out map[string]any, twice string) {
	out = make(map[string]any, len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		lower := strings.ToLower(key)
		if _, have := out[lower]; have && !free {
			twice = lower
		}

		value, again := foldValue(fields[key], slices.Contains(own, lower))
		out[lower] = value
		if again != "" {
			twice = again
		}
	}

	return out, twice
}

func foldValue(value any, free bool) (folded any, twice string) {
	switch value := value.(type) {
	case map[string]any:
		return foldMap(value, free)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			var again string
			if list[i], again = foldValue(item, free); again != "" {
				twice = again
			}
		}
		return list, twice
	}

	return value, ""
}
