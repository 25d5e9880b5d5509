// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fairlead/fairlead/render"
)

// took is how many bytes something allocates.
func took(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A03: Lists in Lists are taken apart in time that follows their size, to a depth.
func TestA3NestedLists(t *testing.T) {
	nested := func(n int) fstest.MapFS {
		return file("a.yaml", strings.Repeat("{kind: List, items: [", n)+"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"+strings.Repeat("]}", n))
	}
	if b, err := render.New().Render(nested(20)); err != nil || b.Snapshot.Templates.Len() != 1 {
		t.Errorf("20 Lists: %v", err)
	}
	wrong(t, nested(21), "a.yaml:1: Lists are nested more than 20 deep")
	wrong(t, nested(500), "a.yaml:1: Lists are nested more than 20 deep")

	// Each item of a long List is told of at its own line, and costs its own lines.
	list := "kind: List\nitems:\n" + many(2000, "- {apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: p%d}, spec: {resourceSelectors: [{apiVersion: v1, kind: Pod}], placement: {clusterAffinity: {clusterNames: [m]}}}}\n")
	bytes := took(func() {
		if b, err := render.New().Render(file("a.yaml", list)); err != nil || b.Snapshot.Policies.At("/p1999").Origin.Line != 2002 {
			t.Errorf("%v", err)
		}
	})
	if bytes > 512<<20 {
		t.Errorf("a List of 2,000 items took %d MiB", bytes>>20)
	}
}

// A03: the paths of the fields of a file, of which each holds those of its parents, are
// recorded up to a limit.
func TestA3DeepDocumentsWithAMistake(t *testing.T) {
	key := strings.Repeat("k", 90)
	text := "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: a, namespace: b}\nspec: {wrong: 1}\nstatus: " +
		strings.Repeat("{"+key+": ", 2000) + "{" + many(20_000, "a%d: 1, ") + "}" + strings.Repeat("}", 2000) + "\n"
	bytes := took(func() { wrong(t, file("a.yaml", text), "a.yaml:") })
	if bytes > 1<<30 {
		t.Errorf("took %d MiB", bytes>>20)
	}
}

// A03: a tree of few objects and many paths is refused before its paths are read.
func TestA3TreeOfManyPaths(t *testing.T) {
	for name, test := range map[string]struct {
		fsys fs.FS
		want string
	}{
		"directories":           {bomb{10, 7, ""}, "more than 1000000 files and directories"},
		"manifests":             {bomb{8, 6, "x.yaml"}, "more than 200000 manifests"},
		"kustomizations":        {bomb{8, 6, "kustomization.yaml"}, "more than 200000 manifests"},
		"large kustomizations":  {bomb{6, 4, "kustomization.yaml"}, "have more than 67108864 bytes together"},
		"one large file, often": {bomb{6, 4, "y.yaml"}, "more than 536870912 bytes of manifests"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render.New().Render(test.fsys)
			var problems render.Problems
			if !errors.As(err, &problems) || len(problems) != 1 || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// bomb is a tree of wide directories in each other, with one file in each of the last.
type bomb struct {
	width, depth int
	file         string
}

func (b bomb) at(name string) (dir, found bool) {
	parts := strings.Split(name, "/")
	if name == "." {
		return true, true
	}
	for i, part := range parts {
		if part == b.file && i == b.depth && i == len(parts)-1 {
			return false, true
		}
		if len(part) != 2 || part[0] != 'd' {
			return false, false
		}
	}
	return true, len(parts) <= b.depth
}

func (b bomb) content() string {
	switch {
	case b.file == "kustomization.yaml" && b.depth == 4:
		return "# " + strings.Repeat("x", 1<<20) + "\n"
	case b.file == "y.yaml":
		return "# " + strings.Repeat("x", 3<<20) + "\n"
	}
	return small
}

func (b bomb) Open(name string) (fs.File, error) {
	dir, found := b.at(name)
	if !found {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	entries := fstest.MapFS{}
	if !dir {
		entries["f"] = &fstest.MapFile{Data: []byte(b.content())}
		return entries.Open("f")
	}
	if name != "." && strings.Count(name, "/") == b.depth-1 {
		if b.file != "" {
			entries[b.file] = &fstest.MapFile{}
		}
		return entries.Open(".")
	}
	for i := range b.width {
		entries[fmt.Sprintf("d%d", i)] = &fstest.MapFile{Mode: fs.ModeDir}
	}
	return entries.Open(".")
}

// A03: patterns are compared with paths without a regular expression, and counted.
func TestA3ManyIgnorePatterns(t *testing.T) {
	fsys := file(".fairleadignore", many(20_000, "*-%d-*.yaml\n"))
	for i := range 300 {
		fsys[fmt.Sprintf("x%d.yaml", i)] = &fstest.MapFile{Data: []byte(strings.Replace(small, "x", fmt.Sprint("x", i), 1))}
	}
	fsys["a-7-b.yaml"] = &fstest.MapFile{Data: []byte("nothing that can be read")}
	if b, err := render.New().Render(fsys); err != nil || b.Snapshot.Templates.Len() != 300 {
		t.Errorf("got %v", err)
	}

	fsys[".fairleadignore"] = &fstest.MapFile{Data: []byte(many(400_000, "*%d*\n"))}
	wrong(t, fsys, "the patterns of .fairleadignore would be compared with paths more than 100000000 times")
}

// A03: what is wrong with a commit is told in a hundred lines, whatever there is of it.
func TestA3ManyProblems(t *testing.T) {
	for name, test := range map[string]struct {
		fsys fstest.MapFS
		want string // the last line
	}{
		"documents without a name": {file("a.yaml", strings.Repeat("kind: x\n---\n", 30_000)), "and 59900 more problems"},
		"more documents":           {file("a.yaml", strings.Repeat("kind: x\n---\n", 300_000)), "a.yaml: file has more than 50000 documents"},
		"items of a List":          {file("a.json", `{"apiVersion":"v1","kind":"List","items":[`+strings.Repeat("{},", 500_000)+"{}]}"), "a.json: file has more than 50000 documents"},
		"mistakes":                 {file("a.json", `[{"apiVersion":"v1","kind":"x","metadata":{"name":"x"}},`+strings.Repeat("1,", 40_000)+"1]"), "and 39901 more problems"},
		"a long one":               {file("a.yaml", "apiVersion: v1\nkind: "+strings.Repeat("x", 1<<20)+"\nmetadata: {name: [1]}\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render.New().Render(test.fsys)
			if err == nil {
				t.Fatal("it is accepted")
			}
			lines := strings.Split(err.Error(), "\n")
			if last := lines[len(lines)-1]; test.want != "" && last != test.want || len(lines) > 101 || len(err.Error()) > 101*1100 {
				t.Errorf("%d lines, %d bytes, the last: %.200s", len(lines), len(err.Error()), last)
			}
		})
	}

	// The problems of many files together, in order.
	fsys := fstest.MapFS{}
	for i := range 300 {
		fsys[fmt.Sprintf("f%03d.yaml", i)] = &fstest.MapFile{Data: []byte(strings.Repeat("kind: x\n---\n", 100))}
	}
	_, err := render.New().Render(fsys)
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 101 || !strings.HasPrefix(lines[0], "f000.yaml:1: ") || lines[100] != "and 59900 more problems" {
		t.Errorf("%d lines, from %s to %s", len(lines), lines[0], lines[len(lines)-1])
	}
}
