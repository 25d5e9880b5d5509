// SPDX-License-Identifier: Apache-2.0

package yamledit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Values to write are strings, booleans, []any, Fields and Inline.

// Fields are the entries of a mapping, in their order.
type Fields []Field

// Field is one entry of a mapping.
type Field struct {
	Name  string
	Value any
}

// Inline are entries that are written on one line.
type Inline Fields

// plain is a value as decoded from JSON.
func plain(v any) any {
	switch v := v.(type) {
	case Fields:
		m := map[string]any{}
		for _, f := range v {
			m[f.Name] = plain(f.Value)
		}
		return m
	case Inline:
		return plain(Fields(v))
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	}

	return v
}

// style is how a document is formatted.
type style struct {
	newline   string
	unit      int    // indentation of a mapping below its key
	list      int    // indentation of a list
	flowLists bool   // lists of strings are written [a, b]
	quoted    bool   // strings are always in double quotes
	quote     byte   // the quotes of strings that do not need them, or 0
	colon     string // between key and value of a flow mapping
	comma     string // between the entries of a flow collection
}

// styleOf detects the style of a document.
func styleOf(p *part, root *yamlv3.Node) style {
	s := style{newline: "\n", unit: 2, list: 2, quoted: p.json, colon: ": ", comma: ", "}
	if strings.Contains(string(p.text), "\r\n") {
		s.newline = "\r\n"
	}

	var flow, block int
	unit, dash := 0, -1
	var look func(n *yamlv3.Node)
	look = func(n *yamlv3.Node) {
		words := n.Kind == yamlv3.SequenceNode && len(n.Content) > 0
		for _, c := range n.Content {
			words = words && c.Kind == yamlv3.ScalarNode
		}

		switch {
		case words && n.Style&yamlv3.FlowStyle != 0:
			flow++
		case words:
			block++
		}

		if p.json && n.Kind == yamlv3.MappingNode && len(n.Content) > 2 {
			if p.between(n.Content[0], n.Content[1]) == ":" {
				s.colon = ":"
			}
			if p.between(n.Content[1], n.Content[2]) == "," {
				s.comma = ","
			}
		}

		for i, c := range n.Content {
			if n.Kind == yamlv3.MappingNode && n.Style&yamlv3.FlowStyle == 0 && i%2 == 1 && c.Style&yamlv3.FlowStyle == 0 && len(c.Content) > 0 {
				in := c.Column - n.Content[i-1].Column
				if c.Kind == yamlv3.MappingNode && unit == 0 && in > 0 {
					unit = in
				}
				if c.Kind == yamlv3.SequenceNode && dash < 0 && in >= 0 {
					dash = in
				}
			}
			look(c)
		}
	}

	look(root)

	if unit > 0 {
		s.unit = unit
	}
	if dash >= 0 {
		s.list = dash
	}

	s.flowLists = flow > 0 && block == 0
	return s
}

// lines formats an entry of a block mapping as complete lines.
func (s style) lines(indent int, key string, v any) string {
	lead := strings.Repeat(" ", indent)
	switch v := v.(type) {
	case Fields:
		if len(v) == 0 {
			break
		}
		text := lead + s.scalar(key) + ":" + s.newline
		for _, f := range v {
			text += s.lines(indent+s.unit, f.Name, f.Value)
		}
		return text
	case []any:
		if len(v) == 0 || s.flowLists && isStrings(v) {
			break
		}
		text := lead + s.scalar(key) + ":" + s.newline
		for _, item := range v {
			text += s.item(indent+s.list, item)
		}
		return text
	case string:
		if block, ok := s.literal(indent+s.unit, v); ok {
			return lead + s.scalar(key) + ": " + block
		}
	}

	return lead + s.scalar(key) + ": " + s.flow(v) + s.newline
}

