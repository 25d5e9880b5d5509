// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"strings"
)

// check collects what is wrong with one document, each with the line it
// stands on, so that a commit's problems are told all at once.
type check struct {
	origin   Origin
	lines    map[string]int
	problems []Problem
}

// at records a problem of the field at path. The line is that of the nearest
// part of the path that the document has.
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
