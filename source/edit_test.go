// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io/fs"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// git can read what Apply writes, and git fsck accepts it.
func TestApplyWritesWhatGitReads(t *testing.T) {
	dir := t.TempDir()
	r, err := Init(dir, "main")
	if err != nil {
		t.Fatal(err)
	}

	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	edit := func(message string, files map[string][]byte) string {
		t.Helper()
		hash, err := r.Apply(Edit{Branch: "main", Message: message, Author: "ann", Mail: "ann@example.com", When: when, Files: files})
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}

	edit("first", map[string][]byte{"a.yaml": []byte("a: 1\n"), "dir/b.yaml": []byte("b: 1\n"), "dir.x/c.yaml": []byte("c: 1\n"), "gone/d": []byte("d\n")})
	head := edit("second\n\nFairlead-Begin: true\n", map[string][]byte{"dir/b.yaml": []byte("b: 2\n"), "gone/d": nil, "dir/deep/e.yaml": []byte("e: 1\n")})

	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}

	git("fsck", "--strict")
	want := "a.yaml\ndir.x/c.yaml\ndir/b.yaml\ndir/deep/e.yaml\n"
	if got := git("ls-tree", "-r", "--name-only", "main"); got != want {
		t.Errorf("git sees %q, want %q", got, want)
	}

	c, err := r.Commit(head)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Trailers) != 1 || c.Parent == "" {
		t.Errorf("commit %+v", c)
	}

	tree, err := c.Tree(".")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := fs.ReadFile(tree, "dir/b.yaml"); err != nil || string(b) != "b: 2\n" {
		t.Errorf("dir/b.yaml = %q, %v", b, err)
	}
	if _, err := r.Apply(Edit{Branch: "main", Files: map[string][]byte{"../x": nil}}); err == nil {
		t.Error("a path outside the tree was taken")
	}
}
