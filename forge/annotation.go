// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/report"
)

// Bounds of the annotations: GitHub shows ten in a view, and takes 50 a call.
const (
	mostAnnotations = 200
	mostRemark      = 1_000 // bytes
)

// check is the plan as a check run: its findings, and what each document causes, at
// their lines. The files of a plan are relative to the fleet's directory.
func (d draft) check(p *plan.Plan, commit, below string) Check {
	all := append(fromFindings(p), fromCells(p)...)
	c := Check{
		Name: "fairlead plan", Commit: commit, State: d.state, Title: d.record.Verdict,
		Summary: "The plan is in a comment of the pull request.",
	}
	if d.scope != "" {
		c.Name += " " + cutTo(oneLine(d.scope), MostScope)
	}
	if more := len(all) - mostAnnotations; more > 0 {
		all = all[:mostAnnotations]
		c.Summary += fmt.Sprintf(" %d more remarks have no annotation.", more)
	}
	for i := range all {
		all[i].Path = path.Join(below, all[i].Path)
	}
	c.Annotations = all

	parts := []string{c.Title, string(c.State), c.Summary}
	for _, a := range all {
		parts = append(parts, fmt.Sprint(a))
	}
	c.Key = keyOf(parts...)
	return c
}

// fromFindings are the findings that name a line, the worst first.
func fromFindings(p *plan.Plan) []Annotation {
	levels := map[fleet.Severity]string{fleet.SeverityError: "failure", fleet.SeverityCaution: "warning"}
	var all []Annotation
	for i := range p.Findings {
		f := &p.Findings[i]
		level := either(levels[f.Severity], "notice")
		if where, ok := annotated(f.File); ok {
			all = append(all, Annotation{where, max(f.Line, 1), level, cutTo(oneLine(f.Code), mostVerdict), cutTo(oneLine(f.Message), mostRemark)})
		}
	}

	rank := map[string]int{"failure": 0, "warning": 1, "notice": 2}
	slices.SortStableFunc(all, func(a, b Annotation) int { return cmp.Compare(rank[a.Level], rank[b.Level]) })
	return all
}

// place is a line that is the cause of something.
type place struct {
	file string
	line int
	code string
}

// places are the lines of causes: the edited ones where they are known.
func places(why []report.Because) (all []place) {
	for _, b := range why {
		sources := b.Sources
		if len(sources) == 0 {
			sources = []report.Source{{File: b.File, Line: b.Line}}
		}
		for _, source := range sources {
			if file, ok := annotated(source.File); ok {
				all = append(all, place{file, max(source.Line, 1), b.Code})
			}
		}
	}
	return all
}

// fromCells says at each line that causes something what it causes.
func fromCells(p *plan.Plan) []Annotation {
	type sum struct {
		place
		works    int
		clusters map[string]bool
		actions  map[string]bool
	}
	found := map[place]*sum{}
	var order []*sum
	for i := range p.Cells {
		c := &p.Cells[i]
		for _, at := range places(c.Because) {
			if found[at] == nil {
				found[at] = &sum{place: at, clusters: map[string]bool{}, actions: map[string]bool{}}
				order = append(order, found[at])
			}
			s := found[at]
			s.works++
			s.clusters[c.Cluster] = true
			s.actions[string(c.Action)+", "+string(c.Disposition)] = true
		}
	}

	var all []Annotation
	for _, s := range order {
		var actions []string
		for a := range s.actions {
			actions = append(actions, a)
		}
		slices.Sort(actions)
		all = append(all, Annotation{s.file, s.line, "notice", cutTo(oneLine(s.code), mostVerdict),
			cutTo(oneLine(fmt.Sprintf("%s on %s: %s", plural(s.works, "work"), plural(len(s.clusters), "cluster"), strings.Join(actions, "; "))), mostRemark)})
	}
	return all
}

// annotated returns the path of a file as an annotation may have it: below the root of
// the repository, and of a bounded length.
func annotated(file string) (string, bool) {
	clean := path.Clean(oneLine(file))
	return clean, file != "" && len(file) <= 1_000 && clean == file && !path.IsAbs(clean) && clean != "." && !strings.HasPrefix(clean, "../")
}
