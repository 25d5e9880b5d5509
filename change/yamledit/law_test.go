// SPDX-License-Identifier: Apache-2.0

package yamledit_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/change/yamledit"
)

// An edit changes only what it is asked to: in a document of any layout, the
// lines outside of the suspension and the notes keep their bytes and order, and
// all other values stay the same.
func TestLawEverythingElseStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		f, err := yamledit.Read(d.name, []byte(d.text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, d.text)
		}

		o, err := f.At(d.line, "PropagationPolicy", "web")
		if err != nil {
			t.Fatalf("%v in\n%s", err, d.text)
		}

		p := yamledit.Policy{Object: o}
		rest := without(t, d.name, f.Text())
		everywhere, want := p.Suspended()
		notes := map[string]bool{}
		if text, ok := p.Get("metadata", "annotations", fleetv1alpha1.AnnotationHolds).(string); ok {
			var old map[string]any
			if err := yaml.Unmarshal([]byte(text), &old); err != nil {
				t.Fatal(err)
			}
			for name := range old {
				notes[name] = true
			}
		}

		for i := range rapid.IntRange(1, 5).Draw(t, "edits") {
			before := string(f.Text())
			names := rapid.SliceOfNDistinct(rapid.SampledFrom(clusterNames), 1, 4, rapid.ID).Draw(t, "clusters")
			verb := rapid.SampledFrom([]string{"suspend", "suspend", "resume", "resume", "all", "only", "note", "note", "forget", "activate"}).Draw(t, "verb")
			switch verb {
			case "suspend":
				if everywhere {
					continue
				}
				err = p.Suspend(names...)
				for _, name := range names {
					if !slices.Contains(want, name) {
						want = append(want, name)
					}
				}
			case "resume":
				err = p.Resume(names...)
				want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(names, name) })
			case "all":
				everywhere, want = true, nil
				err = p.SuspendAll()
			case "only":
				if !everywhere {
					continue
				}
				everywhere, want = false, names
				err = p.HoldOnly(names...)
			case "note":
				for _, name := range names {
					notes[name] = true
				}
				err = p.Note(fleetv1alpha1.Hold{By: "ann", Reason: rapid.SampledFrom(scalars).Draw(t, "reason")}, names...)
			case "forget":
				for _, name := range names {
					delete(notes, name)
				}
				err = p.Forget(names...)
			case "activate":
				err = p.Activate(rapid.SampledFrom(scalars).Draw(t, "value"))
			}

			after := string(f.Text())
			told := func() string {
				return fmt.Sprintf("edit %d: %s %s\nbefore\n%s\nafter\n%s", i, verb, names, visible(before), visible(after))
			}

			if err != nil {
				t.Fatalf("%v\n%s", err, told())
			}
			if all, named := p.Suspended(); all != everywhere || !slices.Equal(named, want) {
				t.Fatalf("suspended are %v %v, want %v %v\n%s", all, named, everywhere, want, told())
			}

			var noted map[string]any
			if text, ok := p.Get("metadata", "annotations", fleetv1alpha1.AnnotationHolds).(string); ok {
				if err := yaml.Unmarshal([]byte(text), &noted); err != nil {
					t.Fatal(err)
				}
			}

			if len(noted) != len(notes) {
				t.Fatalf("notes are %v, want %v\n%s", noted, notes, told())
			}
			if now := without(t, d.name, f.Text()); !reflect.DeepEqual(now, rest) {
				t.Fatalf("something else changed: %v, was %v\n%s", now, rest, told())
			}
			if lost := lostLine(d.kept, after); lost != "" {
				t.Fatalf("lost line %q\n%s", lost, told())
			}
		}
	})
}

// Damaged text is refused or edited, but never causes a panic. An edited
// document has the same values except for the edit.
func TestLawDamagedText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		text := []byte(d.text)
		for range rapid.IntRange(1, 4).Draw(t, "damages") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			end := min(len(text), at+rapid.IntRange(0, 3).Draw(t, "length"))
			piece := rapid.SampledFrom([]string{"", "\n", "\r", " ", "\t", "- ", "? ", ": ", "&a ", "*a", "!!str ", "|", "'", `"`, "{", "}", "[", "]", ",", "#", "\u2028", "<<: ", "--- ", "\xff"}).Draw(t, "piece")
			text = slices.Concat(text[:at], []byte(piece), text[end:])
		}

		f, err := yamledit.Read(d.name, text)
		if err != nil {
			return
		}

		o, err := f.At(d.line, "PropagationPolicy", "web")
		if err != nil {
			return
		}

		p := yamledit.Policy{Object: o}
		rest := without(t, d.name, f.Text())

		for _, change := range []func() error{
			func() error { return p.Suspend("us-1") }, func() error { return p.Note(fleetv1alpha1.Hold{Reason: "soak"}, "us-1") },
			func() error { return p.Resume("eu-1") }, func() error { return p.Forget("eu-1") }, p.SuspendAll, p.ResumeAll,
		} {
			_ = change() // it may refuse
		}

		if now := without(t, d.name, f.Text()); !reflect.DeepEqual(now, rest) {
			t.Fatalf("something else changed: %v, was %v\nbefore\n%s\nafter\n%s", now, rest, visible(string(text)), visible(string(f.Text())))
		}
	})
}

