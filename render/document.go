// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"

	"github.com/fairlead/fairlead/fleet"
)

// document is one object of a file.
type document struct {
	object map[string]any
	origin fleet.Origin
	// lines maps field paths to lines. It is computed on demand: for our own
	// kinds, and to give a mistake its line.
	lines func() map[string]int
}

// at is the position of the field at path, or of its nearest ancestor with a
// known line.
func (d *document) at(path string) fleet.Origin {
	lines := d.lines()
	for path != "" {
		if line := lines[path]; line != 0 {
			return fleet.Origin{File: d.origin.File, Line: line}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return d.origin
}

func (d *document) problem(path, format string, args ...any) fleet.Problem {
	return fleet.Problem{Origin: d.at(path), Message: fmt.Sprintf(format, args...)}
}

// maxFile is the size limit of a manifest in bytes.
const maxFile = 4 << 20

const (
	// maxDocuments limits the documents of a file, those in Lists included.
	maxDocuments = 50_000
	// maxLists limits how deep Lists are nested in each other.
	maxLists = 20
	// maxPaths limits the bytes of the field paths for which a file's lines are
	// known. Beyond it a field is told of at the line of what contains it.
	maxPaths = 32 << 20
)

// checkText refuses files that are not UTF-8 text, or only a pointer to
// content.
func checkText(b []byte) error {
	switch {
	case len(b) > maxFile:
		return fmt.Errorf("file of %d bytes is too large, at most %d are read", len(b), maxFile)
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}) || bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		return errors.New("text is UTF-16, must be UTF-8")
	case !utf8.Valid(b):
		return errors.New("text is not UTF-8")
	case bytes.HasPrefix(b, []byte("version https://git-lfs.github.com/spec/")):
		return errors.New("LFS pointer, not content")
	}

	return nil
}

var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// parseFile reads the documents of a manifest. It returns either documents or
// problems: one mistake makes the whole file invalid.
func parseFile(file string, b []byte) ([]*document, []fleet.Problem) {
	if err := checkText(b); err != nil {
		return nil, []fleet.Problem{problem(file, 0, err.Error())}
	}

	var docs []*document
	var problems []fleet.Problem
	for _, part := range split(b, strings.HasSuffix(file, ".json")) {
		found, wrong := part.parse(file)
		docs, problems = append(docs, found...), append(problems, wrong...)
		if len(docs) > maxDocuments || len(problems) > maxDocuments {
			return nil, []fleet.Problem{problem(file, 0, fmt.Sprintf("file has more than %d documents", maxDocuments))}
		}
	}

	if len(problems) > 0 {
		return nil, problems
	}

	return docs, nil
}

// part is the text of one document, and the line it starts on.
type part struct {
	text  []byte
	first int
	json  bool
}

// split divides a file at its document markers.
func split(b []byte, isJSON bool) []part {
	b = bytes.TrimPrefix(b, byteOrderMark)
	if isJSON {
		return []part{{b, 1, true}}
	}

	var parts []part
	start, first, line := 0, 1, 0
	for at := 0; at < len(b); {
		end := len(b)
		if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
			end = at + i + 1
		}

		line++
		if text := bytes.TrimRight(b[at:end], " \t\r\n"); bytes.HasPrefix(text, []byte("---")) && (len(text) == 3 || text[3] == ' ' || text[3] == '\t') {
			parts = append(parts, part{b[start:at], first, false})
			// The rest of the marker's line is content, or a comment.
			start, first = at+3, line
		} else if string(text) == "..." {
			parts = append(parts, part{b[start:at], first, false})
			start, first = end, line+1
		}

		at = end
	}

	return append(parts, part{b[start:], first, false})
}

// tagged finds candidates for a YAML tag. Most files do not even contain a "!"
// and skip it: this expression would take an eighth of a first render.
var tagged = regexp.MustCompile(`(?m)(^|[\s\[{,])!`)

