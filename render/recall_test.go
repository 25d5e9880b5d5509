// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/render"
)

// recalled renders a tree in another process, so to say: with what is kept of a build.
func recalled(t interface{ Fatal(...any) }, b *render.Build, fsys fs.FS) (*render.Build, error) {
	return recall(t, b).Render(fsys)
}

func recall(t interface{ Fatal(...any) }, b *render.Build) *render.Renderer {
	raw, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r := render.New()
	if err := r.Recall(raw); err != nil {
		t.Fatal(err)
	}
	return r
}

// withoutCount is a shown build without how many units were rendered for it.
func withoutCount(shown string) string {
	_, rest, _ := strings.Cut(shown, "\n")
	return rest
}

// What is recalled of a tree makes the same of it, down to each object and finding.
func TestRecalledTreeIsTheSame(t *testing.T) {
	stories, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	reused := 0
	for _, story := range stories {
		archive, err := txtar.ParseFile(story)
		if err != nil {
			t.Fatal(err)
		}
		fsys := tree(archive.Files[:len(archive.Files)-1])
		b, err := render.New().Render(fsys)
		if err != nil {
			continue
		}
		again, err := recalled(t, b, fsys)
		if err != nil {
			t.Fatal(story, err)
		}
		reused += b.Renders - again.Renders
		if got, want := withoutCount(show(again, nil)), withoutCount(show(b, nil)); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", story, got, want)
		}
	}
	if reused < 20 {
		t.Errorf("%d units were reused", reused)
	}
}

// What is recalled of one tree makes of the next one what rendering it makes.
func TestRecalledTreeMeetsAnother(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		one, two := files(""), files("")
		for i := range rapid.IntRange(1, 6).Draw(rt, "files") {
			dir, name := rapid.SampledFrom(lawDirs).Draw(rt, "dir"), rapid.SampledFrom(lawFiles).Draw(rt, "file")
			maps.Copy(one, files(fmt.Sprintf("-- %s --\n%s\n", filepath.Join(dir, name), content(rt, name))))
			if i == 0 {
				continue
			}
			maps.Copy(two, one)
		}
		name := rapid.SampledFrom(lawFiles).Draw(rt, "changed")
		maps.Copy(two, files(fmt.Sprintf("-- %s --\n%s\n", name, content(rt, name))))

		b, err := render.New().Render(one)
		if err != nil {
			return
		}
		same := func(got string) {
			want := show(render.New().Render(two))
			if strings.HasPrefix(got, "renders ") && strings.HasPrefix(want, "renders ") {
				got, want = withoutCount(got), withoutCount(want)
			}
			if got != want {
				rt.Fatalf("%s\nwant:\n%s", got, want)
			}
		}
		same(show(recalled(t, b, two)))

		r := recall(t, b)
		first, err := r.Render(one)
		if err != nil {
			rt.Fatal(err)
		}
		same(show(r.Next(first, two, differ(one, two))))
	})
}

// What is kept of a tree holds nothing of its manifests.
func TestRecallKeepsNoManifest(t *testing.T) {
	b, err := render.New().Render(files("-- a.yaml --\napiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {note: hush}}\nstringData: {password: swordfish}\n"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"swordfish", "password", "hush"} {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("it holds %q", secret)
		}
	}
}
