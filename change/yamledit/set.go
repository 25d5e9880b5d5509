// SPDX-License-Identifier: Apache-2.0

package yamledit

import (
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Set sets the value at a path, replaces what was there, and creates the
// missing mappings on the way.
func (o *Object) Set(v any, path ...string) error {
	w, err := o.walk(path)
	if err != nil {
		return err
	}

	want, err := w.wanted(plain(v))
	if err != nil {
		return err
	}

	if len(w.missing) == 0 {
		cuts, err := w.replace(v)
		if err != nil {
			return err
		}
		return o.apply(w.part, want, cuts...)
	}

	for _, step := range slices.Backward(w.missing[1:]) {
		v = Fields{{step, v}}
	}

	cuts, err := w.insert(w.missing[0], v)
	if err != nil {
		return err
	}

	return o.apply(w.part, want, cuts...)
}

// Append adds items to the list at a path, and creates the list if necessary.
func (o *Object) Append(items []any, path ...string) error {
	old, _ := o.Get(path...).([]any)
	switch {
	case len(items) == 0:
		return nil
	case len(old) == 0:
		return o.Set(items, path...)
	}

	w, err := o.walk(path)
	if err != nil {
		return err
	}

	list := slices.Clone(old)
	for _, item := range items {
		list = append(list, plain(item))
	}

	if n := w.last(); n.Style&yamlv3.FlowStyle == 0 {
		want, err := w.wanted(list)
		if err != nil {
			return err
		}

		last := n.Content[len(n.Content)-1]
		var lines string
		for _, item := range items {
			lines += w.styleLike(last).item(n.Column-1, inlineLike(last, item))
		}

		return o.below(w, want, lines)
	}

	for i, item := range items {
		if w, err = o.walk(append(slices.Clone(path), strconv.Itoa(len(old)+i))); err != nil {
			return err
		}

		want, err := w.wanted(plain(item))
		if err != nil {
			return err
		}

		cuts, err := w.insertFlow(w.last(), "", item)
		if err != nil {
			return err
		}

		if err := o.apply(w.part, want, cuts...); err != nil {
			return err
		}
	}

	return nil
}

// SetEach sets entries of the mapping at a path, as Set does one by one.
func (o *Object) SetEach(fields Fields, path ...string) error {
	old, _ := o.Get(path...).(map[string]any)
	var missing Fields
	for _, f := range fields {
		if _, there := old[f.Name]; !there {
			missing = append(missing, f)
			continue
		}
		if err := o.Set(f.Value, append(slices.Clone(path), f.Name)...); err != nil {
			return err
		}
	}

	if len(missing) == 0 {
		return nil
	}

	w, err := o.walk(path)
	if err != nil {
		return err
	}

	n := w.last()
	if len(w.missing) > 0 || n.Kind != yamlv3.MappingNode || len(n.Content) == 0 || isFlow(w.nodes) {
		first, rest := missing[0], missing[1:]
		if err := o.Set(first.Value, append(slices.Clone(path), first.Name)...); err != nil {
			return err
		}
		return o.SetEach(rest, path...)
	}

	whole, err := w.decode()
	if err != nil {
		return err
	}

	var lines string
	for _, f := range missing {
		whole = with(whole, append(slices.Clone(w.path), f.Name), plain(f.Value))
		lines += w.lines(n.Content[0].Column-1, f.Name, f.Value)
	}

	return o.below(w, whole, lines)
}

// below inserts lines below the last node of the walk, which is a block.
func (o *Object) below(w *walk, want any, lines string) error {
	n := w.last()
	end := w.end(n, w.outer(len(w.nodes)-1))
	if end < 0 || !w.rest(end) {
		return w.wrong(n, w.path, "has an unsupported layout; edit it by hand")
	}
	return o.apply(w.part, want, w.lineAfter(end, lines))
}

// walk is a path into a document, as far as it exists.
type walk struct {
	*part
	style
	root    *yamlv3.Node
	path    []string       // the full path
	nodes   []*yamlv3.Node // from the root on
	missing []string       // the steps that do not exist
}

func (o *Object) walk(path []string) (*walk, error) {
	p := o.document()
	root, err := p.parse()
	if err != nil {
		return nil, err
	}

	if root == nil {
		return nil, o.layout(p)
	}

	w := &walk{part: p, root: root.Content[0], path: o.full(path)}
	w.style = styleOf(p, w.root)
	n := w.root
	w.nodes = []*yamlv3.Node{n}

	for i := range w.path {
		next, err := w.step(n, w.path[:i+1])
		if err != nil {
			return nil, err
		}

		if next == nil {
			w.missing = w.path[i:]
			break
		}

		if next.Kind == yamlv3.AliasNode || next.Anchor != "" {
			return nil, p.wrong(next, w.path[:i+1], "is shared with other fields by an anchor; edit it by hand")
		}

		n = next
		w.nodes = append(w.nodes, n)
	}

	return w, nil
}

// step is the node at the last step of a path, nil if absent.
func (w *walk) step(n *yamlv3.Node, path []string) (*yamlv3.Node, error) {
	step := path[len(path)-1]
	switch n.Kind {
	case yamlv3.MappingNode:
		if v := value(n, step); v != nil {
			return v, nil
		}
		if value(n, "<<") == nil {
			return nil, nil
		}
		if whole, err := w.decode(); err == nil {
			if _, merged := get(whole, path); merged {
				return nil, w.wrong(n, path, "comes from a merge key; edit it by hand")
			}
		}
		return nil, nil
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], nil
		}
		return nil, nil
	}

	if n.Tag == "!!null" {
		return nil, nil
	}

	return nil, w.wrong(n, path[:len(path)-1], "is neither a map nor a list")
}

