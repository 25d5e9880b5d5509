// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxLanes is how many clusters have a lane of their own. More of them share one
// with their wave.
const MaxLanes = 24

// Ruler is the history of a branch, a lane for each cluster below it: where it
// stands, and what waits for it.
type Ruler struct {
	Branch  string
	Commits []Commit // first-parent, oldest first
	Pulls   []Pull   // open pull requests on top of the last commit
	Lanes   []Lane
	// Older is how many commits are not given because they are older, and OlderHref
	// where they are shown.
	Older     int
	OlderHref string
}

// Verdict is how a commit was taken.
type Verdict string

// The verdicts.
const (
	Accepted Verdict = "accepted"
	Refused  Verdict = "refused"
	Awaiting Verdict = "awaits confirmation"
)

// Commit is one of the branch.
type Commit struct {
	Short   string // its abbreviated hash
	Subject string
	Detail  string // who and when, for the title
	Href    string
	Verdict Verdict
	Held    int  // on how many clusters something of it is held
	Here    bool // the page shows the fleet as of this commit
}

// Pull is an open pull request.
type Pull struct {
	Name, Subject, Href string // "#482", "Raise web to 1.19.0"
}

// Lane is a cluster.
type Lane struct {
	Name string
	Href string
	Wave string // of what waves it is in, empty for none
	// WaveHref is where a wave leads whose clusters share a lane.
	WaveHref string
	// At is the commit where it stands, by its place in Commits; negative if that is
	// older than the first of them.
	At    int
	State State
	// Backlog is how many commits wait for it, and BacklogHref where they are listed.
	Backlog     int
	BacklogHref string
	Note        string // "9d, mara, CHG-1188"
}

// The sizes of a ruler.
const (
	laneHeight = 30.0
	waveHeight = 30.0
	nearest    = 22.0  // between two commits, so that slanted labels do not meet
	roomy      = 104.0 // between two commits, so that labels can be level
	wideFrom   = 720.0 // lanes have their names and notes beside them
	slantRun   = 0.788 // of a slanted label for its length, to the right
	slantRise  = 0.616 // and upward, at 38 degrees
)

// rulerPlan is where everything of a ruler is.
type rulerPlan struct {
	Ruler
	*canvas
	wide        bool
	width       float64
	left, right float64 // of the axis
	step        float64 // between commits
	axis        float64 // from the top
	first       int     // commit that there is room for
	rows        []row
	height      float64
}

// SVG draws a ruler for a width. Where there is no room for all commits, the oldest
// are left out and counted.
func (r Ruler) SVG(width int) []byte {
	p := &rulerPlan{Ruler: r, canvas: &canvas{}, width: float64(width)}
	p.place()

	p.picture("draw-ruler", p.label(), point{p.width, p.height}, true)
	p.lines()
	p.drawOlder()
	for i := p.first; i < len(p.Commits); i++ {
		p.drawCommit(i)
	}
	for i, pull := range p.Pulls {
		p.drawPull(len(p.Commits)+i, pull)
	}
	for _, row := range p.rows {
		p.drawRow(row)
	}
	return p.bytes()
}

// label says what the picture shows to whoever does not see it.
func (p *rulerPlan) label() string {
	waits := 0
	for _, l := range p.Lanes {
		if l.Backlog > 0 {
			waits++
		}
	}
	return fmt.Sprintf("Commit ruler: %s of %s, newest last; %s, changes wait for %d",
		count(len(p.Commits), "commit"), p.Branch, count(len(p.Lanes), "cluster"), waits)
}

// place decides where everything is.
func (p *rulerPlan) place() {
	p.wide = p.width >= wideFrom
	p.left, p.right = 28, p.width-64
	if p.wide {
		p.left, p.right = 150, p.width-280
	}

	marks := len(p.Commits) + len(p.Pulls)
	fit := int((p.right-p.left)/nearest) + 1
	p.first = max(0, min(marks-fit, len(p.Commits)-1))
	shown := marks - p.first
	p.step = roomy
	if shown > 1 {
		p.step = min((p.right-p.left)/float64(shown-1), 180)
	}

	p.axis = 138
	if p.level() {
		p.axis = 78
	}
	y := p.axis + 34
	p.rows, y = p.rowsFrom(y)
	p.height = y + 4
}

// level reports whether labels have room beside each other.
func (p *rulerPlan) level() bool { return p.wide && p.step >= roomy }

// x is where a commit is, or a pull request after the last commit. The newest commit
// is always in the same place.
func (p *rulerPlan) x(i int) float64 {
	last := len(p.Commits) + len(p.Pulls) - 1
	return p.right - float64(last-i)*p.step
}

// tip is where the branch ends.
func (p *rulerPlan) tip() float64 { return p.x(len(p.Commits) - 1) }

