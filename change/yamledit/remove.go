// SPDX-License-Identifier: Apache-2.0

package yamledit

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Remove removes the value at a path, and with it the maps and lists that
// become empty, except for top-level fields of the object. It is not an error
// if there is no such value.
func (o *Object) Remove(path ...string) error {
	w, err := o.walk(path)
	if err != nil || len(w.missing) > 0 {
		return err
	}

	if len(path) == 0 {
		return o.layout(w.part)
	}

	for len(path) > 2 && size(w.parent()) == 1 {
		path = path[:len(path)-1]
		w.nodes, w.path = w.nodes[:len(w.nodes)-1], w.path[:len(w.path)-1]
	}

	n := w.last()
	if anchored(n) {
		return w.wrong(n, w.path, "has an anchor that other fields may refer to; edit it by hand")
	}

	whole, err := w.decode()
	if err != nil {
		return err
	}

	want := without(whole, w.path)
	cuts, ok := w.remove()
	if !ok {
		return w.wrong(n, w.path, "has an unsupported layout; edit it by hand")
	}

	return o.apply(w.part, want, cuts...)
}

// RemoveEach removes several entries of the map or list at a path, as Remove
// does one by one.
func (o *Object) RemoveEach(steps []string, path ...string) error {
	w, err := o.walk(path)
	if err != nil || len(w.missing) > 0 {
		return err
	}

	n := w.last()
	steps = slices.DeleteFunc(slices.Clone(steps), func(step string) bool {
		next, err := w.step(n, append(slices.Clone(w.path), step))
		return err == nil && next == nil
	})

	// From the end of a list, so that the indices of the others stay valid.
	if n.Kind == yamlv3.SequenceNode {
		slices.SortFunc(steps, func(a, b string) int { return number(b) - number(a) })
	}
	if n.Style&yamlv3.FlowStyle == 0 && len(steps) < size(n) && o.removeEach(w, steps) == nil {
		return nil
	}

	for _, step := range steps {
		if err := o.Remove(append(slices.Clone(path), step)...); err != nil {
			return err
		}
	}

	return nil
}

// removeEach cuts several entries of the last node of the walk at once.
func (o *Object) removeEach(w *walk, steps []string) error {
	whole, err := w.decode()
	if err != nil {
		return err
	}

	var cuts []cut
	for _, step := range steps {
		one := *w
		one.path = append(slices.Clone(w.path), step)
		next, err := w.step(w.last(), one.path)
		if err != nil {
			return err
		}

		one.nodes = append(slices.Clone(w.nodes), next)
		found, ok := one.remove()
		if !ok || anchored(next) {
			return o.layout(w.part)
		}

		whole, cuts = without(whole, one.path), append(cuts, found...)
	}

	return o.apply(w.part, whole, cuts...)
}

func number(step string) int {
	n, err := strconv.Atoi(step)
	if err != nil {
		return -1
	}
	return n
}

// size counts the entries of a mapping or the items of a sequence.
func size(n *yamlv3.Node) int {
	if n.Kind == yamlv3.MappingNode {
		return len(n.Content) / 2
	}
	return len(n.Content)
}

func anchored(n *yamlv3.Node) bool {
	return n.Anchor != "" || slices.ContainsFunc(n.Content, anchored)
}

// without is a decoded value without the one at a path.
func without(v any, path []string) any {
	switch at := v.(type) {
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(at) {
			return v
		}
		at = slices.Clone(at)
		if len(path) == 1 {
			return slices.Delete(at, i, i+1)
		}
		at[i] = without(at[i], path[1:])
		return at
	case map[string]any:
		m := map[string]any{}
		for key, value := range at {
			m[key] = value
		}
		if len(path) == 1 {
			delete(m, path[0])
		} else {
			m[path[0]] = without(m[path[0]], path[1:])
		}
		return m
	}

	return v
}

