// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/fairlead/fairlead/propagate"
)

// Forges refuse a comment that is too long as a whole; GitHub's limit is 65,536
// characters. Each part has bytes of its own, so that many findings do not push
// the clusters out.
const (
	mostFindings = 16_000
	mostClusters = 16_000
	mostChanges  = 26_000
)

// markdown prints the plan as a comment on a pull request: the verdict, what to
// check, the clusters, and the changes folded away. The first line lets a tool
// find the comment again.
func (r *planReport) markdown(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- fairlead:plan:v1 -->\n### Fleet plan: %s\n", r.headline())
	left := mostFindings
	for _, box := range []struct {
		level propagate.Level
		alert string
	}{{propagate.LevelError, "CAUTION"}, {propagate.LevelCaution, "WARNING"}, {propagate.LevelNotice, "NOTE"}} {
		left -= r.alert(&b, box.alert, box.level, left)
	}
	if len(r.Clusters) > 0 {
		fmt.Fprint(&b, "\n| cluster | now | released | held | deferred | blocked | deleted | left running | replicas |\n|---|--:|--:|--:|--:|--:|--:|--:|---|\n")
		var rows []string
		for _, c := range r.Clusters {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", codeSpan(c.Name), blank(c.Now), blank(c.Released),
				blank(c.Held), blank(c.Deferred), blank(c.Blocked), blank(c.Deleted), blank(c.Preserved), c.Replicas.text()))
		}
		some(&b, rows, mostClusters, "| and %d more | | | | | | | | |\n")
	}
	if len(r.Cells) > 0 {
		var rows []string
		for g := range r.groups() {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s |\n", g.what(), codeSpan(g.Object.text()), g.Disposition, names(g.clusters), reasons(g.planCell)))
		}
		fmt.Fprintf(&b, "\n<details><summary><b>Changes</b>: %s on %s</summary>\n\n| what | object | when | clusters | because |\n|---|---|---|---|---|\n",
			count(len(rows), "line"), count(len(r.Clusters), "cluster"))
		some(&b, rows, mostChanges, "| and %d more | | | | |\n")
		fmt.Fprint(&b, "\n</details>\n")
	}
	fmt.Fprintf(&b, "\n<sub>`fairlead plan --base %s --head %s`</sub>\n", short(r.Base.Commit), short(r.Head.Commit))
	_, err := io.WriteString(out, b.String())
	return err
}

// headline is the verdict in a line.
func (r *planReport) headline() string {
	var counts []string
	for _, line := range r.Summary.Cells.lines() {
		counts = append(counts, fmt.Sprintf("%d %s", line.n, line.brief))
	}
	all := strings.Join(counts, ", ")
	switch {
	case !r.Complete:
		return "it cannot be planned, the fleet would stay as it is"
	case !r.changes() && all == "":
		return "nothing changes on any cluster"
	case !r.changes():
		return "nothing changes on any cluster; " + all
	case r.held():
		return "held until the deletion is confirmed, then " + all
	}
	return all
}

// alert is a box with the findings of one level. It returns the bytes it took.
func (r *planReport) alert(b *strings.Builder, name string, level propagate.Level, most int) int {
	var rows []string
	for _, f := range r.Findings {
		if f.Level != level {
			continue
		}
		row := fmt.Sprintf("> - **%s** %s", f.Code, plainText(strings.TrimSuffix(f.Message, f.Trailer)))
		if f.Trailer != "" {
			row += " " + codeSpan(f.Trailer)
		}
		if where := f.where(); where != "" {
			row += " (" + codeSpan(where) + ")"
		}
		rows = append(rows, row+"\n")
	}
	if len(rows) == 0 {
		return 0
	}
	before := b.Len()
	fmt.Fprintf(b, "\n> [!%s]\n", name)
	some(b, rows, most, "> - and %d more\n")
	return b.Len() - before
}

// some writes rows as long as there is room, and how many are left out.
func some(b *strings.Builder, rows []string, room int, more string) {
	for i, row := range rows {
		if room -= len(row); room < 0 {
			fmt.Fprintf(b, more, len(rows)-i)
			return
		}
		b.WriteString(row)
	}
}

// mostNames is how many clusters stand in one line.
const mostNames = 20

func names(clusters []string) string {
	var spans []string
	for _, c := range clusters[:min(len(clusters), mostNames)] {
		spans = append(spans, codeSpan(c))
	}
	if more := len(clusters) - mostNames; more > 0 {
		spans = append(spans, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(spans, " ")
}

func reasons(c planCell) string {
	var why []string
	for _, b := range c.Because {
		if b.File == "" {
			why = append(why, b.Code)
			continue
		}
		why = append(why, b.Code+" "+codeSpan(fmt.Sprintf("%s:%d", b.File, b.Line)))
	}
	return strings.Join(why, ", ")
}

func blank(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// codeSpan is a text from the repository as code, in a table or out of it. The
// fence is longer than any run of backticks in the text.
func codeSpan(s string) string {
	s = strings.ReplaceAll(oneLine(s), "|", "\\|")
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		s = " " + s + " "
	}
	return fence + s + fence
}

// plainText is a text from the repository in which nothing is markup, and no
// @name notifies anybody.
func plainText(s string) string {
	var b strings.Builder
	for _, r := range oneLine(s) {
		switch {
		case r == '@':
			b.WriteString("@\u200b")
		case r < unicode.MaxASCII && slices.Contains(markup, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

var markup = []rune("\\`*_[]<>|~#&!")
