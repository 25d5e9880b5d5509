// SPDX-License-Identifier: Apache-2.0

package draw

import "strings"

// Chain is why one cluster has what it has, cause after cause.
type Chain struct {
	Label string // "Why Deployment shop/web is on eu-1"
	Links []Link
}

// Link is one cause: "policy", "shop-web", "policies/shop-web.yaml:9".
type Link struct {
	Kind, Name, Detail, Href string
	State                    State // "" for a cause that is as it should be
}

// The sizes of a chain.
const (
	boxHeight = 62.0
	boxWidth  = 158.0 // at least
	boxMost   = 250.0
	boxGap    = 34.0
)

// SVG draws a chain for a width: from left to right, or downward where there is no
// room for it.
func (c Chain) SVG(width int) []byte {
	n := float64(max(len(c.Links), 1))
	room := (float64(width) - (n-1)*boxGap) / n
	down := room < boxWidth
	size := point{float64(width), boxHeight + 2}
	box := min(room, boxMost)
	if down {
		box = min(float64(width)-2, 2*boxMost)
		size.y = n*boxHeight + (n-1)*(boxGap-10) + 2
	}

	out := &canvas{}
	links := false
	for _, l := range c.Links {
		links = links || local(l.Href)
	}
	out.picture("draw-chain", c.Label+": "+c.say(), size, links)
	for i, l := range c.Links {
		at := point{1 + float64(i)*(box+boxGap), 1}
		if down {
			at = point{1, 1 + float64(i)*(boxHeight+boxGap-10)}
		}
		out.box(l, at, box)
		switch {
		case i == len(c.Links)-1:
		case down:
			out.arrow(point{at.x + 24, at.y + boxHeight + 3}, boxGap-16, true)
		default:
			out.arrow(point{at.x + box + 4, at.y + boxHeight/2}, boxGap-8, false)
		}
	}
	return out.bytes()
}

// say reads "policy shop-web, then placement us-1".
func (c Chain) say() string {
	var parts []string
	for _, l := range c.Links {
		parts = append(parts, l.title())
	}
	return strings.Join(parts, ", then ")
}

func (l Link) title() string { return joined(" ", l.Kind, string(l.State), l.Name) }

// box draws one cause.
func (c *canvas) box(l Link, at point, wide float64) {
	class := "cause"
	if l.State != "" {
		class += " " + l.State.look().class
	}
	c.group(class, l.Href, joined(" · ", l.title(), l.Detail), false)
	defer c.end()

	c.mark("rect", attrs{"class", "box", "x", at.x, "y", at.y, "width", wide - 2, "height", boxHeight, "rx", 7.0})
	most := wide - 26
	kind, beside := l.Kind, most
	if l.State != "" {
		beside = (most - 26) * 0.9 // of the badge, and it is bold
		c.badge(point{at.x + wide - 20, at.y + 17}, 9, l.State)
		kind = joined(" · ", kind, string(l.State))
	}
	c.text(point{at.x + 12, at.y + 19}, "start", "t-word", cut(kind, sizeNote, beside))
	c.text(point{at.x + 12, at.y + 37}, "start", "t-name", cut(l.Name, sizeName*1.06, most))
	c.text(point{at.x + 12, at.y + 53}, "start", "t-mono", cut(l.Detail, sizeNote, most))
}

// arrow draws one from a point to the right, or downward.
func (c *canvas) arrow(from point, long float64, down bool) {
	to, a, b := point{from.x + long, from.y}, point{from.x + long - 5, from.y - 4}, point{from.x + long - 5, from.y + 4}
	if down {
		to, a, b = point{from.x, from.y + long}, point{from.x - 4, from.y + long - 5}, point{from.x + 4, from.y + long - 5}
	}
	c.mark("path", attrs{"class", "arrow", "d", "M" + from.text() + " L" + to.text() + " M" + a.text() + " L" + to.text() + " L" + b.text()})
}

func (p point) text() string { return number(p.x) + " " + number(p.y) }
