// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bytes"
	"encoding/xml"
	"math"
	"strconv"
	"strings"

	"github.com/fairlead/fairlead/printable"
)

// canvas writes SVG. Names of elements, attributes and classes are ours; every
// value and every text is escaped.
type canvas struct {
	out  bytes.Buffer
	open []string
}

// point is a place on the canvas, in CSS pixels from its upper left corner.
type point struct{ x, y float64 }

// attrs are names and values, one after the other. A value is a string or a number.
type attrs []any

// begin opens an element, which end closes.
func (c *canvas) begin(name string, with attrs) {
	c.tag(name, with)
	c.out.WriteByte('>')
	c.open = append(c.open, name)
}

// end closes the element that was opened last.
func (c *canvas) end() {
	last := len(c.open) - 1
	c.out.WriteString("</" + c.open[last] + ">\n")
	c.open = c.open[:last]
}

// mark writes an element that has no content.
func (c *canvas) mark(name string, with attrs) {
	c.tag(name, with)
	c.out.WriteString("/>\n")
}

func (c *canvas) tag(name string, with attrs) {
	c.out.WriteString("<" + name)
	for i := 0; i < len(with); i += 2 {
		c.out.WriteString(" " + with[i].(string) + `="`)
		switch v := with[i+1].(type) {
		case string:
			c.escape(v)
		case float64:
			c.out.WriteString(number(v))
		case int:
			c.out.WriteString(strconv.Itoa(v))
		}
		c.out.WriteByte('"')
	}
}

// escape writes a text that others wrote.
func (c *canvas) escape(text string) {
	_ = xml.EscapeText(&c.out, []byte(printable.Line(text))) // a buffer takes everything
}

// picture opens the picture itself.
func (c *canvas) picture(class, label string, size point, links bool) {
	role := "img"
	if links {
		role = "group" // the parts of an image are not read, and links are to be found
	}
	c.begin("svg", attrs{
		"xmlns", "http://www.w3.org/2000/svg", "class", "draw " + class,
		"width", size.x, "height", size.y, "viewBox", "0 0 " + number(size.x) + " " + number(size.y),
		"role", role, "aria-label", label,
	})
	c.out.WriteByte('\n')
}

// text writes a line whose base begins, ends or has its middle at a point.
func (c *canvas) text(at point, anchor, class, text string) {
	with := attrs{"x", at.x, "y", at.y, "class", class}
	if anchor != "start" {
		with = append(with, "text-anchor", anchor)
	}
	c.begin("text", with)
	c.escape(text)
	c.end()
}

// title is what a pointer that rests shows.
func (c *canvas) title(text string) {
	c.begin("title", nil)
	c.escape(text)
	c.end()
}

// group has a title, and is a link if there is somewhere to go. The title is what a
// link is called: a label beside it would have to repeat what is written in it.
func (c *canvas) group(class, href, title string, here bool) {
	if !local(href) {
		c.begin("g", attrs{"class", class})
	} else {
		with := attrs{"class", class, "href", href}
		if here {
			with = append(with, "aria-current", "true")
		}
		c.begin("a", with)
	}
	if title != "" {
		c.title(title)
	}
}

// local reports whether a link leads to this site or to a forge: nothing that is
// run.
func local(href string) bool {
	return strings.HasPrefix(href, "/") || strings.HasPrefix(href, "?") || strings.HasPrefix(href, "#") ||
		strings.HasPrefix(href, "https://") || strings.HasPrefix(href, "http://")
}

// badge is a round mark with a glyph in it.
func (c *canvas) badge(at point, radius float64, state State) {
	c.mark("circle", attrs{"class", "stop", "cx", at.x, "cy", at.y, "r", radius})
	c.text(point{at.x, at.y + 3.7}, "middle", "glyph", state.look().glyph)
}

// bytes are the picture, whose elements are all closed.
func (c *canvas) bytes() []byte {
	for len(c.open) > 0 {
		c.end()
	}
	return c.out.Bytes()
}

func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