// lines draws the axis, and a hairline down from each commit.
func (p *rulerPlan) lines() {
	if len(p.Commits) == 0 {
		return
	}
	bottom := p.height - 10
	for i := p.first; i < len(p.Commits); i++ {
		x := p.x(i)
		if p.Commits[i].Here {
			p.mark("rect", attrs{"class", "now", "x", x - 10, "y", p.axis - 12, "width", 20.0, "height", bottom - p.axis + 12, "rx", 6.0})
		}
		p.mark("line", attrs{"class", "grid", "x1", x, "y1", p.axis, "x2", x, "y2", bottom})
	}

	if p.wide {
		p.text(point{0, p.axis + 4.5}, "start", "t-name", cut(p.Branch, sizeName, p.left-34))
	}
	p.mark("line", attrs{"class", "axis", "x1", p.start(), "y1", p.axis, "x2", p.tip(), "y2", p.axis})
	if len(p.Pulls) > 0 {
		p.mark("line", attrs{"class", "axis pull", "x1", p.tip(), "y1", p.axis, "x2", p.x(len(p.Commits) + len(p.Pulls) - 1), "y2", p.axis})
	}
}

// start is where the axis begins: before the first commit, if there are older ones.
func (p *rulerPlan) start() float64 {
	if p.older() > 0 {
		return max(p.x(p.first)-16, 2)
	}
	return p.x(p.first)
}

// older is how many commits are not shown.
func (p *rulerPlan) older() int { return p.Older + p.first }

func (p *rulerPlan) drawOlder() {
	if p.older() == 0 {
		return
	}
	p.group("older", p.OlderHref, count(p.older(), "older commit"), false)
	at := point{p.start() - 4, p.axis + 20}
	anchor := "start"
	if p.wide {
		anchor = "end"
	} else {
		at.x = 0
	}
	p.text(at, anchor, "t-note", "‹ "+count(p.older(), "older"))
	p.end()
}

// drawCommit draws a commit with its label.
func (p *rulerPlan) drawCommit(i int) {
	c, at := p.Commits[i], point{p.x(i), p.axis}
	state, word := c.mark()
	p.group("commit "+state.look().class, c.Href, c.title(), c.Here)
	if state == Current {
		p.mark("circle", attrs{"class", "dot", "cx", at.x, "cy", at.y, "r", 6.0})
	} else {
		p.badge(at, 9, state)
	}
	p.drawLabel(at, label{word, c.Short, c.Subject})
	p.end()
}

func (p *rulerPlan) drawPull(i int, pull Pull) {
	at := point{p.x(i), p.axis}
	p.group("commit s-open", pull.Href, joined(" · ", pull.Name+" open", pull.Subject), false)
	p.mark("circle", attrs{"class", "dot pull", "cx", at.x, "cy", at.y, "r", 7.0})
	p.drawLabel(at, label{"open", pull.Name, pull.Subject})
	p.end()
}

// label is what is written at a commit.
type label struct{ word, name, subject string }

// drawLabel writes three level lines, or a slanted one where there is no room for
// them.
func (p *rulerPlan) drawLabel(at point, l label) {
	if p.level() {
		most := p.step - 10
		lines := []struct{ class, text string }{{"t-word", l.word}, {"t-mono", l.name}, {"t-note", l.subject}}
		for i, line := range lines {
			if line.text != "" {
				p.text(point{at.x, at.y - 50 + 16*float64(i)}, "middle", line.class, cut(line.text, sizeNote, most))
			}
		}
		return
	}

	from := point{at.x + 2, at.y - 14}
	most := min((p.width-from.x)/slantRun, (from.y-4)/slantRise) - sizeNote
	p.begin("text", attrs{"x", from.x, "y", from.y, "class", "t-note",
		"transform", "rotate(-38 " + number(from.x) + " " + number(from.y) + ")"})
	for _, part := range []struct{ class, text string }{{"t-word", l.word}, {"", cmp.Or(l.subject, l.name)}} {
		if part.text == "" || most < 2*sizeNote {
			continue
		}
		text := cut(part.text, sizeNote, most)
		most -= width(text+" ", sizeNote)
		p.begin("tspan", attrs{"class", part.class})
		p.escape(text)
		p.out.WriteByte(' ')
		p.end()
	}
	p.end()
}

// mark returns the state that a commit is drawn in, and its word.
func (c Commit) mark() (State, string) {
	switch {
	case c.Verdict == Refused:
		return Failed, "refused"
	case c.Verdict == Awaiting:
		return Unknown, "awaits confirmation"
	case c.Held > 0:
		return Held, "held"
	}
	return Current, ""
}

func (c Commit) title() string {
	verdict := string(c.Verdict)
	if c.Verdict == Accepted {
		verdict = ""
	}
	held := ""
	if c.Held > 0 {
		held = "held on " + count(c.Held, "cluster")
	}
	return joined(" · ", joined(" ", c.Short, c.Subject), c.Detail, verdict, held)
}

// joined joins what is not empty.
func joined(by string, parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, by)
}

// count reads "1 commit", "2 commits", "3 older".
func count(n int, thing string) string {
	if n == 1 || thing == "older" {
		return fmt.Sprintf("%d %s", n, thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
