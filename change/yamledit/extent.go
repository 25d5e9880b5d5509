// SPDX-License-Identifier: Apache-2.0

package yamledit

import (
	"bytes"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
)

// The parser says where a node begins, but not where it ends.

// lineStarts are the offsets of lines, by the line breaks that the parser
// knows.
func lineStarts(text []byte) []int {
	starts := []int{0}
	for i := 0; i < len(text); {
		n := lineBreak(text[i:])
		if n == 0 {
			i++
			continue
		}
		i += n
		starts = append(starts, i)
	}

	return starts
}

// lineBreak is the length of the line break that text starts with, or 0.
func lineBreak(text []byte) int {
	switch {
	case len(text) == 0:
		return 0
	case text[0] == '\n':
		return 1
	case text[0] == '\r':
		if len(text) > 1 && text[1] == '\n' {
			return 2
		}
		return 1
	case bytes.HasPrefix(text, []byte("\u0085")):
		return 2
	case bytes.HasPrefix(text, []byte("\u2028")), bytes.HasPrefix(text, []byte("\u2029")):
		return 3
	}

	return 0
}

// begin is the offset of a node. The parser's columns count characters.
func (p *part) begin(n *yamlv3.Node) int {
	at := p.starts[min(n.Line, len(p.starts))-1]
	for range n.Column - 1 {
		if at >= len(p.text) {
			break
		}
		_, size := utf8.DecodeRune(p.text[at:])
		at += size
	}

	return at
}

// lineOf is the start of the line with an offset.
func (p *part) lineOf(at int) int {
	start := 0
	for _, s := range p.starts {
		if s > at {
			break
		}
		start = s
	}
	return start
}

// after is the start of the line after an offset, or the end of the text.
func (p *part) after(at int) int {
	for _, s := range p.starts {
		if s > at {
			return s
		}
	}
	return len(p.text)
}

// lead is the text before an offset on its line, and whether it is only
// whitespace.
func (p *part) lead(at int) (string, bool) {
	lead := string(p.text[p.lineOf(at):at])
	return lead, strings.Trim(lead, " \t") == ""
}

// rest reports whether the rest of the line is only whitespace and a comment.
func (p *part) rest(at int) bool {
	line := strings.TrimRight(string(p.text[at:p.after(at)]), " \t\r\n")
	trimmed := strings.TrimLeft(line, " \t")
	return trimmed == "" || trimmed[0] == '#' && (trimmed != line || at == p.lineOf(at))
}

// skip skips whitespace and comments, and also commas if wanted.
func (p *part) skip(at int, commas bool) int {
	for at < len(p.text) {
		switch c := p.text[at]; {
		case c == ' ' || c == '\t' || commas && c == ',':
			at++
		case lineBreak(p.text[at:]) > 0:
			at += lineBreak(p.text[at:])
		case c == '#':
			for at < len(p.text) && lineBreak(p.text[at:]) == 0 {
				at++
			}
		default:
			return at
		}
	}

	return at
}

// end is the offset after a node; -1 if it is unknown. outer is the indentation
// of the enclosing block.
func (p *part) end(n *yamlv3.Node, outer int) int {
	switch n.Kind {
	case yamlv3.AliasNode:
		return p.begin(n) + 1 + len(n.Value)
	case yamlv3.ScalarNode:
		return p.scalarEnd(n, outer)
	case yamlv3.MappingNode, yamlv3.SequenceNode:
	default:
		return -1
	}

	if n.Style&yamlv3.FlowStyle != 0 {
		return p.flowEnd(n)
	}
	if len(n.Content) == 0 {
		return -1
	}

	inner := n.Column - 1
	if n.Kind == yamlv3.MappingNode {
		inner = n.Content[0].Column - 1
	}

	return p.end(n.Content[len(n.Content)-1], inner)
}

// flowEnd is the offset after the closing bracket of a flow collection.
func (p *part) flowEnd(n *yamlv3.Node) int {
	at := p.properties(n) + 1
	for _, c := range n.Content {
		if at = p.end(c, -1); at < 0 {
			return -1
		}
	}

	if at = p.closing(at); at >= len(p.text) || p.text[at] != ']' && p.text[at] != '}' {
		return -1
	}

	return at + 1
}

