// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fairlead/fairlead/printable"
)

// gap is between two columns of any table.
const gap = 2

// None stands where there is nothing, as in kubectl.
const None = "<none>"

// Bar is the name of a column that parts others.
const Bar = "|"

// Column is a column of a table.
type Column struct {
	Name string
	Wide bool // only with -o wide
	Min  int  // how wide it is at least
	// Text may be cut where the screen is too narrow. A cell of Names always may.
	Text bool
	// Least is below what no cell of the column is cut; 0 is leastWidth.
	Least int
	// Yields is set of columns that are cut before those that keep what a line is about.
	Yields bool
	// Paint returns the colour of a cell; nil for none.
	Paint func(cell string) Color
}

// Columns are the columns of a table.
type Columns []Column

// NewColumns makes columns of names; those after "+" are shown by -o wide.
func NewColumns(names ...string) (all Columns) {
	wide := false
	for _, name := range names {
		if name == "+" {
			wide = true
			continue
		}
		all = append(all, Column{Name: name, Wide: wide})
	}
	return all
}

// Text makes columns of these names ones that may be cut.
func (c Columns) Text(names ...string) Columns {
	for i := range c {
		c[i].Text = c[i].Text || slices.Contains(names, c[i].Name)
	}
	return c
}

// Least sets below what width no cell of columns of these names is cut.
func (c Columns) Least(width int, names ...string) Columns {
	for i := range c {
		if slices.Contains(names, c[i].Name) {
			c[i].Least = width
		}
	}
	return c
}

// Yield makes columns of these names ones that are cut before any other.
func (c Columns) Yield(names ...string) Columns {
	for i := range c {
		c[i].Yields = c[i].Yields || slices.Contains(names, c[i].Name)
	}
	return c
}

// States makes columns of these names ones with a colour for each state.
func (c Columns) States(names ...string) Columns {
	for i := range c {
		if slices.Contains(names, c[i].Name) {
			c[i].Paint = ColorOf
		}
	}
	return c
}

// Names is a cell that lists names. Where it is too long for the screen, the last ones
// are counted.
type Names struct {
	All []string
	Sep string // "," if it is empty
}

// String lists all names.
func (n Names) String() string { return strings.Join(n.All, n.sep()) }

func (n Names) sep() string {
	if n.Sep == "" {
		return ","
	}
	return n.Sep
}

// Table is rows under columns. A cell is a Names, or anything that fmt prints.
type Table struct {
	Columns   Columns
	Rows      [][]any
	Wide      bool // with the columns that are only for -o wide, and nothing shortened
	NoHeaders bool
	Blank     bool   // where there is nothing stands nothing, and not None
	Indent    string // before every line
	Layout    Layout // of earlier tables that this one goes on; nil starts anew
}

// Layout has how wide each column of tables has been, so that what is printed later
// stands under the same headers.
type Layout map[string]int

// key is a column of tables with the same columns.
func (t *Table) key(column int) string {
	var names strings.Builder
	for _, c := range t.Columns {
		names.WriteString(c.Name + "\x00")
	}
	return fmt.Sprint(names.String(), column)
}

// Text prints the table. What a row has too much or too little is left out or None.
func (t *Table) Text(out io.Writer, s Screen) error {
	var shown []int
	for i, c := range t.Columns {
		if t.Wide || !c.Wide {
			shown = append(shown, i)
		}
	}

	width := t.widths(shown, s)
	headed := false
	for _, i := range shown {
		if t.Layout != nil {
			headed = headed || t.Layout[t.key(i)] > 0
			width[i] = max(width[i], t.Layout[t.key(i)])
			t.Layout[t.key(i)] = width[i]
		}
	}

	var b strings.Builder
	if !t.NoHeaders && !headed {
		t.line(&b, s, shown, width, func(i int) string { return t.Columns[i].Name }, nil)
	}
	for _, row := range t.Rows {
		t.line(&b, s, shown, width, func(i int) string { return t.shown(cellAt(row, i), width[i]) }, row)
	}

	_, err := io.WriteString(s.Writer(out), b.String())
	return err
}

