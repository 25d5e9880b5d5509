// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"errors"
	"fmt"
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

const (
	// maxProblems is how many problems of a unit, and of a tree, are kept: they go
	// into the state, the record of events and to the terminal.
	maxProblems = 100
	// maxMessage limits the bytes of a message. It may quote what a file says.
	maxMessage = 1000
	// manyProblems are so many that some are left out before all are found.
	manyProblems = 100 * maxProblems
)

// sorted sorts the problems and removes duplicates, which come from a file that
// two units read. Of too many it keeps the first, and says how many there are more.
func sorted(p []fleet.Problem) Problems { return limited(p, 0) }

// limited is sorted, for problems of which some were left out before.
func limited(p []fleet.Problem, more int) Problems {
	all := len(p) + more
	if p = distinct(p); len(p) <= maxProblems && more == 0 {
		return p
	}

	p = p[:min(len(p), maxProblems)]
	return append(slices.Clip(p), fleet.Problem{Message: fmt.Sprintf("and %d more problems", all-len(p))})
}

// fewest leaves out what limited would leave out in the end, when it is worth it.
func fewest(p []fleet.Problem, more int) ([]fleet.Problem, int) {
	if len(p) < manyProblems {
		return p, more
	}
	return first(p, more)
}

// first are the problems that limited would keep, and how many were left out.
func first(p []fleet.Problem, more int) ([]fleet.Problem, int) {
	all := len(p)
	if p = distinct(p); len(p) <= maxProblems {
		return p, more
	}
	return slices.Clone(p[:maxProblems]), more + all - maxProblems
}

// distinct sorts problems, cuts their messages, and removes duplicates.
func distinct(p []fleet.Problem) []fleet.Problem {
	for i := range p {
		p[i].Message = short(p[i].Message)
	}

	slices.SortFunc(p, func(a, b fleet.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(p)
}

// cutOff is how a message ends that was too long.
const cutOff = " …"

// short cuts a message that is too long.
func short(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + cutOff
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