// between is the text between two nodes of a flow collection.
func (p *part) between(a, b *yamlv3.Node) string {
	from, to := p.end(a, -1), p.begin(b)
	if from < 0 || to < from {
		return ""
	}
	return string(p.text[from:to])
}

// closing is the offset of the closing bracket, given the end of the last
// entry.
func (p *part) closing(at int) int {
	at = p.skip(at, true)
	if at < len(p.text) && p.text[at] == ':' { // a key without a value
		at = p.skip(at+1, true)
	}
	return at
}

// properties is the offset of a node after its anchor and tag.
func (p *part) properties(n *yamlv3.Node) int {
	at := p.begin(n)
	for at < len(p.text) && (p.text[at] == '&' || p.text[at] == '!') {
		for at < len(p.text) && !strings.ContainsRune(" \t\r\n", rune(p.text[at])) {
			at++
		}
		at = p.skip(at, false)
	}
	return at
}

func (p *part) scalarEnd(n *yamlv3.Node, outer int) int {
	if n.Value == "" && n.Style&^yamlv3.TaggedStyle == 0 {
		return p.begin(n) // the node is empty
	}

	at := p.properties(n)
	switch {
	case n.Style&yamlv3.DoubleQuotedStyle != 0:
		for at++; at < len(p.text) && p.text[at] != '"'; at++ {
			if p.text[at] == '\\' {
				at++
			}
		}
		return at + 1
	case n.Style&yamlv3.SingleQuotedStyle != 0:
		for at++; at < len(p.text); at++ {
			if p.text[at] != '\'' {
				continue
			}
			if at+1 >= len(p.text) || p.text[at+1] != '\'' {
				break
			}
			at++
		}
		return at + 1
	case n.Style&(yamlv3.LiteralStyle|yamlv3.FoldedStyle) != 0:
		end, _ := p.block(at, outer)
		return end
	}

	// A plain scalar is its own text, except for the whitespace between words.
	for _, word := range strings.FieldsFunc(n.Value, func(c rune) bool { return c == ' ' || c == '\t' || c == '\n' }) {
		for at < len(p.text) && (strings.ContainsRune(" \t", rune(p.text[at])) || lineBreak(p.text[at:]) > 0) {
			at += max(lineBreak(p.text[at:]), 1)
		}
		if !bytes.HasPrefix(p.text[at:], []byte(word)) {
			return -1
		}
		at += len(word)
	}

	return at
}

// block is the end of a literal or folded scalar whose header is at an offset,
// without its last line break, and the indentation of its content (0 if empty).
func (p *part) block(at, outer int) (end, indent int) {
	header := strings.TrimRight(string(p.text[at:p.after(at)]), " \t\r\n")
	mark, _, _ := strings.Cut(header, " ")
	if digit := strings.Trim(mark, "|>+-"); digit != "" {
		indent = max(outer, 0) + int(digit[0]-'0')
	}

	keep := strings.Contains(mark, "+")
	end = at + len(header)
	for line := p.after(at); line < len(p.text); line = p.after(line) {
		text := strings.TrimRight(string(p.text[line:p.after(line)]), "\r\n")
		spaces := len(text) - len(strings.TrimLeft(text, " "))
		blank := strings.Trim(text, " \t") == ""
		switch {
		case blank && (indent == 0 || len(text) <= indent):
			if keep {
				end = line + len(text)
			}
			continue
		case indent == 0 && spaces <= outer:
			return end, indent
		case indent == 0:
			indent = spaces
		case spaces < indent:
			return end, indent
		}

		end = line + len(text)
	}

	return end, indent
}

// dash is the offset of the dash of a block sequence's item, or -1.
func (p *part) dash(seq *yamlv3.Node, i int) int {
	at := p.begin(seq)
	if i > 0 {
		end := p.end(seq.Content[i-1], seq.Column-1)
		if end < 0 {
			return -1
		}
		at = p.skip(p.after(end), false)
	}

	if at >= len(p.text) || p.text[at] != '-' {
		return -1
	}

	return at
}
