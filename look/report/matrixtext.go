// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
)

// Legend explains the symbols of a matrix.
const Legend = `= current   -N outdated by N commits   H held   L deferred   > in progress
X failed, missing or foreign   ? unknown   . not placed   number: replicas`

// Text prints the blocks, the legend, and the reasons of failed cells.
func (m *Matrix) Text(out io.Writer) error {
	var b strings.Builder
	if m.Refusal != nil {
		printable.Fprintf(&b, "%s\n\n", m.Refusal.Text())
	}
	for i, block := range m.Blocks {
		if i > 0 {
			b.WriteString("\n")
		}
		block.text(&b)
	}

	b.WriteString(Legend + "\n")
	for _, f := range m.failures() {
		b.WriteString(f)
	}

	_, err := io.WriteString(out, b.String())
	return err
}

// text writes a block, its columns aligned and its waves apart.
func (k MatrixBlock) text(b *strings.Builder) {
	head := []string{"TEMPLATE", "POLICY"}
	for i, wave := range k.Waves {
		if i > 0 {
			head = append(head, "|")
		}
		head = append(head, wave...)
	}

	lines := [][]string{head}
	for _, r := range k.Rows {
		line := []string{object.ShortName(r.Object.id()), cmp.Or(r.Policy, "-")}
		for i, wave := range k.Waves {
			if i > 0 {
				line = append(line, "|")
			}
			for _, cluster := range wave {
				line = append(line, r.symbol(cluster))
			}
		}
		lines = append(lines, line)
	}

	align(lines, b)
}

func (r MatrixRow) symbol(cluster string) string {
	i := slices.IndexFunc(r.Cells, func(c MatrixCell) bool { return c.Cluster == cluster })
	if i < 0 {
		return "."
	}
	return r.Cells[i].Symbol()
}

// Symbol returns a cell in the symbols of Legend, such as "-2H 3".
func (c MatrixCell) Symbol() string {
	text := map[status.State]string{
		status.Current: "=", status.InProgress: ">", status.Outdated: "-?", status.Failed: "X", status.Unknown: "?",
	}[c.State]
	if c.Behind > 0 {
		text = fmt.Sprintf("-%d", c.Behind)
	}
	if c.Held {
		text += "H"
	}
	if c.Deferred {
		text += "L"
	}
	switch {
	case c.Available != nil:
		text += fmt.Sprintf(" %d/%d", *c.Available, *c.Replicas)
	case c.Replicas != nil:
		text += fmt.Sprintf(" %d", *c.Replicas)
	}

	return text
}

// failures returns the reasons of failed cells, and of those that wait for other
// clusters, sorted by template and cluster.
func (m *Matrix) failures() (lines []string) {
	type failure struct {
		object.ID
		cell MatrixCell
	}
	var all []failure
	for _, block := range m.Blocks {
		for _, r := range block.Rows {
			for _, c := range r.Cells {
				if c.State == status.Failed || c.After != nil {
					all = append(all, failure{r.Object.id(), c})
				}
			}
		}
	}

	slices.SortFunc(all, func(a, b failure) int {
		return cmp.Or(strings.Compare(a.Key(), b.Key()), strings.Compare(a.cell.Cluster, b.cell.Cluster))
	})

	for _, f := range all {
		mark := "X"
		if f.cell.After != nil {
			mark = "-"
		}
		lines = append(lines, printable.Line(fmt.Sprintf("%s %s on %s: %s", mark, object.ShortName(f.ID), f.cell.Cluster, f.cell.Why))+"\n")
	}

	return lines
}

// align writes cells in columns, two blanks apart; a bar has one on its right.
func align(lines [][]string, b *strings.Builder) {
	width := make([]int, len(lines[0]))
	for _, line := range lines {
		for i := range line {
			line[i] = printable.Line(line[i])
		}
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}

	for _, line := range lines {
		var text strings.Builder
		for i, cell := range line {
			text.WriteString(cell)
			blanks := width[i] - utf8.RuneCountInString(cell) + 2
			if cell == "|" {
				blanks = 1
			}
			text.WriteString(strings.Repeat(" ", blanks))
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
}