func (w *walk) last() *yamlv3.Node { return w.nodes[len(w.nodes)-1] }

// parent is the parent of the last node, nil for the root.
func (w *walk) parent() *yamlv3.Node {
	if len(w.nodes) < 2 {
		return nil
	}
	return w.nodes[len(w.nodes)-2]
}

// wanted is the document's value with v at the path.
func (w *walk) wanted(v any) (any, error) {
	whole, err := w.decode()
	if err != nil {
		return nil, err
	}
	return with(whole, w.path, v), nil
}

// with is a decoded value with another one at a path.
func with(v any, path []string, to any) any {
	if len(path) == 0 {
		return to
	}

	if list, ok := v.([]any); ok {
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i > len(list) {
			return v
		}

		list = slices.Clone(list)
		if i == len(list) {
			list = append(list, nil)
		}

		list[i] = with(list[i], path[1:], to)
		return list
	}

	m := map[string]any{}
	if old, ok := v.(map[string]any); ok {
		for key, value := range old {
			m[key] = value
		}
	}

	m[path[0]] = with(m[path[0]], path[1:], to)
	return m
}

// isFlow reports whether a node is in brackets, or inside them.
func isFlow(nodes []*yamlv3.Node) bool {
	return slices.ContainsFunc(nodes, func(n *yamlv3.Node) bool {
		return n.Kind != yamlv3.ScalarNode && n.Style&yamlv3.FlowStyle != 0
	})
}

// replace replaces the last node by a value.
func (w *walk) replace(v any) ([]cut, error) {
	n := w.last()
	if anchored(n) {
		return nil, w.wrong(n, w.path, "has an anchor that other fields may refer to; edit it by hand")
	}

	from := w.begin(n)
	to := w.end(n, w.outer(len(w.nodes)-1))
	if to < from {
		return nil, w.wrong(n, w.path, "has an unsupported layout; edit it by hand")
	}

	flow := isFlow(w.nodes[:len(w.nodes)-1])
	if text, ok := v.(string); ok && n.Kind == yamlv3.ScalarNode {
		return w.replaceText(n, from, to, text, flow)
	}

	parent := w.parent()
	inside := parent != nil && parent.Kind == yamlv3.MappingNode && !flow && !w.json
	nested := ""
	if inside {
		key := w.path[len(w.path)-1]
		indent := parent.Content[0].Column - 1
		head := strings.Repeat(" ", indent) + w.scalar(key) + ":" + w.newline
		if below, ok := strings.CutPrefix(w.lines(indent, key, v), head); ok {
			nested = below
		}
	}

	if parent == nil && !w.json {
		if fields, ok := v.(Fields); ok {
			for _, f := range fields {
				nested += w.lines(n.Column-1, f.Name, f.Value)
			}
			return []cut{{from, to, strings.TrimSuffix(nested, w.newline)}}, nil
		}
	}

	if nested == "" && inside && n.Kind != yamlv3.ScalarNode && n.Style&yamlv3.FlowStyle == 0 {
		if cuts, ok := w.onKeyLine(parent, w.path[len(w.path)-1], w.flow(v), to); ok {
			return cuts, nil
		}
	}

	if nested == "" {
		return []cut{{from, to, w.spaced(from) + w.flow(v)}}, nil
	}

	// Remove the old value from the key's line, and keep a comment there.
	colon := from
	for colon > 0 && strings.ContainsRune(" \t", rune(w.text[colon-1])) {
		colon--
	}

	if !w.rest(to) {
		return nil, w.wrong(n, w.path, "shares a line with other fields; edit it by hand")
	}

	return []cut{{colon, to, ""}, w.lineAfter(to, nested)}, nil
}

