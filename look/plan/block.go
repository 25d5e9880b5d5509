// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// block is what people read as one change: an object whose difference is equal wherever
// it arrives, now or later, or many objects of a kind in which all is alike.
type block struct {
	objects []report.Object
	changes []part // by when they happen
}

// mostDeleted is how many objects are named on top because they are deleted.
const mostDeleted = 10

// deleted are objects that are deleted, and not replaced: the first few.
func (r *Plan) deleted() (all []block) {
	for _, b := range r.blocks() {
		c := b.changes[0]
		if c.Action == propagate.ActionDelete && c.Disposition != propagate.Deferred && len(all) < mostDeleted {
			all = append(all, b)
		}
	}
	return all
}

// part is what happens in a block at one time.
type part struct {
	*Change
	because []report.Because
	waves   []int          // of its clusters, sorted, each once
	names   map[int]string // of those that have one
	hold    *fleetv1alpha1.Hold
}

// blocks are the changes as people read them. Those that are deferred come last.
func (r *Plan) blocks() []block {
	first := map[string]*Cell{}
	waves := map[string][]int{}
	names := map[string]map[int]string{}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Change == "" {
			continue
		}
		if first[c.Change] == nil {
			first[c.Change] = c
		}
		if c.Wave > 0 && !slices.Contains(waves[c.Change], c.Wave) {
			waves[c.Change] = append(waves[c.Change], c.Wave)
		}
		if c.WaveName != "" && names[c.Change] == nil {
			names[c.Change] = map[int]string{}
		}
		if c.WaveName != "" {
			names[c.Change][c.Wave] = c.WaveName
		}
	}

	var all []block
	at := map[string]int{}
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.ReplacedBy != "" {
			continue // told where its successor is
		}
		p := part{Change: c, waves: waves[c.ID], names: names[c.ID]}
		slices.Sort(p.waves)
		if cell := first[c.ID]; cell != nil {
			p.because, p.hold = cell.Because, cell.Hold
		}

		key := fmt.Sprint(c.Object, c.how())
		n, ok := at[key]
		if !ok {
			n, at[key] = len(all), len(all)
			all = append(all, block{objects: []report.Object{c.Object}})
		}
		all[n].changes = append(all[n].changes, p)
	}
	for i := range all {
		slices.SortStableFunc(all[i].changes, func(a, b part) int { return rank(a.Disposition) - rank(b.Disposition) })
	}
	return alikeBlocks(all)
}

// rank orders what happens by when a reader wants to hear of it.
func rank(d propagate.Disposition) int {
	return slices.Index([]propagate.Disposition{propagate.Now, propagate.Released, propagate.Blocked, propagate.Held, propagate.Deferred}, d)
}

// how is equal for changes with an equal difference.
func (c *Change) how() string {
	raw, err := json.Marshal(c.Paths)
	if err != nil {
		panic(fmt.Sprintf("paths have no JSON: %v", err))
	}
	return fmt.Sprint(c.glyph(), " ", c.Replaces != "", " ", string(raw))
}

// alikeBlocks joins blocks of different objects of a kind in which all is alike.
func alikeBlocks(all []block) []block {
	var joined []block
	at := map[string]int{}
	for _, b := range all {
		o := b.objects[0]
		key := fmt.Sprint(o.Kind, "/", o.Namespace)
		for _, p := range b.changes {
			key += fmt.Sprint("\x00", p.how(), p.when(), p.Clusters, p.Replicas != nil, reasonsBeside(p.because))
		}
		n, ok := at[key]
		if !ok {
			at[key] = len(joined)
			joined = append(joined, b)
			continue
		}
		joined[n].objects = append(joined[n].objects, o)
	}
	return joined
}

// reasonsBeside are the reasons without where they are.
func reasonsBeside(because []report.Because) (codes []string) {
	for _, b := range because {
		codes = append(codes, b.Code)
	}
	return codes
}

