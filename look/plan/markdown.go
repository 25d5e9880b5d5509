// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/source"
)

// Forges reject a comment that is too long; GitHub's limit is 65,536 characters.
// Each part has its own budget of bytes, so that many findings do not push out the
// clusters.
const (
	mostFindings = 16_000
	mostClusters = 16_000
	mostChanges  = 26_000
)

// Markdown prints the plan as a comment on a pull request: the verdict, the findings,
// the clusters, and the changes, collapsed. The first line lets a tool find the
// comment again.
func (r *Plan) Markdown(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- fairlead:plan:v1 -->\n### Fleet plan: %s\n", r.headline())
	left := mostFindings
	for _, box := range []struct {
		level fleet.Severity
		alert string
	}{{fleet.SeverityError, "CAUTION"}, {fleet.SeverityCaution, "WARNING"}, {fleet.SeverityNotice, "NOTE"}} {
		left -= r.alert(&b, box.alert, box.level, left)
	}

	if len(r.Clusters) > 0 {
		fmt.Fprint(&b, "\n| cluster | now | released | held | deferred | blocked | deleted | left running |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
		var rows []string
		for _, c := range r.Clusters {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", codeSpan(c.Name), blank(c.Now), blank(c.Released),
				blank(c.Held), blank(c.Deferred), blank(c.Blocked), blank(c.Deleted), blank(c.Preserved)))
		}
		some(&b, rows, mostClusters, "| and %d more | | | | | | | |\n")
	}
	if len(r.Cells) > 0 {
		var rows []string
		for g := range r.groups() {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s |\n", g.what(), codeSpan(g.Object.Text()), g.when(), names(g.clusters), reasons(g)))
		}
		fmt.Fprintf(&b, "\n<details><summary><b>Changes</b>: %s on %s</summary>\n\n| what | object | when | clusters | because |\n|---|---|---|---|---|\n",
			report.Count(len(rows), "line"), report.Count(len(r.Clusters), "cluster"))
		some(&b, rows, mostChanges, "| and %d more | | | | |\n")
		fmt.Fprint(&b, "\n</details>\n")
	}
	fmt.Fprintf(&b, "\n<sub>`fairlead plan --base %s --head %s`</sub>\n", source.Short(r.Base.Commit), source.Short(r.Head.Commit))
	_, err := io.WriteString(out, b.String())
	return err
}

// headline returns the verdict in one line.
func (r *Plan) headline() string {
	var counts []string
	for _, line := range r.Summary.Cells.lines() {
		counts = append(counts, fmt.Sprintf("%d %s", line.n, line.brief))
	}

	all := strings.Join(counts, ", ")
	switch {
	case !r.Complete:
		return "it cannot be planned, the fleet would stay as it is"
	case !r.Changes() && all == "":
		return "nothing changes on any cluster"
	case !r.Changes():
		return "nothing changes on any cluster; " + all
	case r.awaitsConfirmation():
		return "held until the deletion is confirmed, then " + all
	}

	return all
}

// alert writes a box with the findings of one level. It returns the bytes written.
func (r *Plan) alert(b *strings.Builder, name string, level fleet.Severity, most int) int {
	var rows []string
	for f, more := range report.Abridge(r.Findings, report.MostAlike, Finding.kind) {
		if f.Severity != level {
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
		if more > 0 {
			rows = append(rows, fmt.Sprintf("> - **%s** and %d more\n", f.Code, more))
		}
	}

	if len(rows) == 0 {
		return 0
	}

	before := b.Len()
	fmt.Fprintf(b, "\n> [!%s]\n", name)
	some(b, rows, most, "> - and %d more\n")
	return b.Len() - before
}

// some writes rows while there is room, and then how many are left out.
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

func reasons(g group) string {
	why := g.scaled()
	for _, b := range g.Because {
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

// codeSpan returns a text from the repository as code, for use in a table or outside
// one. The fence is longer than any run of backticks in the text.
func codeSpan(s string) string {
	s = strings.ReplaceAll(status.OneLine(s), "|", "\\|")
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		s = " " + s + " "
	}
	return fence + s + fence
}

// plainText escapes a text from the repository, so that it has no markup and no
// @name notifies anybody.
func plainText(s string) string {
	var b strings.Builder
	for _, r := range status.OneLine(s) {
		switch {
		case r == '@':
			b.WriteString("@\u200b")
		case linksAfter(b.String(), r):
			b.WriteString("\u200b")
			b.WriteRune(r)
		case r < unicode.MaxASCII && slices.Contains(markup, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}

	return b.String()
}

// linksAfter reports whether a forge makes a link of what has been written with r after
// it: https://, www. or GH-1.
func linksAfter(written string, r rune) bool {
	before := map[rune]string{'/': ":", '.': "www", '-': "gh"}[r]
	return before != "" && len(written) >= len(before) && strings.EqualFold(written[len(written)-len(before):], before)
}

var markup = []rune("\\`*_[]<>|~#&!")