// replaceText replaces a scalar by a string in the same style.
func (w *walk) replaceText(n *yamlv3.Node, from, to int, text string, flow bool) ([]cut, error) {
	s := w.style
	switch {
	case n.Style&yamlv3.DoubleQuotedStyle != 0:
		s.quoted = true
	case n.Style&yamlv3.SingleQuotedStyle != 0:
		s.quote = '\''
	case !flow && !w.json:
		indent := w.outer(len(w.nodes)-1) + w.unit
		if n.Style&yamlv3.LiteralStyle != 0 {
			if _, in := w.block(w.properties(n), w.outer(len(w.nodes)-1)); in > 0 {
				indent = in
			}
		}
		if block, ok := s.literal(indent, text); ok {
			return []cut{{from, to, w.spaced(from) + strings.TrimSuffix(block, w.newline)}}, nil
		}
	}

	return []cut{{from, to, w.spaced(from) + s.scalar(text)}}, nil
}

// spaced is the space that a value needs before it.
func (w *walk) spaced(at int) string {
	if at > 0 && (w.text[at-1] == ':' || w.text[at-1] == '-') {
		return " "
	}
	return ""
}

// outer is the indentation of the block with the i-th node of the walk.
func (w *walk) outer(i int) int {
	if i == 0 {
		return -1
	}

	switch n := w.nodes[i-1]; {
	case n.Style&yamlv3.FlowStyle != 0:
		return -1
	case n.Kind == yamlv3.MappingNode:
		return n.Content[0].Column - 1
	default:
		return n.Column - 1
	}
}

// lineAfter inserts whole lines below the line of an offset.
func (w *walk) lineAfter(at int, lines string) cut {
	after := w.after(at)
	if after > 0 && lineBreak(w.text[after-1:]) > 0 || after == 0 {
		return cut{after, after, lines}
	}

	// The text does not end in a line break, and still will not, unless that would
	// remove one from a block scalar.
	if !strings.Contains(lines, "|"+w.newline) {
		lines = strings.TrimSuffix(lines, w.newline)
	}

	return cut{after, after, w.newline + lines}
}

// insert adds an entry to the last node of the walk.
func (w *walk) insert(key string, v any) ([]cut, error) {
	n := w.last()
	switch {
	case n.Kind == yamlv3.SequenceNode:
		return nil, w.wrong(n, w.path, "is a list, not a map")
	case n.Kind == yamlv3.ScalarNode, len(n.Content) == 0 && !isFlow(w.nodes[:len(w.nodes)-1]) && !w.json:
		// Null, or empty brackets: the entry replaces them.
		return w.replace(Fields{{key, v}})
	case n.Style&yamlv3.FlowStyle != 0:
		return w.insertFlow(n, key, v)
	}

	end := w.end(n, w.outer(len(w.nodes)-1))
	if end < 0 || !w.rest(end) {
		return nil, w.wrong(n, w.path, "has an unsupported layout; edit it by hand")
	}

	return []cut{w.lineAfter(end, w.lines(n.Content[0].Column-1, key, v))}, nil
}

