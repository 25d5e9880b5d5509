// SPDX-License-Identifier: Apache-2.0

package output

import (
	"io"

	"github.com/fairlead/fairlead/printable"
)

// Screen is what a text is printed on. The zero Screen is a pipe: nothing is shortened
// or coloured.
type Screen struct {
	Width int // in columns; 0 is no limit
	Color bool
}

// Color is the colour of a text, as terminals number it.
type Color string

// The colours of states: what failed, what waits, and what is as it should be.
const (
	Plain  Color = ""
	Red    Color = "31"
	Yellow Color = "33"
	Green  Color = "32"
)

// Paint returns a text in a colour, where the screen has any. The text is made
// printable first: with colours the guard behind the writer is passed by.
func (s Screen) Paint(c Color, text string) string {
	text = printable.Line(text)
	if !s.Color || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Writer returns the writer that painted text goes to.
func (s Screen) Writer(out io.Writer) io.Writer {
	if s.Color {
		return printable.Raw(out)
	}
	return out
}

// colors of the words for states in the columns of tables.
var colors = map[string]Color{
	"True": Green, "current": Green, "accepted": Green,
	"False": Red, "refused": Red, "blocked": Red, "failed": Red, "awaiting-confirmation": Red,
	"Unknown": Yellow, "held": Yellow, "deferred": Yellow, "evicting": Yellow, "Unknown,SchedulingDisabled": Yellow, "True,SchedulingDisabled": Yellow,
	"False,SchedulingDisabled": Red,
}

// ColorOf returns the colour of a word for a state.
func ColorOf(word string) Color { return colors[word] }

// Minute is the form of a time in tables, in UTC.
const Minute = "2006-01-02T15:04Z"
