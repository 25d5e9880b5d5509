// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/propagate"
)

// document is one object of a file.
type document struct {
	object map[string]any
	origin propagate.Origin
	// lines are computed when they are needed: of our own kinds, and to say
	// where a mistake is.
	lines func() map[string]int
}

// at is where the field at path stands, or the nearest part of the path that
// has a line.
func (d *document) at(path string) propagate.Origin {
	lines := d.lines()
	for path != "" {
		if line := lines[path]; line != 0 {
			return propagate.Origin{File: d.origin.File, Line: line}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return d.origin
}

func (d *document) problem(path, format string, args ...any) propagate.Problem {
	return propagate.Problem{Origin: d.at(path), Message: fmt.Sprintf(format, args...)}
}

// maxFile is the largest manifest that is read.
const maxFile = 4 << 20

// checkText refuses what is no text, or not the text that it stands for.
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

// parseFile reads the documents of a manifest. It gives either documents or
// problems: a file that is half right is wrong.
func parseFile(file string, b []byte) ([]*document, []propagate.Problem) {
	if err := checkText(b); err != nil {
		return nil, []propagate.Problem{problem(file, 0, err.Error())}
	}
	var docs []*document
	var problems []propagate.Problem
	for _, part := range split(b, strings.HasSuffix(file, ".json")) {
		found, wrong := part.parse(file)
		docs, problems = append(docs, found...), append(problems, wrong...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return docs, nil
}

// part is the text of one document, and the line it begins on.
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
			// What follows the marker on its line is content, or a comment.
			start, first = at+3, line
		} else if string(text) == "..." {
			parts = append(parts, part{b[start:at], first, false})
			start, first = end, line+1
		}
		at = end
	}
	return append(parts, part{b[start:], first, false})
}

// tagged finds what may be a YAML tag. Most files have not even its sign, and
// need no second look: this expression would be an eighth of a first render.
var tagged = regexp.MustCompile(`(?m)(^|[\s\[{,])!`)

func (p part) parse(file string) ([]*document, []propagate.Problem) {
	var raw []byte
	var err error
	switch {
	case p.blank():
		return nil, nil
	case p.json:
		raw = p.text
	default:
		raw, err = yaml.YAMLToJSONStrict(p.text)
	}
	if err != nil {
		return nil, p.faults(file, err)
	}
	if wrong := p.behind(file); len(wrong) > 0 {
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
		return nil, []propagate.Problem{problem(file, p.lineAt(err), cause(err))}
	}
	var wrong []propagate.Problem
	for _, err := range strict {
		wrong = append(wrong, problem(file, p.first, err.Error()))
	}
	if wrong != nil || value == nil {
		return nil, wrong
	}
	lines := p.lazyLines()
	first := p.first + p.leading()
	origin := propagate.Origin{File: file, Line: first}
	switch value := value.(type) {
	case map[string]any:
		return flatten(&document{value, origin, lines})
	case []any:
		// What tools export is often an array of objects: a List without a name.
		return (&document{nil, origin, lines}).each(value, "", "the array")
	}
	return nil, []propagate.Problem{problem(file, first, "document is no object but "+kindOf(value))}
}

// blank is whether there is nothing but space and comments.
func (p part) blank() bool {
	for line := range bytes.Lines(p.text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// behind refuses text behind the end of a document. The parser stops there and
// says nothing, and what somebody wrote would be lost. A document whose first
// key stands at the beginning of a line cannot end early.
func (p part) behind(file string) []propagate.Problem {
	if p.json {
		return nil // that parser reads to the end
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
	return []propagate.Problem{problem(file, at, "YAML: text behind the end of the document, which nothing would read")}
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

// faults gives each complaint of the YAML parser its line in the file.
func (p part) faults(file string, err error) []propagate.Problem {
	text := err.Error()
	var found []propagate.Problem
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

// lineAt is where JSON is wrong.
func (p part) lineAt(err error) int {
	isSyntax, offset := kjson.SyntaxErrorOffset(err)
	if !isSyntax || !p.json {
		return p.first
	}
	return p.first + bytes.Count(p.text[:min(int(offset), len(p.text))], []byte{'\n'})
}

// node parses again, for lines. It is nil when the other parser saw
// something this one does not.
func (p part) node() *yamlv3.Node {
	text := p.text
	if p.json {
		// JSON may be indented with tabs, YAML may not.
		text = bytes.ReplaceAll(text, []byte{'\t'}, []byte{' '})
	}
	var n yamlv3.Node
	if err := yamlv3.Unmarshal(text, &n); err != nil || len(n.Content) == 0 {
		return nil
	}
	return n.Content[0]
}

func (p part) lazyLines() func() map[string]int {
	var lines map[string]int
	return func() map[string]int {
		if lines == nil {
			lines = map[string]int{}
			if n := p.node(); n != nil {
				mark(lines, "", n, p.first-1)
			}
		}
		return lines
	}
}

// mark records the line of every field below n: that of its key, or of the
// item of a list.
func mark(lines map[string]int, path string, n *yamlv3.Node, offset int) {
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := n.Content[i].Value
			if path != "" {
				at = path + "." + at
			}
			lines[at] = n.Content[i].Line + offset
			mark(lines, at, n.Content[i+1], offset)
		}
	case yamlv3.SequenceNode:
		for i, item := range n.Content {
			at := path + "[" + strconv.Itoa(i) + "]"
			lines[at] = item.Line + offset
			mark(lines, at, item, offset)
		}
	}
}

// checkTags refuses tags that mean nothing to Kubernetes: the parser drops
// them, and with them what their author meant.
func (p part) checkTags(file string) (wrong []propagate.Problem) {
	n := p.node()
	if n == nil {
		return nil
	}
	var walk func(*yamlv3.Node)
	walk = func(n *yamlv3.Node) {
		if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") && n.Tag != "!" {
			wrong = append(wrong, problem(file, n.Line+p.first-1, fmt.Sprintf("YAML: unknown tag %s", n.Tag)))
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(n)
	return wrong
}

// flatten replaces a list by its items.
func flatten(d *document) ([]*document, []propagate.Problem) {
	kind, _ := d.object["kind"].(string)
	items, has := d.object["items"]
	if !strings.HasSuffix(kind, "List") || !has {
		return []*document{d}, nil
	}
	list, ok := items.([]any)
	if !ok && items != nil {
		return nil, []propagate.Problem{d.problem("items", "items of a %s is no list but %s", kind, kindOf(items))}
	}
	return d.each(list, "items", "a "+kind)
}

// each takes the objects of a list that stands at path apart.
func (d *document) each(list []any, at, of string) ([]*document, []propagate.Problem) {
	var docs []*document
	var problems []propagate.Problem
	for i, item := range list {
		path := fmt.Sprintf("%s[%d]", at, i)
		object, ok := item.(map[string]any)
		if !ok {
			problems = append(problems, d.problem(path, "%s of %s is no object but %s", path, of, kindOf(item)))
			continue
		}
		found, wrong := flatten(&document{object, d.at(path), func() map[string]int { return below(d.lines(), path+".") }})
		docs, problems = append(docs, found...), append(problems, wrong...)
	}
	return docs, problems
}

func below(lines map[string]int, prefix string) map[string]int {
	out := map[string]int{}
	for path, line := range lines {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			out[rest] = line
		}
	}
	return out
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

// encode is an object's JSON, which every object that came from JSON has.
func encode(object map[string]any) []byte {
	b, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("render: a decoded object has no JSON: %v", err))
	}
	return b
}

// decode is the inverse, with numbers as Kubernetes has them.
func decode(b []byte) (map[string]any, error) {
	var object map[string]any
	err := kjson.UnmarshalCaseSensitivePreserveInts(b, &object)
	return object, err
}
