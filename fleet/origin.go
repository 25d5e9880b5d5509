// SPDX-License-Identifier: Apache-2.0

package fleet

import "strconv"

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
	if p.File == "" {
		return p.Message
	}
	return p.Origin.String() + ": " + p.Message
}

// String reads "file:line", or "file" when the line is not known.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return o.File + ":" + strconv.Itoa(o.Line)
}
