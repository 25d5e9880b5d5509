// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// section is a part of a comment that may say less: its versions, the fullest first. A
// version is given how many bytes it may have; a longer one is not used. The last one is
// short whatever the plan.
type section []func(room int) string

// fitted returns the fullest version of each section with which all of them have room.
func fitted(sections []section, room int) []string {
	texts := make([]string, len(sections))
	for i, s := range sections {
		texts[i] = s[len(s)-1](0)
		room -= len(texts[i])
	}
	for i, s := range sections {
		for _, version := range s[:len(s)-1] {
			if text := version(room + len(texts[i])); len(text) <= room+len(texts[i]) {
				room -= len(text) - len(texts[i])
				texts[i] = text
				break
			}
		}
	}
	return texts
}

// sections are what may be cut, most important first.
func (r *Plan) sections() []section {
	var all []section
	if len(r.Images) > 0 {
		all = append(all, section{r.imageTable, func(int) string {
			return fmt.Sprintf("\n**Images**: %s\n", report.Count(len(r.Images), "change"))
		}})
	}
	if len(r.Suspensions)+len(r.Releases) > 0 {
		all = append(all, section{r.holdList, func(int) string {
			return fmt.Sprintf("\n**Holds**: %s hold otherwise than before; %s\n", report.Count(len(r.Suspensions), "polic"), report.Count(len(r.Releases), "release"))
		}})
	}
	if len(r.Deferred) > 0 {
		all = append(all, section{r.deferredList, func(int) string {
			return fmt.Sprintf("\n**Deferred**: %s wait for their templates to change\n", report.Count(len(r.Deferred), "polic"))
		}})
	}
	blocks := slices.DeleteFunc(r.blocks(), func(b block) bool { return b.changes[0].Disposition == propagate.Deferred })
	if len(blocks) > 0 {
		all = append(all, section{
			func(room int) string { return r.changeTable(blocks, room, true) + diffFolds(blocks, room) },
			func(room int) string { return r.changeTable(blocks, room, true) },
			func(room int) string { return r.changeTable(blocks, room, false) },
			func(room int) string { return r.changeNames(blocks, room) },
			func(int) string { return r.changeCount(blocks) },
		})
	}
	if n := r.Summary.Cells; n.UpToDate+n.Already.all() > 0 {
		all = append(all, section{func(int) string { return "\n" + n.restText() + ".\n" }})
	}
	return all
}

// full reports whether a text cannot become shorter than its room any more, so that the
// rest of a large plan need not be written.
func full(b *strings.Builder, room int) bool { return b.Len() > room }

func (r *Plan) imageTable(room int) string {
	var b strings.Builder
	fmt.Fprint(&b, "\n| image of | change | now | released | held |\n|---|---|---|---|---|\n")
	for i := range r.Images {
		m := &r.Images[i]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", codeSpan(m.Object.Text()), codeSpan(m.Step()), names(m.Now), names(m.Released), names(m.Held))
		if full(&b, room) {
			break
		}
	}
	return b.String()
}

func (r *Plan) holdList(room int) string {
	var b strings.Builder
	fmt.Fprint(&b, "\n**Holds**\n\n")
	for _, s := range r.Suspensions {
		for _, line := range s.lines() {
			fmt.Fprintf(&b, "- **%s**: %s\n", line.word, plainText(line.text))
		}
	}
	for _, release := range r.alikeReleases() {
		fmt.Fprintf(&b, "- **resume**: %s\n", plainText(release.text()))
		for _, c := range release.Commits {
			fmt.Fprintf(&b, "  - %s %s (%s)\n", codeSpan(source.Short(c.Commit)), plainText(c.Subject), plainText(report.NameOf(c.Author)))
		}
		if full(&b, room) {
			break
		}
	}
	return b.String()
}

func (r *Plan) deferredList(room int) string {
	var b strings.Builder
	for _, d := range r.Deferred {
		if d.Deferred > d.Already {
			fmt.Fprintf(&b, "- %s\n", plainText(d.text()))
		}
		if full(&b, room) {
			break
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n**Deferred**\n\n" + b.String()
}

func (r *Plan) changeCount(blocks []block) string {
	objects := 0
	for _, b := range blocks {
		objects += len(b.objects)
	}
	return fmt.Sprintf("\n**Changes**: %s of %s on %s; `fairlead plan` lists them\n",
		report.Count(len(r.Changes), "change"), report.Count(objects, "object"), report.Count(len(r.Clusters), "cluster"))
}

func fold(b *strings.Builder, title, text string) {
	fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n%s\n</details>\n", title, text)
}

// changeTable has a row for each time at which a block happens; with what differs if
// paths is set.
func (r *Plan) changeTable(blocks []block, room int, paths bool) string {
	var rows strings.Builder
	rows.WriteString("| what | object | when | clusters | because |\n|---|---|---|---|---|\n")
	for i := range blocks {
		b := &blocks[i]
		for j := range b.changes {
			what := codeSpan(b.name())
			if j > 0 {
				what = ""
			} else if summary := b.changes[0].summary(); paths && len(summary) > 0 {
				what += "<br>" + codeSpan(strings.Join(summary, ", "))
			}
			rows.WriteString(b.row(j, what))
		}
		if full(&rows, room) {
			return rows.String()
		}
	}

	var b strings.Builder
	fold(&b, fmt.Sprintf("<b>Changes</b>: %s on %s", report.Count(len(blocks), "line"), report.Count(len(r.Clusters), "cluster")), rows.String())
	return b.String()
}

// row is one line of the table of changes.
func (b *block) row(j int, what string) string {
	p := &b.changes[j]
	when := p.when()
	if wave := p.wave(codeSpan); wave != "" {
		when += ", " + wave
	}
	why := p.sources()
	if at := p.holds(); at != "" {
		why = append(why, "held: "+at)
	}
	var spans []string
	for _, text := range why {
		spans = append(spans, codeSpan(text))
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", p.word(), what, plainText(when), names(p.Clusters), strings.Join(spans, " "))
}

// changeNames has as many names as there is room for, and how many more there are.
func (r *Plan) changeNames(blocks []block, room int) string {
	const around = 400 // the fold and the last line
	var rows []string
	for i := range blocks {
		b := &blocks[i]
		rows = append(rows, fmt.Sprintf("- %s %s on %s\n", b.changes[0].word(), codeSpan(b.name()), report.Count(b.changes[0].Cells, "cluster")))
	}

	var list, b strings.Builder
	some(&list, rows, room-around, "- and %d more\n")
	fold(&b, "<b>Changes</b>: "+report.Count(len(blocks), "line"), list.String())
	return b.String()
}

// diffFolds has a fold with the diff of each block that has one.
func diffFolds(blocks []block, room int) string {
	var b strings.Builder
	for i := range blocks {
		c := blocks[i].changes[0]
		if c.Diff == "" {
			continue
		}
		mark := fence(c.Diff)
		fold(&b, "Diff of "+htmlCode(blocks[i].name()), fmt.Sprintf("%sdiff\n%s\n%s\n", mark, strings.TrimRight(c.Diff, "\n"), mark))
		if full(&b, room) {
			break
		}
	}
	return b.String()
}

// fence is longer than any run of backticks in a text.
func fence(text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark
}

// htmlCode returns a text from the repository as code, where only HTML is read.
func htmlCode(text string) string {
	return "<code>" + html.EscapeString(status.OneLine(text)) + "</code>"
}