func (p part) parse(file string) ([]*document, []fleet.Problem) {
	var raw []byte
	var err error
	switch {
	case p.blank():
		return nil, nil
	case p.json:
		raw = p.text
	default:
		raw, err = p.toJSON()
	}

	if err != nil {
		return nil, p.faults(file, err)
	}
	if wrong := p.checkTrailing(file); len(wrong) > 0 {
		return nil, wrong
	}

	if bytes.IndexByte(p.text, '!') >= 0 && tagged.Match(p.text) {
		if wrong := p.checkTags(file); len(wrong) > 0 {
			return nil, wrong
		}
	}

	var value any
	strict, err := kjson.UnmarshalStrict(raw, &value, kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, []fleet.Problem{problem(file, p.lineAt(err), cause(err))}
	}

	var wrong []fleet.Problem
	for _, err := range strict {
		wrong = append(wrong, problem(file, p.first, err.Error()))
	}

	if wrong != nil || value == nil {
		return nil, wrong
	}

	table := &lineTable{part: p}
	first := p.first + p.leading()
	f := &flattening{table: table, of: &document{nil, fleet.Origin{File: file, Line: first}, table.all}}
	switch value := value.(type) {
	case map[string]any:
		f.document(value, "", 0)
		return f.result()
	case []any:
		// Tools often export an array of objects: a List without a kind.
		f.items(value, "", "the array", 0)
		return f.result()
	}

	return nil, []fleet.Problem{problem(file, first, fmt.Sprintf("document is %s, must be an object", kindOf(value)))}
}

// blank reports whether the part has nothing but whitespace and comments.
func (p part) blank() bool {
	for line := range bytes.Lines(p.text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// checkTrailing refuses text after the end of a document. The parser stops
// there without an error, and the text would be lost. A document whose first
// key starts in the first column cannot end early.
func (p part) checkTrailing(file string) []fleet.Problem {
	if p.json {
		return nil // the JSON parser reads to the end
	}

	first := p.text
	for range p.leading() {
		_, first, _ = bytes.Cut(first, []byte{'\n'})
	}

	if len(first) == 0 || first[0]|0x20 >= 'a' && first[0]|0x20 <= 'z' {
		return nil
	}

	var n yamlv3.Node
	d := yamlv3.NewDecoder(bytes.NewReader(p.text))
	err := d.Decode(&n)
	if err == nil {
		err = d.Decode(&n)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}

	at := p.first + p.leading()
	if m := yamlFault.FindStringSubmatch(fmt.Sprint(err)); m != nil {
		at, _ = strconv.Atoi(m[1]) // the line before, counted from 1
		at += p.first
	}

	return []fleet.Problem{problem(file, at, "YAML: text after the end of the document would be ignored")}
}

// leading counts the lines before the first key.
func (p part) leading() (n int) {
	for line := range bytes.Lines(p.text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return n
		}
		n++
	}
	return 0
}

var yamlFault = regexp.MustCompile(`line (\d+): ([^\n]+)`)

// faults turns each complaint of the YAML parser into a problem with its line
// in the file.
func (p part) faults(file string, err error) []fleet.Problem {
	text := withoutValues(err.Error())
	var found []fleet.Problem
	for _, m := range yamlFault.FindAllStringSubmatch(text, -1) {
		line, _ := strconv.Atoi(m[1])
		found = append(found, problem(file, p.first+max(line, 1)-1, "YAML: "+m[2]))
	}

	if found == nil {
		text = strings.TrimPrefix(oneLine(text), "error converting YAML to JSON: ")
		found = append(found, problem(file, p.first+p.leading(), "YAML: "+strings.TrimPrefix(text, "yaml: ")))
	}

	return found
}

// lineAt is the line of a JSON syntax error.
func (p part) lineAt(err error) int {
	isSyntax, offset := kjson.SyntaxErrorOffset(err)
	if !isSyntax || !p.json {
		return p.first
	}
	return p.first + bytes.Count(p.text[:min(int(offset), len(p.text))], []byte{'\n'})
}

// node parses the text again for line numbers. It is nil if this parser
// disagrees with the other one.
func (p part) node() *yamlv3.Node {
	text := p.text
	if p.json {
		// Tabs may indent JSON, but not YAML.
		text = bytes.ReplaceAll(text, []byte{'\t'}, []byte{' '})
	}

	var n yamlv3.Node
	if err := yamlv3.Unmarshal(text, &n); err != nil || len(n.Content) == 0 {
		return nil
	}

	return n.Content[0]
}

// lineTable has the lines of the fields of a document. It is read on demand.
type lineTable struct {
	part  part
	lines map[string]int
	paths []string // sorted
}

func (t *lineTable) all() map[string]int {
	if t.lines == nil {
		t.lines = map[string]int{}
		if n := t.part.node(); n != nil {
			room := maxPaths
			recordLines(t.lines, "", n, t.part.first-1, &room)
		}
	}
	return t.lines
}

// below are the lines of the fields below one.
func (t *lineTable) below(path string) map[string]int {
	if t.paths == nil {
		t.paths = slices.Sorted(maps.Keys(t.all()))
	}

	prefix := path + "."
	out := map[string]int{}
	first, _ := slices.BinarySearch(t.paths, prefix)
	for _, path := range t.paths[first:] {
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok {
			break
		}
		out[rest] = t.lines[path]
	}

	return out
}

func (p part) lazyLines() func() map[string]int { return (&lineTable{part: p}).all }

// recordLines records the line of every field below n: that of its key, or of
// its list item. room is how many bytes of paths it may record.
func recordLines(lines map[string]int, path string, n *yamlv3.Node, offset int, room *int) {
	if *room -= len(path) * len(n.Content); *room < 0 {
		return
	}

	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := n.Content[i].Value
			if path != "" {
				at = path + "." + at
			}
			lines[at] = n.Content[i].Line + offset
			recordLines(lines, at, n.Content[i+1], offset, room)
		}
	case yamlv3.SequenceNode:
		for i, item := range n.Content {
			at := path + "[" + strconv.Itoa(i) + "]"
			lines[at] = item.Line + offset
			recordLines(lines, at, item, offset, room)
		}
	}
}

