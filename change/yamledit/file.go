// SPDX-License-Identifier: Apache-2.0

package yamledit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// File is the text of a manifest while it is edited.
type File struct {
	name  string
	text  []byte
	split []*part // of the text; computed on demand
}

// Read takes a manifest: YAML documents, or JSON if its name says so.
func Read(name string, text []byte) (*File, error) {
	f := &File{name: name, text: bytes.Clone(text)}
	for _, p := range f.parts() {
		if _, err := p.decode(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Text is the current content of the file.
func (f *File) Text() []byte { return bytes.Clone(f.text) }

// Object is one object of a file: a document, or an item of a List. It stays
// valid when any object of the file is edited.
type Object struct {
	file *File
	part int      // index of the document
	path []string // to the object in its document
}

// ErrNotThere is wrapped by At if no object of that kind starts at the line.
var ErrNotThere = errors.New("no such object at this line")

// At finds the object of a kind that starts at a line. The name distinguishes
// objects on the same line.
func (f *File) At(line int, kind, name string) (*Object, error) {
	var found []*Object
	for i, p := range f.parts() {
		root, err := p.parse()
		if err != nil {
			return nil, err
		}

		if root == nil {
			continue
		}

		for _, o := range objects(root.Content[0], nil) {
			if p.line(o.node) == line && field(o.node, "kind") == kind {
				found = append(found, &Object{f, i, o.path})
			}
		}
	}

	if len(found) > 1 {
		found = slices.DeleteFunc(found, func(o *Object) bool { return o.Get("metadata", "name") != name })
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s:%d: %s: %w", f.name, line, strings.TrimSpace(kind+" "+name), ErrNotThere)
	}

	return found[0], nil
}

// placed is an object in a document, and its path.
type placed struct {
	node *yamlv3.Node
	path []string
}

// objects lists the objects of a document: itself, or the items of a List.
func objects(n *yamlv3.Node, path []string) (all []placed) {
	list, at := n, path
	if n.Kind == yamlv3.MappingNode {
		list = value(n, "items")
		if list == nil || !strings.HasSuffix(field(n, "kind"), "List") {
			return []placed{{n, path}}
		}
		at = append(slices.Clone(path), "items")
	}

	if list.Kind != yamlv3.SequenceNode {
		return nil
	}

	for i, item := range list.Content {
		all = append(all, objects(item, append(slices.Clone(at), strconv.Itoa(i)))...)
	}

	return all
}

// value is the value of a key in a mapping, nil if absent.
func value(n *yamlv3.Node, key string) *yamlv3.Node {
	if i := find(n, key); i >= 0 {
		return n.Content[i+1]
	}
	return nil
}

func field(n *yamlv3.Node, key string) string {
	if v := value(n, key); v != nil && v.Kind == yamlv3.ScalarNode {
		return v.Value
	}
	return ""
}

// find is the index of a key in a mapping's content, or -1.
func find(n *yamlv3.Node, key string) int {
	if n.Kind != yamlv3.MappingNode {
		return -1
	}

	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Kind == yamlv3.ScalarNode && k.Value == key {
			return i
		}
	}

	return -1
}

// Get is the decoded value at a path, nil if absent.
func (o *Object) Get(path ...string) any {
	v, err := o.document().decode()
	if err != nil {
		return nil
	}
	v, _ = get(v, o.full(path))
	return v
}

func (o *Object) full(path []string) []string { return append(slices.Clone(o.path), path...) }

func (o *Object) document() *part { return o.file.parts()[o.part] }

// get is the value at a path, and whether there is one.
func get(v any, path []string) (any, bool) {
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}

	return v, true
}

// part is the text of one document.
type part struct {
	name  string
	text  []byte
	start int // offset in the file
	first int // its first line
	json  bool

	// Computed on demand, and immutable.
	starts []int // of its lines, as the parser counts them
	root   func() (*yamlv3.Node, error)
	value  func() (any, error)
}

var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// parts divides a file at its document markers.
func (f *File) parts() []*part {
	if f.split == nil {
		f.split = f.divide()
		for _, p := range f.split {
			p.root, p.value = sync.OnceValues(p.readNodes), sync.OnceValues(p.readValue)
		}
	}
	return f.split
}

func (f *File) divide() []*part {
	begin := 0
	if bytes.HasPrefix(f.text, byteOrderMark) {
		begin = len(byteOrderMark)
	}
	if strings.HasSuffix(f.name, ".json") {
		return []*part{{name: f.name, text: f.text[begin:], start: begin, first: 1, json: true}}
	}

	var parts []*part
	cut := func(start, end, first int) {
		parts = append(parts, &part{name: f.name, text: f.text[start:end], start: start, first: first})
	}

	start, first, line := begin, 1, 0
	for at := begin; at < len(f.text); {
		end := len(f.text)
		if i := bytes.IndexByte(f.text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}

		line++
		text := bytes.TrimRight(f.text[at:end], " \t\r\n")
		switch {
		case bytes.HasPrefix(text, []byte("---")) && (len(text) == 3 || text[3] == ' ' || text[3] == '\t'):
			cut(start, at, first)
			start, first = at+3, line // the rest of the marker's line is content
		case string(text) == "...":
			cut(start, at, first)
			start, first = end, line+1
		}

		at = end
	}

	cut(start, len(f.text), first)
	return parts
}

// parse returns the document's nodes, nil if it is empty.
func (p *part) parse() (*yamlv3.Node, error) { return p.root() }

// decode returns the document's value, as every reader of the fleet sees it.
func (p *part) decode() (any, error) { return p.value() }

func (p *part) readNodes() (*yamlv3.Node, error) {
	text := p.text
	if p.json {
		// Tabs may indent JSON, but not YAML. The offsets stay the same.
		text = bytes.ReplaceAll(text, []byte{'\t'}, []byte{' '})
	}

	var n, more yamlv3.Node
	d := yamlv3.NewDecoder(bytes.NewReader(text))
	switch err := d.Decode(&n); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}

	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:%d: text after the end of the document", p.name, p.first)
	}

	p.starts = lineStarts(p.text)
	return &n, nil
}