// remove cuts the last node of the walk out of its parent.
func (w *walk) remove() ([]cut, bool) {
	parent, n, step := w.parent(), w.last(), w.path[len(w.path)-1]
	i, width := 0, 1
	if parent.Kind == yamlv3.MappingNode {
		i, width = find(parent, step), 2
	} else {
		i, _ = strconv.Atoi(step)
	}

	end := w.end(n, w.outer(len(w.nodes)-1))
	switch {
	case end < 0:
		return nil, false
	case parent.Style&yamlv3.FlowStyle != 0:
		return w.removeFlow(parent, i, width, end)
	case size(parent) == 1:
		// Its only entry: empty brackets stay.
		empty := "{}"
		if width == 1 {
			empty = "[]"
		}
		return w.leaveEmpty(parent, empty, end)
	case !w.rest(end):
		return nil, false
	}

	from := w.begin(parent.Content[i])
	if width == 1 {
		if from = w.dash(parent, i); from < 0 {
			return nil, false
		}
	}

	_, alone := w.lead(from)
	if alone {
		to := w.after(end)
		if width == 2 {
			to = w.comments(to, parent.Content[0].Column-1)
		}
		return []cut{w.ending(w.lineOf(from), to)}, true
	}

	// The first key follows a dash: the next one takes its place, unless there are
	// comments between them.
	if i+width >= len(parent.Content) || width == 1 {
		return nil, false
	}

	next := w.begin(parent.Content[i+width])
	if strings.TrimSpace(string(w.text[w.after(end):next])) != "" {
		return nil, false
	}

	return []cut{{from, next, ""}}, true
}

// leaveEmpty replaces the last entry of a block collection by empty brackets.
func (w *walk) leaveEmpty(parent *yamlv3.Node, empty string, end int) ([]cut, bool) {
	if !w.rest(end) {
		return nil, false
	}
	if len(w.nodes) == 2 || w.nodes[len(w.nodes)-3].Kind != yamlv3.MappingNode {
		return []cut{{w.begin(parent), end, empty}}, true
	}
	return w.onKeyLine(w.nodes[len(w.nodes)-3], w.path[len(w.path)-2], empty, end)
}

// onKeyLine writes a value after its key and removes the lines below, up to
// end. A comment on the key stays.
func (w *walk) onKeyLine(n *yamlv3.Node, key, text string, end int) ([]cut, bool) {
	at := w.end(n.Content[find(n, key)], -1)
	if at < 0 || at >= len(w.text) || w.text[at] != ':' || !w.rest(at+1) || !w.rest(end) {
		return nil, false
	}
	return []cut{{at + 1, at + 1, " " + text}, w.ending(w.after(at), w.after(end))}, true
}

// ending cuts lines. If the text does not end in a line break, the line before
// loses its own.
func (w *walk) ending(from, to int) cut {
	if to < len(w.text) || from == 0 || to > 0 && lineBreak(w.text[to-1:]) > 0 {
		return cut{from, to, ""}
	}
	before := bytes.TrimSuffix(w.text[:from], []byte("\n"))
	return cut{len(bytes.TrimSuffix(before, []byte("\r"))), to, ""}
}

// comments skips the comments right below an entry that are indented like its
// content.
func (w *walk) comments(at, indent int) int {
	for at < len(w.text) {
		line := strings.TrimRight(string(w.text[at:w.after(at)]), "\r\n")
		text := strings.TrimLeft(line, " \t")
		if !strings.HasPrefix(text, "#") || len(line)-len(text) <= indent {
			return at
		}
		at = w.after(at)
	}

	return at
}

// removeFlow cuts an entry and one comma out of brackets.
func (w *walk) removeFlow(parent *yamlv3.Node, i, width, end int) ([]cut, bool) {
	from := w.begin(parent.Content[i])
	if i+width < len(parent.Content) {
		return w.removeBefore(from, end, w.begin(parent.Content[i+width]))
	}

	if i == 0 {
		open, shut := w.properties(parent)+1, w.flowEnd(parent)-1
		if shut < open || w.skip(open, false) != from {
			return nil, false
		}
		return []cut{{open, shut, ""}}, true
	}

	before := w.end(parent.Content[i-1], -1)
	if before < 0 {
		return nil, false
	}

	between := strings.TrimSpace(string(w.text[before:from]))
	if between == "," {
		return []cut{{before, end, ""}}, true
	}

	// A comment on the entry before stays, and so does the comma before it, which
	// YAML allows at the end.
	if _, alone := w.lead(from); alone && w.rest(end) && !w.json {
		return []cut{{w.lineOf(from), w.after(end), ""}}, true
	}

	return []cut{{from, end, ""}}, !w.json
}

// removeBefore cuts an entry that is not the last one: up to the next, or its
// lines if it has lines of its own.
func (w *walk) removeBefore(from, end, next int) ([]cut, bool) {
	comma := w.skip(end, false)
	if comma >= len(w.text) || w.text[comma] != ',' {
		return nil, false
	}

	_, alone := w.lead(from)
	if alone && w.rest(comma+1) && w.lineOf(next) != w.lineOf(comma) {
		return []cut{{w.lineOf(from), w.after(comma), ""}}, true
	}

	if strings.TrimSpace(string(w.text[comma+1:next])) != "" {
		return nil, false // a comment that may belong to either
	}

	return []cut{{from, next, ""}}, true
}
