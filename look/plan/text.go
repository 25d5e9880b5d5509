// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/printable"
)

// Text prints the verdict, the findings, the clusters and the changes; equal changes
// share a line.
func (r *Plan) Text(out io.Writer, screen output.Screen) error {
	var b strings.Builder
	printable.Fprintf(&b, "%s\n\n", r.title())
	r.verdict(&b, screen)
	r.check(&b, screen)
	if err := r.table(&b, screen); err != nil {
		return err
	}
	if err := r.cells(&b, screen); err != nil {
		return err
	}

	_, err := io.WriteString(screen.Writer(out), b.String())
	return err
}

func (r *Plan) verdict(w io.Writer, screen output.Screen) {
	c := r.Summary.Cells
	switch {
	case !r.Complete:
		fmt.Fprintln(w, screen.Paint(output.Red, "The change cannot be planned: the fleet would stay as it is."))
		return
	case !r.Changes() && r.frozen():
		fmt.Fprintln(w, "Nothing changes on any cluster: what cannot be read stays as it is.")
	case !r.Changes() && c.Held == 0:
		fmt.Fprintln(w, "Nothing changes on any cluster.")
		return
	case !r.Changes():
		fmt.Fprintln(w, "Nothing changes on any cluster; what is held stays held.")
	case r.awaitsConfirmation():
		fmt.Fprintln(w, screen.Paint(output.Red, "Held: nothing happens on merge until the deletion is confirmed. Then"))
	default:
		fmt.Fprintln(w, "On merge")
	}

	for _, line := range c.lines() {
		printable.Fprintf(w, "  %4d %s\n", line.n, line.text)
	}
}

// countLine is a count with its labels.
type countLine struct {
	n           int
	brief, text string
}

// lines returns the counts that are not zero.
func (n CellCounts) lines() []countLine {
	return slices.DeleteFunc([]countLine{
		{n.Now, "now", "now"}, {n.Released, "released", "released: a hold is lifted"}, {n.Deleted, "deleted", "deleted"},
		{n.Preserved, "left running", "left running, no longer managed"}, {n.Held, "held", "held by a suspension"},
		{n.Deferred, "deferred", "deferred until their template changes"}, {n.Blocked, "blocked", "blocked"},
	}, func(l countLine) bool { return l.n == 0 })
}

// findingMarks are the symbols of findings, and findingColors their colours.
var (
	findingMarks  = map[fleet.Severity]string{fleet.SeverityError: "x", fleet.SeverityCaution: "!", fleet.SeverityNotice: "."}
	findingColors = map[fleet.Severity]output.Color{fleet.SeverityError: output.Red, fleet.SeverityCaution: output.Yellow}
)

func (r *Plan) check(w io.Writer, screen output.Screen) {
	if len(r.Findings) == 0 {
		return
	}

	fmt.Fprintln(w, "\nCheck")
	for f, more := range report.Abridge(r.Findings, report.MostAlike, Finding.kind) {
		where := f.where()
		if where != "" {
			where = "  (" + where + ")"
		}
		mark := screen.Paint(findingColors[f.Severity], findingMarks[f.Severity])
		fmt.Fprintf(w, "  %s %s\n", mark, printable.Line(f.Code+"  "+f.Message+where))
		if more > 0 {
			fmt.Fprintf(w, "  %s %s\n", mark, printable.Line(fmt.Sprintf("%s  and %d more; -o json has them all", f.Code, more)))
		}
	}
}

// where returns the place of a finding, "" if its message names it already.
func (f *Finding) where() string {
	where := f.File
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	if strings.Contains(f.Message, where) {
		return ""
	}
	return where
}

// table has a line for each cluster.
func (r *Plan) table(w io.Writer, screen output.Screen) error {
	if len(r.Clusters) == 0 {
		return nil
	}

	fmt.Fprintln(w)
	t := output.Table{Columns: output.NewColumns("CLUSTER", "NOW", "RELEASED", "HELD", "DEFERRED", "DELETED", "LEFT").Text("CLUSTER")}
	for _, c := range r.Clusters {
		t.Rows = append(t.Rows, []any{c.Name, dash(c.Now), dash(c.Released), dash(c.Held), dash(c.Deferred), dash(c.Deleted), dash(c.Preserved)})
	}
	return t.Text(w, screen)
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// cells has a line for each change of an object, with the clusters that share it.
func (r *Plan) cells(w io.Writer, screen output.Screen) error {
	if len(r.Cells) == 0 {
		return nil
	}

	fmt.Fprintln(w, "\nChanges")
	t := output.Table{Columns: output.NewColumns("WHAT", "OBJECT", "WHEN", "CLUSTERS", "BECAUSE").Text("WHEN", "BECAUSE").States("WHEN"),
		NoHeaders: true, Blank: true, Indent: "  "}
	for c := range r.groups() {
		t.Rows = append(t.Rows, []any{report.Glyphs[c.Action] + " " + c.what(), c.Object.Text(), c.when(), output.Names{All: c.clusters, Sep: " "}, c.why()})
	}
	return t.Text(w, screen)
}