// name reads "Deployment shop/web", or "ConfigMap search/a, search/b and 58 more". A
// generated object is called as it is in git.
func (b *block) name() string {
	const most = 3
	if len(b.objects) == 1 {
		return b.called(b.objects[0]).Text()
	}

	var names []string
	for _, o := range b.objects[:min(most, len(b.objects))] {
		names = append(names, strings.TrimPrefix(b.called(o).Text(), o.Kind+" "))
	}
	text := fmt.Sprintf("%d %ss %s", len(b.objects), b.objects[0].Kind, strings.Join(names, ", "))
	if more := len(b.objects) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// clusters are those of all parts.
func (b *block) clusters() (all []string) {
	for _, p := range b.changes {
		all = append(all, p.Clusters...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (b *block) called(o report.Object) report.Object {
	if c := b.changes[0]; c.Replaces != "" {
		o.Name, _, _ = object.CutHash(o.Name)
	}
	return o
}

// glyph is the symbol of what happens. A generated object that takes the place of another
// one is an update to whoever reads it.
func (c *Change) glyph() string {
	if c.Replaces != "" {
		return report.Glyphs[propagate.ActionUpdate]
	}
	return report.Glyphs[c.Action]
}

// word is the action.
func (c *Change) word() string {
	if c.Replaces != "" {
		return string(propagate.ActionUpdate)
	}
	return string(c.Action)
}

// when returns the disposition, or which clusters come first.
func (c *Change) when() string {
	return when(c.Disposition, c.After)
}

// sources are the edited lines that caused a change, or where the causes are: each once.
func (p *part) sources() (all []string) {
	add := func(text string) {
		if text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	ofTemplate := slices.ContainsFunc(p.because, func(b report.Because) bool { return b.Code == codeTemplate })
	for _, b := range p.because {
		for _, s := range b.Sources {
			add(fmt.Sprintf("%s:%d", s.File, s.Line))
		}
		// A new template names its policy as well, which a reader need not look at.
		if len(b.Sources) == 0 && b.Code != codeSuspension && (b.Code != codePolicy || !ofTemplate) {
			add(strings.Join(report.Reasons([]report.Because{b}), ""))
		}
	}
	return all
}

// Causes that are told in their own way: what a policy or a template itself holds, a
// template whose edits are known, and the policy of a new one.
const (
	codeSuspension = "suspension"
	codeTemplate   = "template"
	codePolicy     = "policy"
)

// holds reads "until 2026-11-30 CHG-99 policies/web.yaml:12": the hold that keeps a change
// back, and where it is in git.
func (p *part) holds() string {
	var parts []string
	if p.hold != nil && p.hold.Until != "" {
		parts = append(parts, "until "+p.hold.Until)
	}
	if p.hold != nil && p.hold.Ticket != "" {
		parts = append(parts, p.hold.Ticket)
	}
	for _, b := range p.because {
		if b.Code == codeSuspension && b.File != "" {
			parts = append(parts, fmt.Sprintf("%s:%d", b.File, b.Line))
			break
		}
	}
	return strings.Join(parts, " ")
}

// wave reads "wave 1", "waves 2-4" or "waves 1, 3", or has the names of waves with names;
// it is empty where there are none.
func (p *part) wave(quoted func(string) string) string {
	var names []string
	for _, n := range p.waves {
		if name := p.names[n]; name != "" {
			names = append(names, quoted(name))
		}
	}
	switch n := len(p.waves); {
	case n > 0 && len(names) == n:
		return strings.Join(names, ", ")
	case n == 0:
		return ""
	case n == 1:
		return fmt.Sprintf("wave %d", p.waves[0])
	case p.waves[n-1]-p.waves[0] == n-1:
		return fmt.Sprintf("waves %d-%d", p.waves[0], p.waves[n-1])
	}
	return "waves " + strings.Trim(strings.ReplaceAll(fmt.Sprint(p.waves), " ", ", "), "[]")
}
