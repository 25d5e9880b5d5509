// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"
)

// Source is a document as it was read, and where.
type Source struct {
	Object map[string]any
	Origin Origin
	// Lines maps field paths to lines. It is computed on demand.
	Lines func() map[string]int
	Unit  string // path of the unit that renders it
}

// at is the position of the field at path, or of its nearest ancestor with a
// known line.
func (s *Source) at(path string) Origin {
	c := &check{origin: s.Origin, lines: s.Lines()}
	return Origin{s.Origin.File, c.line(path)}
}

func (s *Source) problem(path, format string, args ...any) Problem {
	return Problem{s.at(path), fmt.Sprintf(format, args...)}
}

// Alias gives the field at to to the lines of the field at from.
func (s *Source) Alias(from, to string) {
	lines, below := s.Lines(), map[string]int{}
	for path, line := range lines {
		if rest, ok := strings.CutPrefix(path, from); ok {
			below[rest] = line
		}
	}

	for rest, line := range below {
		lines[to+rest] = line
	}
}

// decode decodes the document and refuses unknown fields.
func (s *Source) decode(into any) (wrong []Problem) {
	text, err := json.Marshal(s.Object)
	if err != nil {
		panic(fmt.Sprintf("fleet: a decoded object has no JSON: %v", err))
	}

	strict, err := kjson.UnmarshalStrict(text, into)
	if err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) {
			return []Problem{s.problem(mismatch.Field, "%s is a %s, must be %s", mismatch.Field, mismatch.Value, TypeName(mismatch))}
		}
		return []Problem{s.problem("spec", "%s", strings.Join(strings.Fields(err.Error()), " "))}
	}

	for _, err := range strict {
		path := ""
		if f, ok := err.(interface{ FieldPath() string }); ok {
			path = f.FieldPath()
		}
		wrong = append(wrong, s.problem(path, "%s", err.Error()))
	}

	return wrong
}

// TypeName says what a field must be.
func TypeName(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind().String() {
	case "struct", "map":
		return "an object"
	case "slice":
		return "a list"
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "int", "int32", "int64", "uint":
		return "a whole number"
	}

	return "of type " + e.Type.String()
}
