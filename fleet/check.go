// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
)

// check collects the problems of one document, each with its line, so that a
// commit reports all of them at once.
type check struct {
	origin   Origin
	unit     string // path of the unit that renders the document; "" if not known
	lines    map[string]int
	problems []Problem
}

// at records a problem of the field at path. Its line is that of the nearest
// ancestor of the path that the document has.
func (c *check) at(path, format string, args ...any) {
	origin := Origin{c.origin.File, c.line(path)}
	c.problems = append(c.problems, Problem{origin, fmt.Sprintf(format, args...)})
}

func (c *check) line(path string) int {
	for path != "" {
		if line := c.lines[path]; line != 0 {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return c.origin.Line
}