var clusterNames = []string{"eu-1", "eu-2", "us-1", "no", "1e3", "ü"}

// scalars are strings that are hard to quote.
var scalars = []string{
	"a", "true", "null", "12", "1e3", "0x1f", "2026-01-01", "~", "-", "- a", "a: b", "a #b", "#", "'", `"`, `\`, "it's", "{", "[a", "*a", "&a", "!a", "|",
	">", "%", "@", "`", "a\tb", "ü €", "a, b", "?", ": ", "=", "<<", "a\u0085b", "a b", " a", "a ", "", "\x7f", "😀", "y",
}

// document is a randomly drawn document.
type document struct {
	name, text string
	line       int
	kept       []string // the lines that no edit may change
}

// lostLine returns a kept line that is missing or out of order.
func lostLine(kept []string, text string) string {
	lines := strings.Split(text, "\n")
	for _, line := range kept {
		i := slices.Index(lines, line)
		if i < 0 {
			return line
		}
		lines = lines[i+1:]
	}

	return ""
}

func visible(s string) string { return strings.ReplaceAll(s, "\r", "␍") }

var marker = regexp.MustCompile(`(?m)^(---([ \t]|$)|\.\.\.[ \t]*$)`)

// without is the content of a file except for what the edits are about.
func without(t *rapid.T, name string, text []byte) (all []any) {
	docs := []string{string(text)}
	if !strings.HasSuffix(name, ".json") {
		docs = marker.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), -1)
	}

	for _, doc := range docs {
		raw, err := []byte(doc), error(nil)
		if !strings.HasSuffix(name, ".json") {
			raw, err = yaml.YAMLToJSON([]byte(doc + "\n"))
		}

		var v any
		if err = cmp.Or(err, json.Unmarshal(raw, &v)); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}

		strip(v)
		all = append(all, v)
	}

	return all
}

func strip(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		list, _ := v.([]any)
		for _, item := range list {
			strip(item)
		}
		return
	}

	for _, item := range m {
		strip(item)
	}

	if spec, ok := m["spec"].(map[string]any); ok {
		delete(spec, "suspension")
	}

	if meta, ok := m["metadata"].(map[string]any); ok {
		annotations, _ := meta["annotations"].(map[string]any)
		delete(annotations, fleetv1alpha1.AnnotationHolds)
		delete(annotations, fleetv1alpha1.AnnotationActivate)
		if len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}

	for _, field := range []string{"spec", "metadata"} {
		if inner, ok := m[field].(map[string]any); m[field] == nil || ok && len(inner) == 0 {
			delete(m, field) // created on the way, or left empty
		}
	}
}

// drawing is a document while it is drawn.
type drawing struct {
	*rapid.T
	unit, list int // indentation of mappings and lists
	comments   bool
	n          int
	literal    int // the last line of the last literal text
	lines      []string
	free       []bool
}

// draw draws a file with a policy in it.
func draw(t *rapid.T) document {
	g := &drawing{T: t}
	switch rapid.IntRange(0, 9).Draw(t, "form") {
	case 0:
		return g.json()
	case 1:
		v := g.policy()
		g.line(0, false, g.flow(v))
		return g.finish(1)
	}

	g.unit = rapid.SampledFrom([]int{2, 2, 4, 3}).Draw(t, "unit")
	g.list = rapid.SampledFrom([]int{0, 2, g.unit}).Draw(t, "list")
	g.comments = rapid.Bool().Draw(t, "comments")

	if rapid.Bool().Draw(t, "first") {
		g.line(0, true, "# the first document")
		g.line(0, true, "a: "+g.word())
		g.line(0, true, "---"+rapid.SampledFrom([]string{"", " # the second"}).Draw(t, "marker"))
	}

	g.noise(0, true)
	at := len(g.lines)
	indent := 0
	if rapid.IntRange(0, 3).Draw(t, "in list") == 0 {
		g.line(0, true, "kind: List")
		g.line(0, true, "items:")
		g.line(g.list, true, "- kind: ConfigMap")
		g.noise(g.list+2, true)
		at = len(g.lines)
		indent = g.list + 2
		g.mapping(indent, g.policy(), true)
		g.lines[at] = strings.Repeat(" ", g.list) + "- " + g.lines[at][indent:]
	} else {
		g.mapping(0, g.policy(), true)
	}

	first := at + 1
	if rapid.Bool().Draw(t, "last") {
		g.noise(indent, true)
		g.line(0, true, "---")
		g.line(0, true, "b: {c: "+g.word()+"}")
	}

	return g.finish(first)
}