// styleLike is the document's style, with the quotes of a neighbour.
func (w *walk) styleLike(n *yamlv3.Node) style {
	s := w.style
	switch {
	case n.Kind != yamlv3.ScalarNode:
	case n.Style&yamlv3.DoubleQuotedStyle != 0:
		s.quoted = true
	case n.Style&yamlv3.SingleQuotedStyle != 0:
		s.quote = '\''
	}

	return s
}

// inlineLike returns a value in brackets if its neighbour is.
func inlineLike(n *yamlv3.Node, v any) any {
	if fields, ok := v.(Fields); ok && n.Style&yamlv3.FlowStyle != 0 {
		return Inline(fields)
	}
	return v
}

// insertFlow adds an entry inside brackets.
func (w *walk) insertFlow(n *yamlv3.Node, key string, v any) ([]cut, error) {
	unknown := func() ([]cut, error) {
		return nil, w.wrong(n, w.path, "has an unsupported layout; edit it by hand")
	}

	shut := w.flowEnd(n) - 1
	if shut < 0 {
		return unknown()
	}

	if len(n.Content) == 0 {
		open := w.properties(n) + 1
		if w.skip(open, false) != shut {
			return unknown()
		}

		if key == "" {
			return []cut{{open, shut, w.flow(v)}}, nil
		}

		lead := w.leadOfLine(n)
		if unit := w.indentUnit(); w.json && unit != "" {
			next := w.newline + lead + unit
			return []cut{{open, shut, next + w.scalar(key) + w.colon + w.pretty(v, lead+unit, unit) + w.newline + lead}}, nil
		}

		return []cut{{open, shut, w.entry(key, v)}}, nil
	}

	first, last := n.Content[0], n.Content[len(n.Content)-1]
	s := w.styleLike(last)
	if key != "" {
		s = w.styleLike(first)
	}

	end := w.end(last, -1)
	if end < 0 {
		return unknown()
	}

	begins := last
	if key != "" {
		begins = n.Content[len(n.Content)-2]
	}

	lead, alone := w.lead(w.begin(begins))
	write := func() string {
		if !alone {
			if key == "" {
				return s.flow(v)
			}
			return s.entry(key, v)
		}

		unit := strings.TrimPrefix(lead, w.leadOfLine(n))
		if key == "" {
			return s.pretty(v, lead, unit)
		}

		return s.scalar(key) + s.colon + s.pretty(v, lead, unit)
	}()

	comma := w.skip(end, false)
	trailing := comma < shut && w.text[comma] == ','
	switch {
	case !alone && trailing:
		return []cut{{comma + 1, comma + 1, " " + write + ","}}, nil
	case !alone:
		return []cut{{end, end, w.separator(n) + write}}, nil
	case trailing && w.rest(comma+1):
		return []cut{w.lineAfter(comma, lead+write+","+w.newline)}, nil
	case trailing:
		return unknown()
	case w.rest(end):
		return []cut{{end, end, ","}, w.lineAfter(end, lead+write+w.newline)}, nil
	}

	return []cut{{end, end, "," + w.newline + lead + write}}, nil
}

// separator is the text between the entries of a flow collection.
func (w *walk) separator(n *yamlv3.Node) string {
	i := 1
	if n.Kind == yamlv3.MappingNode {
		i = 2
	}
	if i >= len(n.Content) {
		return w.comma
	}
	if w.between(n.Content[i-1], n.Content[i]) == "," {
		return ","
	}

	return ", "
}

// leadOfLine is the whitespace at the start of a node's line.
func (w *walk) leadOfLine(n *yamlv3.Node) string {
	line := w.text[w.lineOf(w.begin(n)):]
	return string(line[:len(line)-len(strings.TrimLeft(string(line), " \t"))])
}

// indentUnit is the indentation of the enclosing collections with one entry per
// line; "" without one.
func (w *walk) indentUnit() string {
	for i := len(w.nodes) - 1; i > 0; i-- {
		parent := w.nodes[i-1]
		if w.begin(parent) < w.begin(parent.Content[0]) && parent.Content[0].Line > parent.Line {
			lead, _ := w.lead(w.begin(parent.Content[0]))
			return strings.TrimPrefix(lead, w.leadOfLine(parent))
		}
	}
	return ""
}
