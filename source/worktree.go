// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// WorkTree is the checked-out files of a local repository. A fleet is never
// read from it; edits are made in it, on request.
type WorkTree struct {
	repo *Repo
	dir  string
}

// WorkTree is where the repository is checked out; nil for a bare one.
func (r *Repo) WorkTree() *WorkTree {
	dir, err := filepath.Abs(r.path)
	if err != nil || r.gitDir == dir || r.remote.Load() != nil {
		return nil
	}
	return &WorkTree{r, dir}
}

// Branch is the checked-out branch; "" if HEAD is detached.
func (w *WorkTree) Branch() string { return w.repo.HeadBranch() }

func branchOf(head string) string {
	line, _ := oneLine(head)
	branch, _ := strings.CutPrefix(line, "ref: refs/heads/")
	if branch == line {
		return ""
	}
	return branch
}

// CheckedOut is a directory in which a branch is checked out; "" if there is
// none.
func (r *Repo) CheckedOut(branch string) string {
	heads, _ := filepath.Glob(filepath.Join(r.common, "worktrees", "*", "HEAD"))
	for _, head := range heads {
		if branchOf(head) == branch {
			link, _ := oneLine(filepath.Join(filepath.Dir(head), "gitdir"))
			return filepath.Dir(link)
		}
	}

	if filepath.Base(r.common) == ".git" && branchOf(filepath.Join(r.common, "HEAD")) == branch {
		return filepath.Dir(r.common)
	}

	return ""
}

// Read reads a file of the work tree. It does not follow symlinks.
func (w *WorkTree) Read(name string) (b []byte, err error) {
	err = w.withRoot(func(root *os.Root) error {
		if err := regular(root, name); err != nil {
			return err
		}
		b, err = root.ReadFile(filepath.FromSlash(name))
		return err
	})
	return b, err
}

// Has reports whether the path exists in the work tree, whatever it is.
func (w *WorkTree) Has(name string) (has bool, err error) {
	err = w.withRoot(func(root *os.Root) error {
		_, err := root.Lstat(filepath.FromSlash(name))
		has = err == nil
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return has, err
}

// Write writes files of the work tree, each atomically, and creates files and
// directories as needed; nil content removes a file.
func (w *WorkTree) Write(files map[string][]byte) error {
	return w.withRoot(func(root *os.Root) error {
		for name, content := range files {
			if err := replaceFile(root, name, content); err != nil {
				return err
			}
		}
		return nil
	})
}

// withRoot opens the work tree as a root that no symlink can leave.
func (w *WorkTree) withRoot(do func(*os.Root) error) error {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return fmt.Errorf("work tree %s: %w", w.dir, err)
	}
	defer root.Close()

	if err := do(root); err != nil {
		return fmt.Errorf("work tree %s: %w", w.dir, err)
	}

	return nil
}

func regular(root *os.Root, name string) error {
	info, err := root.Lstat(filepath.FromSlash(name))
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", name)
	}
	return nil
}

// replaceFile replaces a file atomically and keeps its mode.
func replaceFile(root *os.Root, name string, content []byte) error {
	name = filepath.FromSlash(name)
	info, err := root.Lstat(name)
	switch made := errors.Is(err, fs.ErrNotExist); {
	case made && content == nil:
		return nil
	case made:
		if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
	case err != nil:
		return err
	case content == nil:
		return root.Remove(name)
	}

	mode := os.FileMode(0o666) // less the user's umask
	if info != nil {
		mode = info.Mode().Perm()
	}

	temp := name + ".fairlead-edit"
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}

	_, err = f.Write(content)
	if info != nil {
		err = errors.Join(err, f.Chmod(mode))
	}

	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}

	return nil
}

// UncommittedError means that a file differs from the checked-out commit.
type UncommittedError struct{ File, Why string }

// Error reads "web.yaml: it has staged changes".
func (e *UncommittedError) Error() string { return e.File + ": " + e.Why }

// inProgress maps the files that git keeps during an operation of several
// commands to its name.
var inProgress = map[string]string{
	"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "rebase-merge": "a rebase", "rebase-apply": "a rebase",
}

