// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
)

// Legend explains the symbols of a matrix.
const Legend = `= current   -N outdated by N commits   H held   L deferred   > in progress
X failed, missing or foreign   ? unknown   . not placed   number: replicas`

// FoldedLegend is added to the legend where clusters share a column.
const FoldedLegend = `8= 1X under several clusters: so many of them; -o wide has a column for each`

// Text prints the blocks, the legend, and the reasons of failed cells. Where a block is
// wider than the screen, the clusters of each wave share a column, unless wide is set.
func (m *Matrix) Text(out io.Writer, screen output.Screen, wide bool) error {
	var b strings.Builder
	if m.Refusal != nil {
		fmt.Fprintf(&b, "%s\n\n", screen.Paint(output.Red, m.Refusal.Text()))
	}
	legend := Legend + "\n"
	for i, block := range m.Blocks {
		if i > 0 {
			b.WriteString("\n")
		}
		t := block.table()
		if screen.Width > 0 && !wide && t.Width() > screen.Width {
			t = block.folded()
			legend = Legend + "\n" + FoldedLegend + "\n"
		}
		if err := t.Text(&b, screen); err != nil {
			return err
		}
	}

	b.WriteString(legend)
	for _, f := range m.failures() {
		b.WriteString(f.text(screen))
	}

	_, err := io.WriteString(screen.Writer(out), b.String())
	return err
}

// table has a column for each cluster, its waves apart.
func (k MatrixBlock) table() *output.Table {
	t := &output.Table{Columns: output.NewColumns("TEMPLATE", "POLICY")}
	for i, wave := range k.Waves {
		if i > 0 {
			t.Columns = append(t.Columns, output.Column{Name: output.Bar})
		}
		for _, cluster := range wave {
			t.Columns = append(t.Columns, output.Column{Name: cluster, Paint: symbolColor})
		}
	}

	for _, r := range k.Rows {
		row := []any{object.ShortName(r.Object.id()), r.Policy}
		for i, wave := range k.Waves {
			if i > 0 {
				row = append(row, output.Bar)
			}
			for _, cluster := range wave {
				row = append(row, r.symbol(cluster))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// folded has a column for each wave.
func (k MatrixBlock) folded() *output.Table {
	t := &output.Table{Columns: output.NewColumns("TEMPLATE", "POLICY").Text("TEMPLATE", "POLICY")}
	for _, wave := range k.Waves {
		name := wave[0]
		if len(wave) > 1 {
			name = fmt.Sprintf("%s +%d more", wave[0], len(wave)-1)
		}
		t.Columns = append(t.Columns, output.Column{Name: name, Paint: symbolColor})
	}

	for _, r := range k.Rows {
		row := []any{object.ShortName(r.Object.id()), r.Policy}
		for _, wave := range k.Waves {
			row = append(row, r.symbols(wave))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// symbols are those of several clusters without their replicas: the one that all have,
// or each with the number of clusters that have it.
func (r MatrixRow) symbols(clusters []string) string {
	if len(clusters) == 1 {
		return r.symbol(clusters[0])
	}

	count := map[string]int{}
	var order []string
	for _, cluster := range clusters {
		symbol, _, _ := strings.Cut(r.symbol(cluster), " ")
		if count[symbol] == 0 {
			order = append(order, symbol)
		}
		count[symbol]++
	}
	if len(order) == 1 {
		return order[0]
	}

	var parts []string
	for _, symbol := range slices.DeleteFunc(order, func(s string) bool { return s == "." }) {
		parts = append(parts, fmt.Sprint(count[symbol], symbol))
	}
	return strings.Join(parts, " ")
}

// symbolColor is the colour of the worst that a cell shows.
func symbolColor(symbol string) output.Color {
	switch {
	case strings.Contains(symbol, "X"):
		return output.Red
	case strings.ContainsAny(symbol, "-?HL>"):
		return output.Yellow
	case strings.Contains(symbol, "="):
		return output.Green
	}
	return output.Plain
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

// failure is why an object has failed, waits for other clusters, or could not be sent to
// some clusters.
type failure struct {
	object.ID
	mark, why string
	clusters  []string
}

func (f failure) text(screen output.Screen) string {
	mark := screen.Paint(symbolColor(f.mark), f.mark)
	return fmt.Sprintf("%s %s on %s: %s\n", mark, object.ShortName(f.ID), printable.Line(strings.Join(f.clusters, " ")), printable.Line(f.why))
}

// failures returns the reasons of failed cells, of those that wait for other clusters,
// and of those where a run has failed, sorted by template and cluster. Clusters with the
// same reason share one.
func (m *Matrix) failures() (all []*failure) {
	for _, block := range m.Blocks {
		for _, r := range block.Rows {
			for _, c := range r.Cells {
				if c.State != status.Failed && c.After == nil && c.Failure == "" {
					continue
				}
				mark, why := "X", c.Why
				if c.State != status.Failed {
					mark = "-"
				}
				if c.Failure != "" {
					why += ": " + c.Failure
				}
				all = append(all, &failure{r.Object.id(), mark, why, []string{c.Cluster}})
			}
		}
	}

	slices.SortFunc(all, func(a, b *failure) int {
		return cmp.Or(strings.Compare(a.Key(), b.Key()), strings.Compare(a.clusters[0], b.clusters[0]))
	})
	var grouped []*failure
	for _, f := range all {
		i := slices.IndexFunc(grouped, func(g *failure) bool { return g.ID == f.ID && g.mark == f.mark && g.why == f.why })
		if i < 0 {
			grouped = append(grouped, f)
			continue
		}
		grouped[i].clusters = append(grouped[i].clusters, f.clusters...)
	}
	return grouped
}
