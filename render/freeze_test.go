// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/render"
)

// A story with unreadable files: each folder is a commit with the files that it
// adds or edits; "-delete" lists the deleted ones, and "-prints" is the result.
// Each result is also reproduced from the trees alone.
func TestFreezeStories(t *testing.T) {
	stories, err := filepath.Glob("testdata/freeze/*.txtar")
	if err != nil || len(stories) == 0 {
		t.Fatalf("no stories: %v", err)
	}

	for _, story := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(story), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(story)
			if err != nil {
				t.Fatal(err)
			}

			archived := &txtar.Archive{Comment: archive.Comment}
			line := &line{r: render.New(), trees: map[string]fstest.MapFS{}}
			for _, c := range folders(archive) {
				archived.Files = append(archived.Files, c.files...)
				before := line.build
				b, err := line.next(c.name, c.tree)
				got := show(b, err)
				if err == nil {
					got = line.diff(before)
					line.restored(t)
				}

				archived.Files = append(archived.Files, txtar.File{Name: c.name + "/-prints", Data: []byte(got)})
				if !*update && got != c.prints {
					t.Errorf("%s prints\n%s\nwant\n%s", c.name, got, c.prints)
				}
			}

			if *update {
				if err := os.WriteFile(story, txtar.Format(archived), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// line is a sequence of commits, rendered the way package reconcile does.
type line struct {
	r     *render.Renderer
	trees map[string]fstest.MapFS
	build *render.Build // of the last accepted commit
	state propagate.State
}

func (l *line) next(commit string, tree fstest.MapFS) (b *render.Build, err error) {
	l.trees[commit] = tree
	if l.build == nil {
		b, err = l.r.Render(tree)
	} else {
		b, err = l.r.Next(l.build, tree, differ(l.trees[l.state.Accepted], tree))
	}

	if err != nil {
		return nil, err
	}

	next := propagate.Step(l.state, propagate.Commit{Hash: commit, Snapshot: b.Snapshot})
	if next.Refusal != nil {
		return nil, next.Refusal.Problems[0]
	}

	l.build, l.state = b, next
	return b, nil
}

// diff describes what changed, and where each frozen unit has its content from.
func (l *line) diff(before *render.Build) string {
	var out strings.Builder
	was := map[string]bool{}
	if before != nil {
		for row := range strings.Lines(snapshot(before.Snapshot)) {
			was[row] = true
		}
	}

	is := map[string]bool{}
	for row := range strings.Lines(snapshot(l.build.Snapshot)) {
		if is[row] = true; !was[row] {
			fmt.Fprintf(&out, "+ %s", row)
		}
	}

	for _, row := range slices.Sorted(maps.Keys(was)) {
		if !is[row] {
			fmt.Fprintf(&out, "- %s", row)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(l.state.Frozen)) {
		fmt.Fprintf(&out, "%s as of %q\n", name, l.state.Frozen[name])
	}

	for u := range l.build.Snapshot.Units.Values() {
		for _, p := range u.Broken {
			fmt.Fprintf(&out, "  %s: %s\n", u.Path, p.Error())
		}
	}

	return out.String()
}

// restored renders the last accepted build again from the trees in its state.
func (l *line) restored(t fataler) {
	t.Helper()
	earlier := map[string]fs.FS{}
	for name, commit := range l.state.Frozen {
		if commit != "" {
			earlier[name] = l.trees[commit]
		}
	}

	tree := l.trees[l.state.Accepted]
	again, err := render.New().Restore(tree, earlier)
	if err != nil {
		t.Fatalf("%s cannot be made again: %v", l.state.Accepted, err)
	}
	if got, want := snapshot(again.Snapshot), snapshot(l.build.Snapshot); got != want {
		t.Fatalf("%s made again gives\n%s\nnot\n%s", l.state.Accepted, got, want)
	}
	if !slices.Equal(again.Snapshot.Unparsed, l.build.Snapshot.Unparsed) {
		t.Fatalf("%s made again cannot parse %v, not %v", l.state.Accepted, again.Snapshot.Unparsed, l.build.Snapshot.Unparsed)
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

type folder struct {
	name, prints string
	tree         fstest.MapFS
	files        []txtar.File
}

func folders(archive *txtar.Archive) (all []folder) {
	now := fstest.MapFS{}
	for i := 0; i < len(archive.Files); {
		name, _, _ := strings.Cut(archive.Files[i].Name, "/")
		f := folder{name: name}
		now = maps.Clone(now)
		for ; i < len(archive.Files) && strings.HasPrefix(archive.Files[i].Name, name+"/"); i++ {
			file := archive.Files[i]
			rel := strings.TrimPrefix(file.Name, name+"/")
			switch rel {
			case "-prints":
				f.prints = string(file.Data)
				continue
			case "-delete":
				for _, gone := range strings.Fields(string(file.Data)) {
					delete(now, gone)
				}
			default:
				maps.Copy(now, tree([]txtar.File{{Name: rel, Data: file.Data}}))
			}

			f.files = append(f.files, file)
		}

		f.tree = now
		all = append(all, f)
	}

	return all
}

const freezing = "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {onBroken: FreezeUnit}\n"

func put(fsys fstest.MapFS, name, content string) {
	fsys[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
}

// Whatever breaks, appears and disappears, the result of a commit depends only
// on its tree, the last accepted one and what is frozen there. Once nothing is
// broken any more, it depends on the tree alone.
func TestFrozenFollowsFromGit(t *testing.T) {
	accepted, refused, frozen, unparsed := 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		l := &line{r: render.New(), trees: map[string]fstest.MapFS{}}
		now := fstest.MapFS{}
		// Enough templates that no commit deletes the last one.
		put(now, "always.yaml", small)

		for n := range rapid.IntRange(1, 12).Draw(rt, "commits") {
			now = maps.Clone(now)
			for range rapid.IntRange(1, 4).Draw(rt, "edits") {
				if rapid.IntRange(0, 3).Draw(rt, "break") == 0 {
					breakOne(rt, now)
				} else {
					edit(rt, now)
				}
			}

			put(now, "fairlead.yaml", freezing)
			put(now, "always.yaml", small)
			b, err := l.next(fmt.Sprint(n), now)
			if err != nil {
				refused++
				continue
			}

			accepted++
			l.restored(rt)
			unparsed += len(b.Snapshot.Unparsed)

			if frozen += len(l.state.FrozenUnits()); b.Frozen() != (len(l.state.FrozenUnits()) > 0) {
				rt.Fatalf("%v is frozen, and the build says %v", l.state.Frozen, b.Frozen())
			}
			if b.Frozen() {
				continue
			}

			whole, err := render.New().Render(now)
			if err != nil || snapshot(whole.Snapshot) != snapshot(b.Snapshot) {
				rt.Fatalf("nothing is frozen, and it is\n%s\nnot\n%s", snapshot(b.Snapshot), show(whole, err))
			}
		}
	})

	t.Logf("%d trees accepted, with %d frozen units and %d unparsed kustomizations, %d refused", accepted, frozen, unparsed, refused)
}

// breakOne makes a file unreadable.
func breakOne(rt *rapid.T, fsys fstest.MapFS) {
	names := slices.Sorted(maps.Keys(fsys))
	if len(names) == 0 {
		return
	}
	broken(rt, fsys, rapid.SampledFrom(names).Draw(rt, "broken"))
}

func broken(rt *rapid.T, fsys fstest.MapFS, name string) {
	switch rapid.IntRange(0, 2).Draw(rt, "how") {
	case 0:
		put(fsys, name, "broken: [\n")
	case 1:
		put(fsys, name, "kind: Nothing\nmetadata: {namespace: 1}\n")
	default:
		fsys[name] = &fstest.MapFile{Data: []byte("elsewhere"), Mode: fs.ModeSymlink | 0o777}
	}
}

// With one broken unit the snapshot equals that of a tree with the unit's last
// good files and everything else as it is now. Otherwise the commit is refused,
// because the meaning of the unit affects the rest.
func TestFrozenIsTheLastGoodUnit(t *testing.T) {
	equal, doubted := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		before := fstest.MapFS{}
		for range rapid.IntRange(3, 14).Draw(rt, "files") {
			edit(rt, before)
		}

		put(before, "fairlead.yaml", freezing)
		first, err := render.New().Render(before)
		if err != nil || first.Frozen() {
			rt.Skip("not all is well to begin with")
		}

		unit, own := first.Own(rapid.IntRange(0, 1000).Draw(rt, "unit"))
		if len(own) == 0 {
			rt.Skip("it shares all its files")
		}

		good := maps.Clone(before)
		for range rapid.IntRange(0, 3).Draw(rt, "edits") {
			edit(rt, good)
		}

		put(good, "fairlead.yaml", freezing)
		for _, name := range first.Reads(unit) {
			if f := before[name]; f != nil {
				good[name] = f
			} else {
				delete(good, name)
			}
		}

		bad := maps.Clone(good)
		broken(rt, bad, rapid.SampledFrom(own).Draw(rt, "file"))

		want, wantErr := render.New().Next(first, good, differ(before, good))
		got, err := render.New().Next(first, bad, differ(before, bad))
		switch {
		case wantErr != nil || want.Frozen() || !want.Has(unit) || !want.Snapshot.Settings.Freezes():
			rt.Skip("something else is wrong, or the unit or the settings are left out")
		case err != nil && (strings.Contains(err.Error(), "cannot tell whether") || strings.Contains(err.Error(), "what it uses is unknown")):
			doubted++
		case err != nil:
			rt.Fatalf("refused: %v", err)
		case !got.Broken(unit):
			rt.Skip("it can be read all the same")
		default:
			equal++
			if got, want := strings.ReplaceAll(snapshot(got.Snapshot), " broken\n", "\n"), snapshot(want.Snapshot); got != want {
				rt.Fatalf("with a broken %s it is\n%s\nnot\n%s", unit, got, want)
			}
		}
	})

	t.Logf("%d equal, %d in doubt", equal, doubted)

	if equal == 0 {
		t.Error("no case was tried")
	}
}
