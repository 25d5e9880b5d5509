// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"slices"
)

// Replicas are those of one template: how many each cluster is asked for, how many
// it runs, and how many a hold keeps back.
type Replicas struct {
	Name   string
	Shares []Share
	// Live says that Running was observed on clusters. Without it the words say
	// "released", which is what git alone knows.
	Live bool
}

// Share is what falls to one cluster.
type Share struct {
	Cluster, Href        string
	Asked, Running, Held int64
}

// asIs reports whether a cluster runs what it is asked for.
func (s Share) asIs() bool { return s.Asked == s.Running && s.Held == 0 }

const (
	barHeight   = 14.0
	shareHeight = 28.0
)

// SVG draws replicas for a width: the sum, and a bar for each cluster. Of more than
// MaxLanes clusters those are drawn that do not run what they are asked for, and the
// others are counted.
func (r Replicas) SVG(width int) []byte {
	shares, more := r.shown()
	total := r.total()
	p := &sharesPlan{canvas: &canvas{}, width: float64(width), word: "released"}
	if r.Live {
		p.word = "running"
	}
	p.from, p.words = 150, 250
	if p.width < wideFrom {
		p.from, p.words = 0, 0
	}

	p.row = shareHeight
	if p.from == 0 {
		p.row += 16
	}
	rows := float64(len(shares) + 1)
	if more > 0 {
		rows++
	}
	p.picture("draw-replicas", "Replicas of "+r.Name+": "+p.say(total), point{p.width, rows*p.row + 10}, p.links(shares))
	p.draw(total, max(total.Asked, total.Running), 0)
	p.mark("line", attrs{"class", "line", "x1", 0.0, "y1", p.row + 3, "x2", p.width, "y2", p.row + 3})

	most := int64(1)
	for _, s := range shares {
		most = max(most, s.Asked, s.Running)
	}
	for i, s := range shares {
		p.draw(s, most, float64(i+1)*p.row+8)
	}
	if more > 0 {
		others := count(more, "more cluster") + " as asked"
		if more == len(r.Shares) {
			others = "every cluster as asked"
		}
		p.text(point{p.from, rows*p.row - 6}, "start", "t-note t-muted", others)
	}
	return p.bytes()
}

// shown are the shares that are drawn, and how many are not.
func (r Replicas) shown() (shares []Share, more int) {
	shares = r.Shares
	if len(shares) > MaxLanes {
		shares = slices.DeleteFunc(slices.Clone(shares), Share.asIs)
		shares = shares[:min(len(shares), MaxLanes)]
	}
	return shares, len(r.Shares) - len(shares)
}

func (r Replicas) total() (t Share) {
	t.Cluster = "all " + count(len(r.Shares), "cluster")
	for _, s := range r.Shares {
		t.Asked += s.Asked
		t.Running += s.Running
		t.Held += s.Held
	}
	return t
}

// sharesPlan is where everything of replicas is.
type sharesPlan struct {
	*canvas
	width, row  float64
	from, words float64 // beside the bars: of names, and for words; 0 if these are above
	word        string
}

func (p *sharesPlan) links(shares []Share) bool {
	return slices.ContainsFunc(shares, func(s Share) bool { return local(s.Href) })
}

// say reads "4 running of 5 asked, 1 held".
func (p *sharesPlan) say(s Share) string {
	if s.Asked == 0 && s.Running == 0 {
		return "none asked"
	}

	words := fmt.Sprintf("%d %s of %d asked", s.Running, p.word, s.Asked)
	if s.Held > 0 {
		words += fmt.Sprintf(", %d held", s.Held)
	}
	return words
}

// state is that of a share as a whole.
func (s Share) state() State {
	switch {
	case s.Held > 0:
		return Held
	case s.Running < s.Asked:
		return InProgress
	case s.Running > s.Asked:
		return Outdated
	}
	return Current
}

// draw draws the name, the bar and the words of a share.
func (p *sharesPlan) draw(s Share, scale int64, y float64) {
	p.group("share "+s.state().look().class, s.Href, s.Cluster+": "+p.say(s), false)
	defer p.end()

	room := p.width - p.from - p.words
	if p.from > 0 {
		p.text(point{0, y + 15}, "start", "t-name", cut(s.Cluster, sizeName, p.from-14))
		p.text(point{p.width - p.words + 16, y + 15}, "start", "t-note", p.glyph(s)+p.say(s))
	} else {
		p.text(point{0, y + 12}, "start", "t-name", cut(s.Cluster, sizeName, p.width*0.42))
		p.text(point{p.width, y + 12}, "end", "t-note", p.glyph(s)+p.say(s))
		y += 14
	}
	p.bar(s, point{p.from, y + 4}, room/float64(max(scale, 1)))
}

// glyph is the glyph before the words of a share that is not as asked.
func (p *sharesPlan) glyph(s Share) string {
	if s.asIs() {
		return ""
	}
	return s.state().look().glyph + " "
}

// bar draws what runs, what is held back, what is missing and what is too much, one
// after the other.
func (p *sharesPlan) bar(s Share, at point, unit float64) {
	runs := min(s.Running, s.Asked)
	over := s.Running - runs
	held := min(s.Held, s.Asked-runs)
	missing := s.Asked - runs - held
	for _, part := range []struct {
		class string
		n     int64
	}{{"bar", runs}, {"bar-over", over}, {"bar-held", held}, {"bar-asked", missing}} {
		if part.n == 0 {
			continue
		}
		p.mark("rect", attrs{"class", part.class, "x", at.x, "y", at.y, "width", float64(part.n) * unit, "height", barHeight, "rx", 3.0})
		if part.class == "bar-held" {
			p.mark("line", attrs{"class", "hatch", "x1", at.x + 2, "y1", at.y + barHeight/2, "x2", at.x + float64(part.n)*unit - 1, "y2", at.y + barHeight/2})
		}
		p.ticks(at, part.n, unit)
		at.x += float64(part.n) * unit
	}
}

// ticks part replicas from each other, where they are wide enough to be counted.
func (p *sharesPlan) ticks(at point, n int64, unit float64) {
	if unit < 8 {
		return
	}
	for i := int64(1); i < n; i++ {
		x := at.x + float64(i)*unit
		p.mark("line", attrs{"class", "tick", "x1", x, "y1", at.y, "x2", x, "y2", at.y + barHeight})
	}
}