func (g *drawing) finish(line int) document {
	end := rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(g.T, "line end")
	d := document{name: "policy.yaml", line: line}
	for i, l := range g.lines {
		g.lines[i] = strings.TrimSuffix(l, "\r")
		if g.free[i] && (i < len(g.lines)-1 || end == "\n") {
			d.kept = append(d.kept, l+strings.TrimSuffix(end, "\n"))
		}
	}

	d.text = strings.Join(g.lines, end)
	if rapid.IntRange(0, 3).Draw(g.T, "ended") > 0 || g.literal == len(g.lines) {
		d.text += end
	} else {
		d.kept = d.kept[:max(0, len(d.kept)-1)]
	}

	return d
}

func (g *drawing) line(indent int, free bool, text string) {
	g.lines = append(g.lines, strings.Repeat(" ", indent)+text)
	g.free = append(g.free, free)
}

// noise adds comments and empty lines.
func (g *drawing) noise(indent int, free bool) {
	if !g.comments {
		return
	}

	for range rapid.IntRange(0, 2).Draw(g.T, "noise") {
		g.n++
		switch rapid.IntRange(0, 3).Draw(g.T, "which") {
		case 0:
			g.line(0, free, "")
		default:
			g.line(indent, free, fmt.Sprintf("# comment %d: {not yaml", g.n))
		}
	}
}

// tail is a comment at the end of a line.
func (g *drawing) tail() string {
	if !g.comments || rapid.IntRange(0, 3).Draw(g.T, "tail") > 0 {
		return ""
	}
	g.n++
	return fmt.Sprintf(" # tail %d's", g.n)
}

func (g *drawing) word() string {
	return rapid.SampledFrom([]string{"x", "y-1", `"q: # {"`, "'it''s'", "12", "a b"}).Draw(g.T, "word")
}

type pair struct {
	key   string
	value any
}

// policy draws the content of the document, in any order.
func (g *drawing) policy() []pair {
	chance := func(what string) bool { return rapid.Bool().Draw(g.T, what) }
	list := func(what string) []any {
		var l []any
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(clusterNames), 1, 4, rapid.ID).Draw(g.T, what) {
			l = append(l, name)
		}
		return l
	}

	meta := []pair{{"name", "web"}}
	if chance("labels") {
		meta = append(meta, pair{"labels", []pair{{"app", "web"}, {"tier", "x"}}})
	}

	if chance("annotated") {
		var a []pair
		if chance("other") {
			a = append(a, pair{"team", "it's # shop"})
		}

		if chance("holds") {
			a = append(a, pair{fleetv1alpha1.AnnotationHolds, rapid.SampledFrom([]string{
				"eu-1: {by: bob}\n", "eu-1: {by: bob}\nus-1:\n  by: ann\n", `{"eu-1": {"by": "bob"}, "us-1": {}}`,
			}).Draw(g.T, "held")})
		}

		if chance("active") {
			a = append(a, pair{fleetv1alpha1.AnnotationActivate, "one"})
		}

		meta = append(meta, pair{"annotations", a})
	}

	spec := []pair{{"resourceSelectors", []any{[]pair{{"apiVersion", "v1"}, {"kind", "ConfigMap"}}, []pair{{"kind", "Secret"}}}}}
	if chance("placement") {
		spec = append(spec, pair{"placement", []pair{{"clusterAffinity", []pair{{"clusterNames", list("placed")}}}}})
	}
	if chance("script") {
		spec = append(spec, pair{"script", "one: # two\n  three\n\nfour\n"})
	}

	switch all, named := "dispatching", "dispatchingOnClusters"; rapid.IntRange(0, 6).Draw(g.T, "suspension") {
	case 0, 1:
		if chance("old") {
			named = "suspendDispatchingOnClusters"
		}
		spec = append(spec, pair{"suspension", []pair{{named, []pair{{"clusterNames", list("held")}}}}})
	case 2:
		if chance("old") {
			all = "suspendDispatching"
		}
		spec = append(spec, pair{"suspension", []pair{{all, true}}})
	case 3:
		spec = append(spec, pair{"suspension", []pair{}})
	}

	doc := []pair{{"kind", "PropagationPolicy"}, {"metadata", shuffled(g.T, meta)}, {"spec", shuffled(g.T, spec)}}
	return shuffled(g.T, doc)
}

func shuffled(t *rapid.T, pairs []pair) []pair { return rapid.Permutation(pairs).Draw(t, "order") }