// item formats an item of a block sequence.
func (s style) item(indent int, v any) string {
	lead := strings.Repeat(" ", indent) + "- "
	fields, ok := v.(Fields)
	if !ok || len(fields) == 0 {
		return lead + s.flow(v) + s.newline
	}

	var text string
	for _, f := range fields {
		text += s.lines(indent+2, f.Name, f.Value)
	}

	return lead + text[indent+2:]
}

// literal formats a text of several lines as a block scalar, header first.
func (s style) literal(indent int, v string) (string, bool) {
	body, ended := strings.CutSuffix(v, "\n")
	if !strings.Contains(v, "\n") || body == "" || strings.HasSuffix(body, "\n") || strings.ContainsAny(v[:1], " \t\n") {
		return "", false
	}

	text := "|" + s.newline
	if !ended {
		text = "|-" + s.newline
	}

	for line := range strings.SplitSeq(body, "\n") {
		if line != strings.TrimRight(line, " \t") || strings.ContainsFunc(line, unprintable) {
			return "", false
		}
		if line != "" {
			text += strings.Repeat(" ", indent) + line
		}
		text += s.newline
	}

	return text, true
}

// flow formats a value on one line.
func (s style) flow(v any) string {
	switch v := v.(type) {
	case Inline:
		return s.flow(Fields(v))
	case Fields:
		entries := make([]string, len(v))
		for i, f := range v {
			entries[i] = s.entry(f.Name, f.Value)
		}
		return "{" + strings.Join(entries, s.comma) + "}"
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = s.flow(v[i])
		}
		return "[" + strings.Join(items, s.comma) + "]"
	case string:
		return s.scalar(v)
	}

	return fmt.Sprint(v)
}

func (s style) entry(key string, v any) string { return s.scalar(key) + s.colon + s.flow(v) }

// pretty formats a value with one entry per line, as is common in JSON.
func (s style) pretty(v any, lead, unit string) string {
	open, shut := "{", "}"
	var entries []string
	switch v := v.(type) {
	case Fields:
		for _, f := range v {
			entries = append(entries, s.scalar(f.Name)+s.colon+s.pretty(f.Value, lead+unit, unit))
		}
	case []any:
		open, shut = "[", "]"
		for i := range v {
			entries = append(entries, s.pretty(v[i], lead+unit, unit))
		}
	}

	if len(entries) == 0 {
		return s.flow(v)
	}

	next := s.newline + lead + unit
	return open + next + strings.Join(entries, ","+next) + s.newline + lead + shut
}

func isStrings(list []any) bool {
	for _, v := range list {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	return true
}

// unquoted matches what every YAML parser reads as that string.
var unquoted = regexp.MustCompile(`^[A-Za-z_/]([A-Za-z0-9_./@<>()+ -]*[A-Za-z0-9_./@<>()+-])?$`)

// ambiguous matches what some parser reads as something else.
var ambiguous = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null|inf|nan)$`)

// scalar formats a string, in quotes if it needs them.
func (s style) scalar(v string) string {
	switch {
	case !s.quoted && s.quote == 0 && unquoted.MatchString(v) && !ambiguous.MatchString(v):
		return v
	case !s.quoted && (s.quote == '\'' || strings.ContainsAny(v, `"\`)) && !strings.ContainsFunc(v, unprintable) && !strings.Contains(v, "\n"):
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	}

	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)

	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("yamledit: a string has no JSON: %v", err))
	}

	var text strings.Builder
	for _, c := range strings.TrimSuffix(b.String(), "\n") {
		if unprintable(c) && c < 1<<16 {
			fmt.Fprintf(&text, `\u%04x`, c)
			continue
		}
		text.WriteRune(c)
	}

	return text.String()
}

// unprintable reports whether YAML requires a character to be escaped, or
// breaks a line at it.
func unprintable(c rune) bool {
	return c != '\n' && c != '\t' && unicode.IsControl(c) || c == '\u0085' || c == '\u2028' || c == '\u2029' || c == '\ufeff' || c == '\ufffe' || c == '\uffff'
}
