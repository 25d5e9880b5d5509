// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/source"
)

// Limits of the comments of forges, in bytes. GitHub refuses more than 65,536 characters,
// and Gitea has the same; GitLab takes 1,000,000.
const (
	GitHubLimit = 60_000
	GitLabLimit = 900_000
)

// Marker is the first line of a comment, by which a tool finds it again.
const Marker = "<!-- fairlead:plan:v1 -->"

// Each part that is never cut has its own budget of bytes, so that many findings do not
// push out the clusters.
const (
	mostFindings = 16_000
	mostClusters = 16_000
)

// Markdown prints the plan as a comment on a pull request of no more than limit bytes,
// which must be [GitHubLimit] or more: the verdict, the findings, the clusters, then
// images, holds and changes. Where it would be longer, whole sections say less: no diffs,
// no paths, no names.
func (r *Plan) Markdown(out io.Writer, limit int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n### Fleet plan: %s\n", Marker, r.Headline())
	r.newsList(&b)
	left := mostFindings
	left -= r.deletions(&b)
	for _, box := range []struct {
		level fleet.Severity
		alert string
	}{{fleet.SeverityError, "CAUTION"}, {fleet.SeverityCaution, "WARNING"}, {fleet.SeverityNotice, "NOTE"}} {
		left -= r.alert(&b, box.alert, box.level, left)
	}
	r.clusterTable(&b)

	foot := r.foot()
	for _, text := range fitted(r.sections(), limit-b.Len()-len(foot)) {
		b.WriteString(text)
	}
	b.WriteString(foot)

	_, err := io.WriteString(out, b.String())
	return err
}

// clusterTable has a row for each cluster on which something happens or newly waits.
func (r *Plan) clusterTable(b *strings.Builder) {
	clusters, used, quiet := r.busy()
	var rows []string
	for _, c := range clusters {
		row := "| " + codeSpan(c.Name) + " |"
		for _, column := range used {
			text := column.text(c)
			switch {
			case text != "" && column.alarming():
				text = "**" + text + "**"
			case column.name == "wave" && c.WaveName != "":
				text = codeSpan(text)
			}
			row += " " + text + " |"
		}
		rows = append(rows, row+"\n")
	}

	if len(rows) > 0 {
		head, line := "| cluster |", "|---|"
		for _, column := range used {
			head += " " + column.name + " |"
			line += "--:|"
		}
		fmt.Fprintf(b, "\n%s\n%s\n", head, line)
		some(b, rows, mostClusters, "| and %d more |"+strings.Repeat(" |", len(used))+"\n")
	}
	if quiet > 0 {
		fmt.Fprintf(b, "\nNothing happens on %s more, and what is held there stays held.\n", report.Count(quiet, "cluster"))
	}
}

// deletions writes a box with what is deleted, and not replaced. It returns the bytes
// written.
func (r *Plan) deletions(b *strings.Builder) int {
	const room = 8_000
	var rows []string
	for _, block := range r.deleted() {
		rows = append(rows, fmt.Sprintf("> - deletes %s on %s\n", codeSpan(block.name()), names(block.clusters())))
	}
	if len(rows) == 0 {
		return 0
	}

	before := b.Len()
	b.WriteString("\n> [!CAUTION]\n")
	some(b, rows, room, "> - and %d more\n")
	if n := r.Summary.Cells.Gone(); n > 0 {
		fmt.Fprintf(b, "> - %s in all\n", report.Count(n, "deletion"))
	}
	return b.Len() - before
}

// foot tells how to make the plan again, and where it has it from what clusters run.
func (r *Plan) foot() string {
	positions := ""
	if r.Positions.Source == PositionsReported {
		positions = ", from what clusters reported"
	}
	return fmt.Sprintf("\n<sub>`fairlead plan --base %s --head %s`%s</sub>\n", source.Short(r.Base.Commit), source.Short(r.Head.Commit), positions)
}

// newsList has the images that change and where they arrive when.
func (r *Plan) newsList(b *strings.Builder) {
	news := r.news()
	if len(news) == 0 {
		return
	}
	b.WriteByte('\n')
	for _, line := range news {
		fmt.Fprintf(b, "- %s\n", codeSpan(line))
	}
}

// Headline returns the verdict in one line.
func (r *Plan) Headline() string {
	var counts []string
	for _, line := range r.Summary.Cells.lines() {
		if line.brief == "" {
			continue
		}
		counts = append(counts, fmt.Sprintf("%d %s", line.n, line.brief))
	}

	all := strings.Join(counts, ", ")
	switch {
	case !r.Complete:
		return "it cannot be planned, the fleet would stay as it is"
	case !r.HasEffect() && all == "":
		return "nothing changes on any cluster"
	case !r.HasEffect():
		return "nothing changes on any cluster now; " + all
	case r.awaitsConfirmation():
		return "held until the deletion is confirmed, then " + all
	}

	return all
}

// alert writes a box with the findings of one level. It returns the bytes written.
func (r *Plan) alert(b *strings.Builder, name string, level fleet.Severity, most int) int {
	var rows []string
	for f, more := range report.Abridge(r.untold(), report.MostAlike, Finding.kind) {
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
	text := []rune(emoji.ReplaceAllString(status.OneLine(s), ":\u200b$1:"))
	var b strings.Builder
	for i, r := range text {
		if linksAfter(b.String(), r) {
			b.WriteString("\u200b")
		}
		if r < unicode.MaxASCII && slices.Contains(markup, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		if r == '@' || refers(text, i) {
			b.WriteString("\u200b")
		}
	}

	return b.String()
}

// emoji is what forges show as a picture.
var emoji = regexp.MustCompile(`:([a-zA-Z0-9_+-]+):`)

// refers reports whether a forge makes a reference of a sign and what stands behind it:
// #12, !12, ~label, &1, %1 or $1. Gitea looks for them in what is rendered, so that it does
// not help to escape the sign.
func refers(text []rune, i int) bool {
	if !strings.ContainsRune("#!~&%$", text[i]) || i+1 == len(text) {
		return false
	}
	next := text[i+1]
	return unicode.IsLetter(next) || unicode.IsDigit(next) || next == '"'
}

// linksAfter reports whether a forge makes a link of what has been written with r after
// it: https://, www. or GH-1.
func linksAfter(written string, r rune) bool {
	before := map[rune]string{'/': ":", '.': "www", '-': "gh"}[r]
	return before != "" && len(written) >= len(before) && strings.EqualFold(written[len(written)-len(before):], before)
}

var markup = []rune("\\`*_[]<>|~#&!")