// touched are the keys whose lines, including those below, edits may change.
func touched(key string) bool {
	return key == "suspension" || key == "annotations" || key == "metadata+" || key == "spec+"
}

// mapping draws a block mapping.
func (g *drawing) mapping(indent int, pairs []pair, free bool) {
	for i, p := range pairs {
		if i > 0 { // the first may follow a dash
			g.noise(indent, free)
		}

		key := p.key
		if rapid.IntRange(0, 9).Draw(g.T, "quoted key") == 0 {
			key = `"` + key + `"`
		}

		own := free && !touched(p.key)
		switch v := p.value.(type) {
		case []pair:
			flow := len(v) == 0 || rapid.IntRange(0, 5).Draw(g.T, "flow") == 0
			if flow {
				g.line(indent, own && p.key != "spec" && p.key != "metadata", key+": "+g.flow(v)+g.tail())
				continue
			}
			g.line(indent, own, key+":"+g.tail())
			g.noise(indent+g.unit, own)
			g.mapping(indent+g.unit, v, own)
		case []any:
			if rapid.Bool().Draw(g.T, "flow list") {
				g.line(indent, own, key+": "+g.flow(v)+g.tail())
				continue
			}
			g.line(indent, own, key+":"+g.tail())
			for _, item := range v {
				g.noise(indent+g.list, own)
				fields, ok := item.([]pair)
				if !ok || rapid.Bool().Draw(g.T, "flow item") {
					g.line(indent+g.list, own, "- "+g.flow(item)+g.tail())
					continue
				}

				at := len(g.lines)
				g.mapping(indent+g.list+2, fields, own)
				g.lines[at] = strings.Repeat(" ", indent+g.list) + "- " + g.lines[at][indent+g.list+2:]
			}
		case string:
			if strings.Contains(v, "\n") && rapid.IntRange(0, 3).Draw(g.T, "quoted") > 0 {
				g.line(indent, own, key+": |"+g.tail())
				for l := range strings.SplitSeq(strings.TrimSuffix(v, "\n"), "\n") {
					if l == "" {
						g.line(0, own, "")
						continue
					}
					g.line(indent+g.unit, own, l)
				}

				g.literal = len(g.lines)
				continue
			}
			g.line(indent, own, key+": "+g.flow(v)+g.tail())
		default:
			g.line(indent, own, key+": "+g.flow(v)+g.tail())
		}
	}
}

// flow draws a value on one line.
func (g *drawing) flow(v any) string {
	open := rapid.SampledFrom([]string{"", "", " "}).Draw(g.T, "space")
	switch v := v.(type) {
	case []pair:
		if len(v) == 0 {
			return "{}"
		}
		var entries []string
		for _, p := range v {
			entries = append(entries, g.quoted(p.key)+": "+g.flow(p.value))
		}
		return "{" + open + strings.Join(entries, rapid.SampledFrom([]string{", ", ",", " , "}).Draw(g.T, "comma")) + open + "}"
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, g.flow(item))
		}
		comma := rapid.SampledFrom([]string{"", "", ", "}).Draw(g.T, "last comma")
		return "[" + open + strings.Join(items, ", ") + comma + open + "]"
	case string:
		return g.quoted(v)
	}

	return fmt.Sprint(v)
}

func (g *drawing) quoted(s string) string {
	simple := !strings.ContainsAny(s, ":#{}[],'\"\n") && s != "no" && s != "1e3"
	switch rapid.IntRange(0, 3).Draw(g.T, "quotes") {
	case 0, 1:
		if simple {
			return s
		}
	case 2:
		if !strings.Contains(s, "\n") {
			return "'" + strings.ReplaceAll(s, "'", "''") + "'"
		}
	}

	b, _ := json.Marshal(s)
	return string(b)
}

// json draws the document as JSON, in one of the layouts that tools write.
func (g *drawing) json() document {
	var build func(v any) string
	build = func(v any) string {
		switch v := v.(type) {
		case []pair:
			var entries []string
			for _, p := range v {
				k, _ := json.Marshal(p.key)
				entries = append(entries, string(k)+":"+build(p.value))
			}
			return "{" + strings.Join(entries, ",") + "}"
		case []any:
			var items []string
			for _, item := range v {
				items = append(items, build(item))
			}
			return "[" + strings.Join(items, ",") + "]"
		}

		b, _ := json.Marshal(v)
		return string(b)
	}

	text := build(g.policy())
	if indent := rapid.SampledFrom([]string{"", "  ", "\t", "    "}).Draw(g.T, "indent"); indent != "" {
		var out strings.Builder
		var raw = json.RawMessage(text)
		e := json.NewEncoder(&out)
		e.SetIndent("", indent)
		if err := e.Encode(raw); err != nil {
			g.Fatal(err)
		}
		text = out.String()
	}

	return document{name: "policy.json", text: text, line: 1}
}
