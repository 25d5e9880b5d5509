// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/render"
)

var update = flag.Bool("update", false, "rewrite what the stories print")

// A story is a tree; its last file, "prints", is the result.
func TestStories(t *testing.T) {
	stories, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(stories) == 0 {
		t.Fatalf("no stories: %v", err)
	}

	for _, story := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(story), ".txtar"), func(t *testing.T) {
			raw, err := os.ReadFile(story)
			if err != nil {
				t.Fatal(err)
			}

			archive := txtar.Parse(raw)
			var want []byte
			files := archive.Files
			if n := len(files); n > 0 && files[n-1].Name == "prints" {
				want, files = files[n-1].Data, files[:n-1]
			}

			got := show(render.New().Render(tree(files)))
			if *update {
				archive.Files = append(files[:len(files):len(files)], txtar.File{Name: "prints", Data: []byte(got)})
				if err := os.WriteFile(story, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}

			if got != string(want) {
				t.Errorf("prints:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// tree turns an archive into a file system. The content "-> target" is a
// symlink.
func tree(files []txtar.File) fstest.MapFS {
	fsys := fstest.MapFS{}
	for _, f := range files {
		if target, ok := strings.CutPrefix(string(f.Data), "-> "); ok {
			fsys[f.Name] = &fstest.MapFile{Data: []byte(strings.TrimSpace(target)), Mode: fs.ModeSymlink | 0o777}
		} else {
			fsys[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
		}
	}

	return fsys
}

func files(archive string) fstest.MapFS { return tree(txtar.Parse([]byte(archive)).Files) }

// show prints a build or its problems.
func show(b *render.Build, err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	var out strings.Builder
	s := b.Snapshot
	fmt.Fprintf(&out, "renders %d\n", b.Renders)
	out.WriteString(snapshot(s))
	return out.String()
}

func snapshot(s *fleet.Snapshot) string {
	var out strings.Builder
	if s.Settings != nil {
		fmt.Fprintf(&out, "settings %s %s\n", s.Settings.Origin, compact(s.Settings.Spec))
	}

	for u := range s.Units.Values() {
		fmt.Fprintf(&out, "unit %s %d", u.Path, u.Objects)
		if u.Broken != nil {
			fmt.Fprint(&out, " broken")
		}
		fmt.Fprintln(&out)
	}

	for name, c := range s.Clusters.All() {
		fmt.Fprintf(&out, "cluster %s %s %s\n", name, c.Origin, compact(c.Spec))
	}

	for p := range s.Policies.Values() {
		fmt.Fprintf(&out, "policy %s %s %s\n", p.Ref, p.Origin, compact(p.Spec))
		if p.Spec.Suspension != nil {
			fmt.Fprintf(&out, "  suspension at %s\n", p.At("spec.suspension"))
		}
	}

	for t := range s.Templates.Values() {
		fmt.Fprintf(&out, "template %s %s in %s\n  %s\n", t.ID, t.Origin, t.Unit, compact(t.Object()))
	}
	for f := range s.Findings.Values() {
		fmt.Fprintf(&out, "%s %s %s: %s\n", f.Severity, f.Code, f.Origin, f.Message)
	}

	return out.String()
}

func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}
