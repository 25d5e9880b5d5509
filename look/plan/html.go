// SPDX-License-Identifier: Apache-2.0

package plan

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

//go:embed plan.html
var pageText string

var page = template.Must(template.New("plan").Funcs(template.FuncMap{
	"short": source.Short, "name": report.NameOf, "line": status.OneLine, "count": report.Count,
	"join": func(words []string) string { return strings.Join(words, ", ") },
}).Parse(pageText))

// Page is a plan as its page shows it.
type Page struct {
	*Plan
	Verdict  string
	Alerts   []PageAlert
	Title    string
	News     []string
	Deleted  int
	Gone     []PageGone // the first of them
	Columns  []string
	Rows     []PageRow // the clusters on which something happens
	Quiet    int
	Holds    []PageHold
	Resumes  []PageResume
	Deferral []string
	Blocks   []PageBlock
	Rest     string
}

// PageGone is an object that is deleted.
type PageGone struct {
	Name     string
	Clusters []string
}

// PageRow has a count for each of the columns.
type PageRow struct {
	Name   string
	Counts []PageCount
}

// PageCount is a number, "" for none, and what it counts as its class.
type PageCount struct{ N, Class string }

// PageAlert is the findings of one severity.
type PageAlert struct {
	Level    fleet.Severity
	Findings []PageFinding
}

// PageFinding is one of them.
type PageFinding struct{ Code, Message, Trailer, Where string }

// PageHold is what happens to a hold.
type PageHold struct{ Word, Text string }

// PageResume is a hold that is lifted, and the commits that it lets out.
type PageResume struct {
	Text    string
	Commits []report.CommitInfo
}

// PageBlock is an object with what differs, and where it arrives when.
type PageBlock struct {
	Glyph, Word, Name string
	Summary, Sources  []string
	Parts             []PagePart
	Diff              []PageLine
}

// PagePart is some clusters that get a change at one time.
type PagePart struct {
	When, Wave, Hold string
	Clusters         []string
}

// PageLine is a line of a diff, and "add", "del" or "" as its class.
type PageLine struct{ Class, Text string }

// HTML prints the plan as a page that needs nothing else: no script, no file beside it.
func (r *Plan) HTML(out io.Writer) error { return page.Execute(out, r.Page()) }

// Page returns the plan as pages show it.
func (r *Plan) Page() *Page {
	v := &Page{Plan: r, Verdict: r.Headline(), Title: r.title(), News: r.news()}
	for _, level := range []fleet.Severity{fleet.SeverityError, fleet.SeverityCaution, fleet.SeverityNotice} {
		if a := r.pageAlert(level); len(a.Findings) > 0 {
			v.Alerts = append(v.Alerts, a)
		}
	}
	v.Deleted = r.Summary.Cells.Gone()
	for _, b := range r.deleted() {
		v.Gone = append(v.Gone, PageGone{b.name(), b.clusters()})
	}
	clusters, used, quiet := r.busy()
	v.Quiet = quiet
	for _, column := range used {
		v.Columns = append(v.Columns, column.name)
	}
	for _, c := range clusters {
		row := PageRow{Name: c.Name}
		for _, column := range used {
			row.Counts = append(row.Counts, PageCount{column.text(c), column.name})
		}
		v.Rows = append(v.Rows, row)
	}

	for _, s := range r.Suspensions {
		for _, line := range s.lines() {
			v.Holds = append(v.Holds, PageHold{line.word, line.text})
		}
	}
	for _, release := range r.alikeReleases() {
		v.Resumes = append(v.Resumes, PageResume{release.text(), release.Commits})
	}
	for _, d := range r.Deferred {
		if d.Deferred > d.Already {
			v.Deferral = append(v.Deferral, d.text())
		}
	}

	for _, b := range r.blocks() {
		if b.changes[0].Disposition != propagate.Deferred {
			v.Blocks = append(v.Blocks, b.page())
		}
	}
	if n := r.Summary.Cells; n.UpToDate+n.Already.all() > 0 {
		v.Rest = n.restText()
	}
	return v
}

func (r *Plan) pageAlert(level fleet.Severity) PageAlert {
	a := PageAlert{Level: level}
	for f, more := range report.Abridge(r.untold(), report.MostAlike, Finding.kind) {
		if f.Severity != level {
			continue
		}
		a.Findings = append(a.Findings, PageFinding{f.Code, strings.TrimSuffix(f.Message, f.Trailer), f.Trailer, f.where()})
		if more > 0 {
			a.Findings = append(a.Findings, PageFinding{Code: f.Code, Message: "and " + report.Count(more, "more finding")})
		}
	}
	return a
}

func (b *block) page() PageBlock {
	c := b.changes[0]
	p := PageBlock{Glyph: c.glyph(), Word: c.word(), Name: b.name(), Summary: c.summary(), Sources: c.sources()}
	for i := range b.changes {
		at := &b.changes[i]
		p.Parts = append(p.Parts, PagePart{at.when(), at.wave(printable.Line), at.holds(), slices.Clone(at.Clusters)})
	}
	for line := range strings.Lines(c.Diff) {
		class := map[byte]string{'+': "add", '-': "del", '@': "at"}[line[0]]
		p.Diff = append(p.Diff, PageLine{class, strings.TrimRight(line, "\n")})
	}
	return p
}
