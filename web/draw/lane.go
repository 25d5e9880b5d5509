// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// row is a lane as it is drawn, or the name of a wave above its lanes.
type row struct {
	y       float64
	heading string
	name    string
	href    string
	stops   []stop // oldest first
}

// stop is where one cluster stands, or several of a wave.
type stop struct {
	Lane
	clusters []string
}

// rowsFrom lays out the lanes from a height downward, and returns where they end.
func (p *rulerPlan) rowsFrom(y float64) (rows []row, bottom float64) {
	height := laneHeight
	if !p.wide {
		height += 20 // the name is above its lane
	}
	if len(p.Lanes) > MaxLanes {
		return p.sharedRows(y, height)
	}

	waves := ""
	for _, l := range p.Lanes {
		if l.Wave != waves {
			waves = l.Wave
			rows = append(rows, row{y: y + 20, heading: cmp.Or(l.Wave, "no wave")})
			y += waveHeight
		}
		rows = append(rows, row{y: y + height - laneHeight/2, name: l.Name, href: l.Href, stops: []stop{{l, []string{l.Name}}}})
		y += height
	}
	return rows, y
}

// sharedRows has one row for each wave, in the order of the lanes.
func (p *rulerPlan) sharedRows(y, height float64) (rows []row, bottom float64) {
	at := map[string]int{}
	for _, l := range p.Lanes {
		i, known := at[l.Wave]
		if !known {
			i = len(rows)
			at[l.Wave] = i
			rows = append(rows, row{y: y + height - laneHeight/2, name: cmp.Or(l.Wave, "no wave"), href: l.WaveHref})
			y += height
		}
		rows[i].add(l)
	}
	for _, r := range rows {
		slices.SortStableFunc(r.stops, func(a, b stop) int { return cmp.Compare(a.At, b.At) })
	}
	return rows, y
}

// add puts a cluster of a wave to those that stand where it does.
func (r *row) add(l Lane) {
	l.At = max(l.At, -1)
	i := slices.IndexFunc(r.stops, func(s stop) bool { return s.At == l.At && s.State == l.State })
	if i < 0 {
		shared := l
		shared.Href, shared.BacklogHref, shared.Note = l.WaveHref, l.WaveHref, ""
		r.stops = append(r.stops, stop{shared, []string{l.Name}})
		return
	}
	r.stops[i].clusters = append(r.stops[i].clusters, l.Name)
	r.stops[i].Backlog = max(r.stops[i].Backlog, l.Backlog)
}

func (p *rulerPlan) drawRow(r row) {
	if r.heading != "" {
		p.text(point{0, r.y}, "start", "t-word t-muted", cut(r.heading, sizeNote, p.width/2))
		p.mark("line", attrs{"class", "line", "x1", 0.0, "y1", r.y + 6, "x2", p.width, "y2", r.y + 6})
		return
	}

	p.group("lane", r.href, r.title(), false)
	most, at := p.left-26, point{0, r.y + 4.5}
	if !p.wide {
		most, at = p.width*0.42, point{0, r.y - 16}
	}
	p.text(at, "start", "t-name", cut(r.name, sizeName, most))
	p.end()

	if len(p.Commits) > 0 {
		p.mark("line", attrs{"class", "track", "x1", p.start(), "y1", r.y, "x2", p.tip(), "y2", r.y})
		for _, s := range r.stops {
			p.drawBacklog(s, r.y)
		}
		for _, s := range r.stops {
			p.drawStop(s, r.y, len(r.stops) > 1)
		}
	}
	p.drawNote(r)
}

// at is where a stop is on the axis, within what is shown of it.
func (p *rulerPlan) at(s stop) float64 {
	if s.At < p.first {
		return p.start()
	}
	return p.x(min(s.At, len(p.Commits)-1))
}

// drawBacklog shades what waits for a cluster, from where it stands to the end of
// the branch.
func (p *rulerPlan) drawBacklog(s stop, y float64) {
	from, to := p.at(s), p.tip()
	if s.Backlog == 0 || from >= to || s.State == Absent {
		return
	}
	p.group("backlog "+s.State.look().class, s.BacklogHref, s.title(), false)
	p.mark("rect", attrs{"class", "shade", "x", from, "y", y - 8, "width", to - from + 6, "height", 16.0, "rx", 8.0})
	p.mark("line", attrs{"class", "hatch", "x1", from + 14, "y1", y, "x2", to, "y2", y})
	p.end()
}

// drawStop draws where clusters stand, and how many where a lane has more than one place.
func (p *rulerPlan) drawStop(s stop, y float64, counted bool) {
	if s.State == Absent {
		return
	}
	p.group("stop-at "+s.State.look().class, s.Href, s.title(), false)
	p.badge(point{p.at(s), y}, 9, s.State)
	if counted && len(s.clusters) > 1 {
		p.text(point{p.at(s) + 12, y - 5}, "start", "t-count", fmt.Sprintf("×%d", len(s.clusters)))
	}
	p.end()
}

// drawNote writes the state in words: beside the lane, or above it at the right end.
func (p *rulerPlan) drawNote(r row) {
	worst := r.worst()
	at, anchor, most := point{p.right + 26, r.y + 4}, "start", (p.width-p.right-26)*0.95 // words are bold
	if !p.wide {
		at, anchor, most = point{p.width, r.y - 16}, "end", p.width*0.55
	}

	p.begin("g", attrs{"class", worst.State.look().class})
	p.begin("text", attrs{"x", at.x, "y", at.y, "text-anchor", anchor, "class", "t-note"})
	word := worst.words()
	switch all := r.clusters(); {
	case all > 1 && len(worst.clusters) == all:
		word = fmt.Sprintf("all %d %s", all, word)
	case all > 1:
		word = fmt.Sprintf("%d of %d %s", len(worst.clusters), all, word)
	}
	p.begin("tspan", attrs{"class", "t-word"})
	p.escape(cut(word, sizeNote, most))
	p.end()
	if left := most - width(word+" ", sizeNote); worst.Note != "" && left > 3*sizeNote {
		p.begin("tspan", attrs{"class", "t-muted"})
		p.escape(" " + cut("· "+worst.Note, sizeNote, left))
		p.end()
	}
	p.end()
	p.end()
}

func (r row) clusters() (n int) {
	for _, s := range r.stops {
		n += len(s.clusters)
	}
	return n
}

// severity orders states, worst last.
var severity = []State{Absent, Current, InProgress, Deferred, Outdated, Held, Unknown, Failed}

// worst is the stop that the note of a row is about.
func (r row) worst() stop {
	return slices.MaxFunc(r.stops, func(a, b stop) int {
		return cmp.Compare(slices.Index(severity, a.State), slices.Index(severity, b.State))
	})
}

func (r row) title() string {
	if len(r.stops) == 1 && len(r.stops[0].clusters) == 1 {
		return joined(": ", r.name, r.stops[0].words())
	}
	var parts []string
	for _, s := range r.stops {
		parts = append(parts, fmt.Sprintf("%d %s", len(s.clusters), s.words()))
	}
	return joined(": ", r.name, strings.Join(parts, ", "))
}

// words read "in progress", "held, 3 behind".
func (s stop) words() string {
	word := string(s.State)
	if s.Backlog > 0 {
		word = fmt.Sprintf("%s, %d behind", word, s.Backlog)
	}
	return word
}

func (s stop) title() string {
	const most = 12
	names := s.clusters
	if len(names) > most {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", len(s.clusters)-most))
	}
	return joined(" · ", strings.Join(names, ", ")+": "+s.words(), s.Note)
}
