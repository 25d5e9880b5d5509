// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strconv"

	"github.com/fairlead/fairlead/printable"
)

// Origin is the position of a document in a commit.
type Origin struct {
	File string
	Line int // from 1; 0 if only the file is known
}

// Problem is one reason to refuse a commit.
type Problem struct {
	Origin
	Message string
}

// Error reads "file:line: message".
func (p Problem) Error() string {
	message := printable.Line(p.Message)
	if p.File == "" {
		return message
	}
	return p.Origin.String() + ": " + message
}

// String reads "file:line", or "file" when the line is not known.
func (o Origin) String() string {
	file := printable.Line(o.File)
	if o.Line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(o.Line)
}
