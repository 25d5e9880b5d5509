// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NoContextError is the error of a cluster that a kubeconfig has no context for.
type NoContextError struct {
	File    string
	Missing bool // there is no such file
	Cluster string
}

func (e *NoContextError) Error() string {
	if e.Missing {
		return fmt.Sprintf("kubeconfig %s does not exist", e.File)
	}
	return fmt.Sprintf("kubeconfig %s has no context %q", e.File, e.Cluster)
}

// mostNamed is how many clusters are named of those that have no context.
const mostNamed = 3

// WithoutContext says of each kubeconfig once how many clusters it has no context for,
// of all that there are, and returns the other errors. One cluster alone is among them.
func WithoutContext(failed map[string]error, all int) (lines []string, rest map[string]error) {
	clusters := map[NoContextError][]string{}
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		var e *NoContextError
		if errors.As(failed[name], &e) {
			of := NoContextError{File: e.File, Missing: e.Missing}
			clusters[of] = append(clusters[of], name)
		}
	}

	rest = maps.Clone(failed)
	for of, names := range clusters {
		if len(names) == 1 {
			continue
		}
		for _, name := range names {
			delete(rest, name)
		}
		list := strings.Join(names[:min(len(names), mostNamed)], ", ")
		if more := len(names) - mostNamed; more > 0 {
			list += fmt.Sprintf(" and %d more", more)
		}
		count := fmt.Sprintf("%d of %d clusters", len(names), all)
		if of.Missing {
			lines = append(lines, fmt.Sprintf("kubeconfig %s does not exist; %s need a context in it: %s", of.File, count, list))
			continue
		}
		lines = append(lines, fmt.Sprintf("kubeconfig %s has no context for %s: %s", of.File, count, list))
	}

	slices.Sort(lines)
	return lines, rest
}
