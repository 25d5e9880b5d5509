// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
)

// changeLines has the object and its difference for each change, and below that a line
// for each time at which it happens.
func (r *Plan) changeLines(w io.Writer, show View) error {
	blocks := r.blocks()
	if !show.Deferred {
		blocks = slices.DeleteFunc(blocks, func(b block) bool { return b.changes[0].Disposition == propagate.Deferred })
	}
	if len(blocks) > 0 {
		fmt.Fprintln(w, "\nChanges")
	}
	for _, b := range blocks {
		b.head(w, show.Screen)
		if err := b.parts(w, show.Screen, show.All); err != nil {
			return err
		}
		if show.Diffs {
			b.diffs(w, show.Screen)
		}
	}
	return r.rest(w, show)
}

// head is the first line of a block.
func (b *block) head(w io.Writer, screen output.Screen) {
	c := b.changes[0]
	line := c.glyph() + " " + c.word() + " " + b.name()
	if summary := c.summary(); len(summary) > 0 {
		line += "  " + strings.Join(summary, ", ")
	}
	if at := c.sources(); len(at) > 0 {
		line += "  " + strings.Join(at, " ")
	}
	printable.Fprintf(w, "  %s\n", screen.Fit(line, 2))
}

// parts has a line for each time at which the change happens.
func (b *block) parts(w io.Writer, screen output.Screen, all bool) error {
	t := output.Table{NoHeaders: true, Blank: true, Indent: "      "}
	waves := slices.ContainsFunc(b.changes, func(p part) bool { return len(p.waves) > 0 })
	if waves {
		t.Columns = output.NewColumns("WHEN", "WAVE", "CLUSTERS", "HOLD").Text("WHEN", "WAVE", "HOLD").States("WHEN")
	} else {
		t.Columns = output.NewColumns("WHEN", "CLUSTERS", "HOLD").Text("WHEN", "HOLD").States("WHEN")
	}

	for i := range b.changes {
		p := &b.changes[i]
		row := []any{p.when(), clustersIn(p.Clusters, all || screen.Width > 0), p.holds()}
		if waves {
			row = slices.Insert(row, 1, any(p.wave(printable.Line)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t.Text(w, screen)
}

// clustersIn names some clusters, or all of them: a table shortens what its screen has no
// room for.
func clustersIn(clusters []string, all bool) any {
	const most = 8
	if all || len(clusters) <= most {
		return output.Names{All: clusters, Sep: " "}
	}
	return report.Count(len(clusters), "cluster")
}

func (b *block) diffs(w io.Writer, screen output.Screen) {
	for _, p := range b.changes[:1] {
		for line := range strings.Lines(p.Diff) {
			color := output.Plain
			switch line[0] {
			case '-':
				color = output.Red
			case '+':
				color = output.Green
			}
			fmt.Fprintf(w, "      %s\n", screen.Paint(color, strings.TrimRight(line, "\n")))
		}
	}
}

// rest tells how much is held, or waits, and has nothing to do with the change; by name
// if all is shown.
func (r *Plan) rest(w io.Writer, show View) error {
	n := r.Summary.Cells
	if n.UpToDate+n.Already.all() == 0 {
		return nil
	}
	if !show.All {
		fmt.Fprintf(w, "\n%s; --all lists them\n", n.restText())
		return nil
	}

	fmt.Fprintf(w, "\n%s\n", n.restText())
	t := output.Table{Columns: output.NewColumns("WHAT", "OBJECT", "CLUSTER", "POLICY").Text("WHAT", "POLICY").States("WHAT"), NoHeaders: true, Blank: true, Indent: "  "}
	for _, c := range r.Cells {
		switch {
		case c.Action == propagate.ActionNone:
			t.Rows = append(t.Rows, []any{"up to date", c.Object.Text(), c.Cluster, c.Policy})
		case c.Already:
			t.Rows = append(t.Rows, []any{string(c.Disposition), c.Object.Text(), c.Cluster, c.Policy})
		}
	}
	return t.Text(w, show.Screen)
}

// restText reads "2 works wait as before, and 17 are held and up to date".
func (n CellCounts) restText() string {
	waits, idle := n.Already.all(), n.UpToDate
	verb, are := "wait", "are"
	if waits == 1 {
		verb = "waits"
	}
	if idle == 1 {
		are = "is"
	}
	switch {
	case idle == 0:
		return fmt.Sprintf("%s %s as before", report.Count(waits, "work"), verb)
	case waits == 0:
		return fmt.Sprintf("%s %s held and up to date", report.Count(idle, "work"), are)
	}
	return fmt.Sprintf("%s %s as before, and %d %s held and up to date", report.Count(waits, "work"), verb, idle, are)
}
