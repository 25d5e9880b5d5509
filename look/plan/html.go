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
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

//go:embed plan.html
var pageText string

var page = template.Must(template.New("plan").Funcs(template.FuncMap{
	"short": source.Short, "name": report.NameOf, "line": status.OneLine, "count": report.Count,
	"join": func(words []string) string { return strings.Join(words, ", ") },
}).Parse(pageText))

// pageView is a plan as its page shows it.
type pageView struct {
	*Plan
	Verdict  string
	Alerts   []pageAlert
	Title    string
	News     []string
	Deleted  int
	Columns  []string
	Rows     []pageRow // the clusters on which something happens
	Quiet    int
	Holds    []pageHold
	Resumes  []pageResume
	Deferral []string
	Blocks   []pageBlock
	Rest     string
}

// pageRow has a count for each of the columns.
type pageRow struct {
	Name   string
	Counts []pageCount
}

// pageCount is a number, and what it counts as its class.
type pageCount struct {
	N     int
	Class string
}

type pageAlert struct {
	Level    fleet.Severity
	Findings []pageFinding
}

type pageFinding struct{ Code, Message, Trailer, Where string }

type pageHold struct{ Word, Text string }

type pageResume struct {
	Text    string
	Commits []report.CommitInfo
}

type pageBlock struct {
	Glyph, Word, Name string
	Summary, Sources  []string
	Parts             []pagePart
	Diff              []pageLine
}

type pagePart struct {
	When, Wave, Hold string
	Clusters         []string
}

// pageLine is a line of a diff, and "add", "del" or "" as its class.
type pageLine struct{ Class, Text string }

// HTML prints the plan as a page that needs nothing else: no script, no file beside it.
func (r *Plan) HTML(out io.Writer) error {
	v := pageView{Plan: r, Verdict: r.Headline(), Title: r.title(), News: r.news()}
	for _, level := range []fleet.Severity{fleet.SeverityError, fleet.SeverityCaution, fleet.SeverityNotice} {
		if a := r.pageAlert(level); len(a.Findings) > 0 {
			v.Alerts = append(v.Alerts, a)
		}
	}
	v.Deleted = r.Summary.Cells.Gone()
	clusters, used, quiet := r.busy()
	v.Quiet = quiet
	for _, column := range used {
		v.Columns = append(v.Columns, column.name)
	}
	for _, c := range clusters {
		row := pageRow{Name: c.Name}
		for _, column := range used {
			row.Counts = append(row.Counts, pageCount{column.count(c), column.name})
		}
		v.Rows = append(v.Rows, row)
	}

	for _, s := range r.Suspensions {
		for _, line := range s.lines() {
			v.Holds = append(v.Holds, pageHold{line.word, line.text})
		}
	}
	for _, release := range r.alikeReleases() {
		v.Resumes = append(v.Resumes, pageResume{release.text(), release.Commits})
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
	return page.Execute(out, v)
}

func (r *Plan) pageAlert(level fleet.Severity) pageAlert {
	a := pageAlert{Level: level}
	for f, more := range report.Abridge(r.untold(), report.MostAlike, Finding.kind) {
		if f.Severity != level {
			continue
		}
		a.Findings = append(a.Findings, pageFinding{f.Code, strings.TrimSuffix(f.Message, f.Trailer), f.Trailer, f.where()})
		if more > 0 {
			a.Findings = append(a.Findings, pageFinding{Code: f.Code, Message: "and " + report.Count(more, "more finding")})
		}
	}
	return a
}

func (b *block) page() pageBlock {
	c := b.changes[0]
	p := pageBlock{Glyph: c.glyph(), Word: c.word(), Name: b.name(), Summary: c.summary(), Sources: c.sources()}
	for i := range b.changes {
		at := &b.changes[i]
		p.Parts = append(p.Parts, pagePart{at.when(), at.wave(), at.holds(), slices.Clone(at.Clusters)})
	}
	for line := range strings.Lines(c.Diff) {
		class := map[byte]string{'+': "add", '-': "del", '@': "at"}[line[0]]
		p.Diff = append(p.Diff, pageLine{class, strings.TrimRight(line, "\n")})
	}
	return p
}
