// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
)

// Problems are all the mistakes in a tree, sorted by file and line.
type Problems []fleet.Problem

// Error returns one line per problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// sorted sorts the problems and removes duplicates, which come from a file that
// two units read.
func sorted(p []fleet.Problem) Problems {
	slices.SortFunc(p, func(a, b fleet.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(p)
}

func problem(file string, line int, message string) fleet.Problem {
	return fleet.Problem{Origin: fleet.Origin{File: file, Line: line}, Message: message}
}

// cause is an error without its path, which a Problem already has.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return oneLine(err.Error())
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
