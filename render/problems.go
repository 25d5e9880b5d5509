// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/propagate"
)

// Problems is everything that is wrong with a tree, by file and line.
type Problems []propagate.Problem

// Error is one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// sorted orders the problems and removes what was found twice: a file that
// two units read is wrong once.
func sorted(p []propagate.Problem) Problems {
	slices.SortFunc(p, func(a, b propagate.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(p)
}

func problem(file string, line int, message string) propagate.Problem {
	return propagate.Problem{Origin: propagate.Origin{File: file, Line: line}, Message: message}
}

// cause is an error without the path, which a Problem has already.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return oneLine(err.Error())
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