func (p *part) readValue() (any, error) {
	raw := p.text
	if _, err := p.parse(); err != nil {
		return nil, err
	}

	if !p.json {
		var err error
		if raw, err = yaml.YAMLToJSONStrict(p.text); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}

	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s: more than one JSON value", p.name)
	}

	return v, nil
}

func (p *part) line(n *yamlv3.Node) int { return p.first + n.Line - 1 }

// wrong is an error that names the position.
func (p *part) wrong(n *yamlv3.Node, path []string, why string) error {
	return fmt.Errorf("%s:%d: %s %s", p.name, p.line(n), strings.Join(path, "."), why)
}

// cut replaces text[from:to] of a document.
type cut struct {
	from, to int
	with     string
}

// apply makes the cuts, and accepts the result only if the document then has
// the wanted value and the others are unchanged.
func (o *Object) apply(p *part, want any, cuts ...cut) error {
	slices.SortStableFunc(cuts, func(a, b cut) int { return a.from - b.from })
	var text bytes.Buffer
	at := 0
	text.Write(o.file.text[:p.start])

	for _, c := range cuts {
		if c.from < at || c.to < c.from {
			return o.layout(p)
		}
		text.Write(p.text[at:c.from])
		text.WriteString(c.with)
		at = c.to
	}

	text.Write(p.text[at:])
	text.Write(o.file.text[p.start+len(p.text):])

	edited := &File{name: o.file.name, text: text.Bytes()}
	before, after := o.file.parts(), edited.parts()
	if len(before) != len(after) {
		return o.layout(p)
	}

	for i := range after {
		expect := want
		if i != o.part {
			expect, _ = before[i].decode()
		}
		if got, err := after[i].decode(); err != nil || !reflect.DeepEqual(got, expect) {
			return o.layout(p)
		}
	}

	*o.file = *edited
	return nil
}

// layout is the error for text whose layout is not supported.
func (o *Object) layout(p *part) error {
	return fmt.Errorf("%s:%d: this document's layout cannot be edited without changing more; edit it by hand", p.name, p.first)
}
