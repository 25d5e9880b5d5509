// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/printable"
)

// View is how a text is printed, and what it shows beside the summary.
type View struct {
	output.Screen
	All      bool // what waits as before, too, and every name
	Diffs    bool
	Deferred bool // each change that is deferred
}

// Text prints the verdict, the findings, the clusters, the holds and the changes; what is
// alike shares a line.
func (r *Plan) Text(out io.Writer, show View) error {
	screen := show.Screen
	var b strings.Builder
	printable.Fprintf(&b, "%s\n", r.title())
	if r.Positions.Source == PositionsReported {
		fmt.Fprintln(&b, "from what clusters reported to run")
	}
	fmt.Fprintln(&b)
	r.verdict(&b, screen)
	r.check(&b, screen)
	if err := r.table(&b, screen); err != nil {
		return err
	}
	r.holdLines(&b, screen)
	r.deferredLines(&b)
	if err := r.changeLines(&b, show); err != nil {
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
	case !r.HasEffect() && r.frozen():
		fmt.Fprintln(w, "Nothing changes on any cluster: what cannot be read stays as it is.")
	case !r.HasEffect() && len(c.lines()) == 0 && c.UpToDate == 0:
		fmt.Fprintln(w, "Nothing changes on any cluster.")
		return
	case !r.HasEffect() && c.Newly().all() == 0:
		fmt.Fprintln(w, "Nothing changes on any cluster; what is held stays held.")
		return
	case !r.HasEffect():
		fmt.Fprintln(w, "Nothing changes on any cluster now.")
	case r.awaitsConfirmation():
		fmt.Fprintln(w, screen.Paint(output.Red, "Held: nothing happens on merge until the deletion is confirmed. Then"))
	default:
		fmt.Fprintln(w, "On merge")
	}

	for _, line := range r.news() {
		printable.Fprintf(w, "  %s\n", line)
	}
	for _, line := range c.lines() {
		printable.Fprintf(w, "  %4d %s\n", line.n, line.text)
	}
}

// countLine is a count with its labels; what is no news has no brief one.
type countLine struct {
	n           int
	brief, text string
}

// lines returns the counts that are not zero. What waited before is one of them.
func (n CellCounts) lines() []countLine {
	return slices.DeleteFunc([]countLine{
		{n.Now, "now", "now"}, {n.Released, "released", "released: a hold is lifted"}, {n.Gone(), "deleted", "deleted"},
		{n.Preserved, "left running", "left running, no longer managed"}, {n.Newly().Held, "held", "held by a suspension"},
		{n.Newly().Deferred, "deferred", "deferred until their template changes"}, {n.Newly().Blocked, "blocked", "blocked"},
		{n.Already.all(), "", "waiting as before"},
	}, func(l countLine) bool { return l.n == 0 })
}

// findingMarks are the symbols of findings, and findingColors their colours.
var (
	findingMarks  = map[fleet.Severity]string{fleet.SeverityError: "x", fleet.SeverityCaution: "!", fleet.SeverityNotice: "."}
	findingColors = map[fleet.Severity]output.Color{fleet.SeverityError: output.Red, fleet.SeverityCaution: output.Yellow}
)

func (r *Plan) check(w io.Writer, screen output.Screen) {
	findings := r.untold()
	if len(findings) == 0 {
		return
	}

	fmt.Fprintln(w, "\nCheck")
	for f, more := range report.Abridge(findings, report.MostAlike, Finding.kind) {
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

// untold are the findings that no other part tells: a hold that changes is among the
// holds.
func (r *Plan) untold() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool {
		return f.Code == fleet.FindingHoldChanged && len(r.Suspensions) > 0
	})
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

// table has a line for each cluster on which something happens or newly waits, and a
// column for each thing that happens on one of them.
func (r *Plan) table(w io.Writer, screen output.Screen) error {
	clusters, used, quiet := r.busy()
	if len(clusters) == 0 {
		return nil
	}

	names := []string{"CLUSTER"}
	for _, column := range used {
		names = append(names, strings.ToUpper(strings.ReplaceAll(column.name, " ", "-")))
	}
	t := output.Table{Columns: output.NewColumns(names...).Text("CLUSTER")}
	for _, c := range clusters {
		row := []any{c.Name}
		for _, column := range used {
			row = append(row, cmp.Or(column.text(c), "-"))
		}
		t.Rows = append(t.Rows, row)
	}

	fmt.Fprintln(w)
	if err := t.Text(w, screen); err != nil {
		return err
	}
	if quiet > 0 {
		fmt.Fprintf(w, "%s more: nothing happens there, and what is held stays held\n", report.Count(quiet, "cluster"))
	}
	return nil
}