// Commit commits an edit on the checked-out branch, and updates the work tree
// and the index: what was clean stays clean. The edited files must be as in the
// branch, and new ones must not exist; other uncommitted changes are not
// touched.
func (w *WorkTree) Commit(e Edit) (string, error) {
	r := w.repo
	e.Branch = w.Branch()
	if e.Branch == "" {
		return "", errors.New("no branch is checked out")
	}

	for name, what := range inProgress {
		if _, err := os.Lstat(filepath.Join(r.gitDir, name)); err == nil {
			return "", fmt.Errorf("%s is in progress: finish or abort it first", what)
		}
	}

	path := filepath.Join(r.gitDir, "index")
	lock, err := lockIndex(path)
	if err != nil {
		return "", err
	}
	defer lock.release()

	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}

	written, err := os.Stat(path)
	if err != nil {
		return "", err
	}

	staged := index{b}
	if err := staged.smudge(written.ModTime()); err != nil {
		return "", err
	}

	head, err := r.Resolve("refs/heads/" + e.Branch)
	if err != nil {
		return "", err
	}

	if e.On != "" && e.On != head {
		return "", fmt.Errorf("branch %s: %w", e.Branch, ErrBranchMoved)
	}

	before, after, err := w.checkClean(staged, head, e.Files)
	if err != nil {
		return "", err
	}

	if err := w.Write(after); err != nil {
		return "", err
	}

	hash, err := r.Draft(head, e)
	if err == nil {
		err = r.advance(e.Branch, head, hash)
	}
	if err != nil {
		return "", errors.Join(err, w.Write(before))
	}

	r.log(head, hash, e)
	if staged, err = w.stage(staged, e.Files); err != nil {
		return hash, err
	}
	if b, err = staged.bytes(); err != nil {
		return hash, err
	}

	return hash, lock.write(b)
}

// checkClean checks that the index and the work tree have the files as in the
// commit, and returns their current and their new content. Line endings that
// git converts do not count.
func (w *WorkTree) checkClean(staged index, head string, files map[string][]byte) (before, after map[string][]byte, err error) {
	c, err := w.repo.Commit(head)
	if err != nil {
		return nil, nil, err
	}

	tree, err := c.Tree(".")
	if err != nil {
		return nil, nil, err
	}

	before, after = map[string][]byte{}, map[string][]byte{}
	for name, content := range files {
		entry, err := staged.find(name)
		if errors.Is(err, errIndex) {
			return nil, nil, err
		}

		if errors.Is(err, errUntracked) {
			if err := w.checkVacant(staged, tree, name); err != nil {
				return nil, nil, err
			}
			before[name], after[name] = nil, content
			continue
		}

		if err != nil {
			return nil, nil, &UncommittedError{name, err.Error()}
		}
		if hash, ok := tree.BlobHash(name); !ok || hash != entry.hash.String() {
			return nil, nil, &UncommittedError{name, "it has staged changes"}
		}

		committed, err := tree.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}

		there, err := w.Read(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, &UncommittedError{name, "it is deleted in the work tree"}
		case err != nil:
			return nil, nil, err
		case bytes.Equal(there, committed):
			before[name], after[name] = there, content
		case SameButLineEnds(there, committed):
			before[name], after[name] = there, bytes.ReplaceAll(content, []byte("\n"), []byte("\r\n"))
		default:
			return nil, nil, &UncommittedError{name, "it has uncommitted changes"}
		}
	}

	return before, after, nil
}

// checkVacant checks that the path of a new file is free: in the commit, the
// index and the work tree.
func (w *WorkTree) checkVacant(staged index, tree *Tree, name string) error {
	if _, err := tree.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, &UncommittedError{name, "it has staged changes"})
	}

	has, err := w.Has(name)
	if err != nil {
		return err
	}

	if has {
		return &UncommittedError{name, errUntracked.Error()}
	}
	if _, err := staged.add(name); err != nil {
		return &UncommittedError{name, err.Error()}
	}

	return nil
}

// SameButLineEnds reports whether a file of a work tree equals a committed one
// except for line endings, as git checks it out with core.autocrlf.
func SameButLineEnds(there, committed []byte) bool {
	return !bytes.Contains(committed, []byte("\r")) && bytes.Equal(there, bytes.ReplaceAll(committed, []byte("\n"), []byte("\r\n")))
}

// stage adds committed files to the index.
func (w *WorkTree) stage(staged index, files map[string][]byte) (index, error) {
	err := w.withRoot(func(root *os.Root) error {
		for name, content := range files {
			entry, err := staged.find(name)
			if errors.Is(err, errUntracked) {
				if staged, err = staged.add(name); err != nil {
					return err
				}
				entry, err = staged.find(name)
			}

			if err != nil {
				return err
			}

			info, err := root.Lstat(filepath.FromSlash(name))
			if err != nil {
				return err
			}

			staged.set(entry, plumbing.ComputeHash(plumbing.BlobObject, content), info)
		}

		return nil
	})
	return staged, err
}

// log adds a commit to the reflog, if git keeps one.
func (r *Repo) log(old, hash string, e Edit) {
	subject, _, _ := strings.Cut(e.Message, "\n")
	line := fmt.Sprintf("%s %s %s <%s> %d %s\tcommit: %s\n", old, hash, e.Author, e.Mail, e.When.Unix(), e.When.Format("-0700"), subject)
	for _, path := range []string{filepath.Join(r.gitDir, "logs", "HEAD"), filepath.Join(r.common, "logs", "refs", "heads", filepath.FromSlash(e.Branch))} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			continue // there is no reflog, and nothing depends on it
		}
		_, _ = f.WriteString(line)
		_ = f.Close()
	}
}