// line writes the cells of a row, or of the headers if row is nil.
func (t *Table) line(b *strings.Builder, s Screen, shown []int, width map[int]int, cell func(int) string, row []any) {
	b.WriteString(t.Indent)
	blanks := 0
	for _, i := range shown {
		text, color := cell(i), Plain
		if paint := t.Columns[i].Paint; paint != nil && row != nil {
			color = paint(full(cellAt(row, i)))
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", blanks) + s.Paint(color, text))
			blanks = 0
		}
		blanks += width[i] - utf8.RuneCountInString(text) + gap
		if t.Columns[i].Name == Bar {
			blanks--
		}
	}
	b.WriteString("\n")
}

// shown is a cell as it is printed in a column that is so wide.
func (t *Table) shown(cell any, width int) string {
	text := shorten(cell, width)
	if t.Blank && text == None {
		return ""
	}
	return text
}

func cellAt(row []any, i int) any {
	if i >= len(row) {
		return nil
	}
	return row[i]
}

// full is a cell as text, in one line.
func full(cell any) string {
	switch cell := cell.(type) {
	case nil:
		return None
	case string:
		if cell == "" {
			return None
		}
		return printable.Line(cell)
	case Names:
		if len(cell.All) == 0 {
			return None
		}
		return printable.Line(cell.String())
	}
	return printable.Line(fmt.Sprint(cell))
}

// widths are those of the columns, so that a line fits the screen if it can.
func (t *Table) widths(shown []int, s Screen) map[int]int {
	width, least := map[int]int{}, map[int]int{}
	total := utf8.RuneCountInString(t.Indent) - gap
	for _, i := range shown {
		header := 0
		if !t.NoHeaders {
			header = utf8.RuneCountInString(t.Columns[i].Name)
		}
		width[i] = max(header, t.Columns[i].Min)
		shortens := t.Columns[i].Text
		for _, row := range t.Rows {
			cell := cellAt(row, i)
			width[i] = max(width[i], utf8.RuneCountInString(full(cell)))
			if _, ok := cell.(Names); ok {
				shortens = true
			}
		}
		if shortens {
			least[i] = max(header, cmp.Or(t.Columns[i].Least, leastWidth))
		}
		total += width[i] + gap
		if t.Columns[i].Name == Bar {
			total--
		}
	}

	for s.Width > 0 && !t.Wide && total > s.Width {
		widest := -1
		for _, i := range shown {
			if least[i] > 0 && width[i] > least[i] && (widest < 0 || t.before(i, widest, width)) {
				widest = i
			}
		}
		if widest < 0 {
			break // the rest is kept in full
		}
		width[widest]--
		total--
	}

	return width
}

// before reports whether a column is cut before another: those that yield are first, and
// then the widest.
func (t *Table) before(i, j int, width map[int]int) bool {
	if t.Columns[i].Yields != t.Columns[j].Yields {
		return t.Columns[i].Yields
	}
	return width[i] > width[j]
}

// Width is how wide the table is in full.
func (t *Table) Width() (total int) {
	var all []int
	for i, c := range t.Columns {
		if t.Wide || !c.Wide {
			all = append(all, i)
		}
	}
	for i, w := range t.widths(all, Screen{}) {
		total += w + gap
		if t.Columns[i].Name == Bar {
			total--
		}
	}
	return total + utf8.RuneCountInString(t.Indent) - gap
}

// leastWidth is below what no cell is cut, unless its column says otherwise.
const leastWidth = 16

// shorten returns a cell that is at most so wide, if it is one that may be cut.
func shorten(cell any, width int) string {
	text := full(cell)
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	names, ok := cell.(Names)
	if !ok || len(names.All) < 2 {
		return cut(text, width)
	}

	for n := len(names.All) - 1; n > 0; n-- {
		text = fmt.Sprintf("%s +%d more", full(Names{names.All[:n], names.Sep}), len(names.All)-n)
		if utf8.RuneCountInString(text) <= width {
			return text
		}
	}

	more := fmt.Sprintf(" +%d more", len(names.All)-1)
	return cut(printable.Line(names.All[0]), width-len(more)) + more
}

// cut ends a text with an ellipsis.
func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:max(width-1, 1)]) + "…"
}

// Fit returns a text as a piece of a line, cut so that it fits beside so many columns that
// are taken.
func (s Screen) Fit(text string, taken int) string {
	text = printable.Line(text)
	if s.Width == 0 {
		return text
	}
	return cut(text, max(s.Width-taken, leastWidth))
}