// checkTags refuses tags that Kubernetes does not know: the parser would drop
// them silently, and their meaning with them.
func (p part) checkTags(file string) (wrong []fleet.Problem) {
	n := p.node()
	if n == nil {
		return nil
	}

	var walk func(*yamlv3.Node)
	walk = func(n *yamlv3.Node) {
		if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") && n.Tag != "!" {
			tag := n.Tag
			if mentionsSecret(p.text) {
				tag = "(a text that begins with ! needs quotes)" // it may be a password
			}
			wrong = append(wrong, problem(file, n.Line+p.first-1, "YAML: unknown tag "+tag))
		}
		for _, c := range n.Content {
			walk(c)
		}
	}

	walk(n)
	return wrong
}

// flattening replaces Lists by their items.
type flattening struct {
	table    *lineTable
	of       *document // everything is in it; has no object
	docs     []*document
	problems []fleet.Problem
}

func (f *flattening) result() ([]*document, []fleet.Problem) {
	if len(f.problems) > 0 {
		return nil, f.problems
	}
	return f.docs, nil
}

func (f *flattening) wrong(path, format string, args ...any) {
	f.problems = append(f.problems, f.of.problem(path, format, args...))
}

// document adds the object at a path, or its items.
func (f *flattening) document(object map[string]any, path string, depth int) {
	kind, _ := object["kind"].(string)
	items, has := object["items"]
	if !strings.HasSuffix(kind, "List") || !has {
		f.add(object, path)
		return
	}

	at := strings.TrimPrefix(path+".items", ".")
	list, ok := items.([]any)
	if !ok && items != nil {
		f.wrong(at, "items of a %s is %s, must be a list", kind, kindOf(items))
		return
	}
	if depth == maxLists {
		f.wrong(at, "Lists are nested more than %d deep", maxLists)
		return
	}

	f.items(list, at, "a "+kind, depth+1)
}

// items adds the items of the list at a path.
func (f *flattening) items(list []any, at, of string, depth int) {
	for i, item := range list {
		if len(f.docs) > maxDocuments || len(f.problems) > maxDocuments {
			return // which is a problem of the file
		}

		path := at + "[" + strconv.Itoa(i) + "]"
		if object, ok := item.(map[string]any); ok {
			f.document(object, path, depth)
		} else {
			f.wrong(path, "%s of %s is %s, must be an object", path, of, kindOf(item))
		}
	}
}

func (f *flattening) add(object map[string]any, path string) {
	if path == "" {
		f.docs = append(f.docs, &document{object, f.of.origin, f.of.lines})
		return
	}

	var lines map[string]int
	f.docs = append(f.docs, &document{object, f.of.at(path), func() map[string]int {
		if lines == nil {
			lines = f.table.below(path)
		}
		return lines
	}})
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}

	return "a number"
}

// encode marshals an object. Every object was decoded from JSON, so it cannot
// fail.
func encode(object map[string]any) []byte {
	b, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("render: a decoded object has no JSON: %v", err))
	}
	return b
}

// decode is the inverse of encode. Integers stay int64, as in Kubernetes.
func decode(b []byte) (map[string]any, error) {
	var object map[string]any
	err := kjson.UnmarshalCaseSensitivePreserveInts(b, &object)
	return object, err
}
