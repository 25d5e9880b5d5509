// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/render"
)

// A line of trees none of which is accepted, each rendered from the last one, gives what
// Next gives from the accepted one: the same problems, or the same snapshot, which
// shares with the accepted one what is equal (R06).
func TestLineEqualsNext(t *testing.T) {
	further, refused, held := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		r := render.New()
		accepted := fstest.MapFS{}
		var prev *render.Build
		if rapid.Bool().Draw(rt, "accepted") {
			for range rapid.IntRange(0, 8).Draw(rt, "files") {
				edit(rt, accepted)
			}
			prev, _ = r.Render(accepted)
		}
		if prev == nil {
			accepted = fstest.MapFS{}
		}
		now := maps.Clone(accepted)

		var last *render.Tried
		for range rapid.IntRange(1, 12).Draw(rt, "commits") {
			was := now
			now = maps.Clone(now)
			for range rapid.IntRange(1, 3).Draw(rt, "edits") {
				edit(rt, now)
			}
			if rapid.IntRange(0, 5).Draw(rt, "back") == 0 {
				restoreOne(rt, now, accepted)
			}

			var tried *render.Tried
			if last != nil {
				tried = r.TryAfter(last, now, differ(was, now))
			}
			if tried != nil {
				further++
			} else {
				tried = r.Try(prev, now, differ(accepted, now))
			}
			last = tried

			got, wrong := tried.Result()
			want, same := render.New().Try(prev, now, differ(accepted, now)).Result()
			whole, broken := render.New().Render(now)
			if text(wrong) != text(same) || text(wrong) != text(broken) {
				rt.Fatalf("the line says\n%v\nNext says\n%v\nRender says\n%v", wrong, same, broken)
			}
			if wrong != nil {
				refused++
				continue
			}

			held++
			if snapshot(got.Snapshot) != snapshot(want.Snapshot) || snapshot(got.Snapshot) != snapshot(whole.Snapshot) {
				rt.Fatalf("the line gives\n%s\nNext gives\n%s", snapshot(got.Snapshot), snapshot(want.Snapshot))
			}
			if prev == nil {
				continue
			}
			shared(rt, prev.Snapshot.Templates, got.Snapshot.Templates)
			shared(rt, prev.Snapshot.Policies, got.Snapshot.Policies)
			shared(rt, prev.Snapshot.Clusters, got.Snapshot.Clusters)
			shared(rt, prev.Snapshot.Units, got.Snapshot.Units)
			shared(rt, prev.Snapshot.Findings, got.Snapshot.Findings)

			if rapid.IntRange(0, 3).Draw(rt, "accept") == 0 {
				prev, accepted, last = got, now, nil
			}
		}
	})

	if further == 0 || refused == 0 || held == 0 {
		t.Errorf("%d trees refused and %d not, %d of them from the last one", refused, held, further)
	}
	t.Logf("%d trees refused and %d not, %d of them from the last one", refused, held, further)
}

// restoreOne takes one file back to what it was.
func restoreOne(rt *rapid.T, now, before fstest.MapFS) {
	names := slices.Sorted(maps.Keys(before))
	if len(names) == 0 {
		return
	}
	name := rapid.SampledFrom(names).Draw(rt, "restored")
	now[name] = before[name]
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// What a tree changes is all that is read, however much changed before it.
func TestLineReadsWhatChanged(t *testing.T) {
	app := func(name, value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {value: '" + value + "'}\n"
	}
	accepted := fstest.MapFS{}
	for _, name := range []string{"a", "b", "c", "d"} {
		accepted[name+".yaml"] = &fstest.MapFile{Data: []byte(app(name, "1"))}
	}

	for name, test := range map[string]struct {
		content string
		refused bool
	}{
		"after one that is refused": {"broken: [", true},
		"after one that is held":    {"# nothing\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := render.New()
			prev, err := r.Render(accepted)
			if err != nil {
				t.Fatal(err)
			}

			now := maps.Clone(accepted)
			now["d.yaml"] = &fstest.MapFile{Data: []byte(test.content)}
			tried := r.Try(prev, now, []string{"d.yaml"})
			for _, name := range []string{"a.yaml", "b.yaml", "c.yaml"} {
				now = maps.Clone(now)
				now[name] = &fstest.MapFile{Data: []byte(app(name[:1], "2"))}
				reads := &counted{FS: now, reads: map[string]bool{}}
				if tried = r.TryAfter(tried, reads, []string{name}); tried == nil {
					t.Fatalf("%s needs all that changed", name)
				}
				if got := slices.Sorted(maps.Keys(reads.reads)); !slices.Equal(got, []string{name}) {
					t.Errorf("%s: read %q", name, got)
				}
				if _, err := tried.Result(); (err != nil) != test.refused {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// counted notes the files that are read.
type counted struct {
	fs.FS
	reads map[string]bool
}

func (c *counted) ReadFile(name string) ([]byte, error) {
	c.reads[name] = true
	return fs.ReadFile(c.FS, name)
}

func (c *counted) Stat(name string) (fs.FileInfo, error) { return fs.Stat(c.FS, name) }

func (c *counted) Lstat(name string) (fs.FileInfo, error) {
	lfs, ok := c.FS.(fs.ReadLinkFS)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return lfs.Lstat(name)
}

func (c *counted) ReadLink(string) (string, error) { return "", errors.ErrUnsupported }
