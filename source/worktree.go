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

// WorkTree is the files that a repository on this machine is checked out to.
// A fleet is never read from it; edits are made in it, by whoever asks for
// one.
type WorkTree struct {
	repo *Repo
	dir  string
}

// WorkTree is where the repository is checked out, nil for a bare one.
func (r *Repo) WorkTree() *WorkTree {
	dir, err := filepath.Abs(r.path)
	if err != nil || r.gitDir == dir || r.remote != nil {
		return nil
	}
	return &WorkTree{r, dir}
}

// Branch is what is checked out, "" when that is no branch.
func (w *WorkTree) Branch() string { return branchOf(filepath.Join(w.repo.gitDir, "HEAD")) }

func branchOf(head string) string {
	line, _ := oneLine(head)
	branch, _ := strings.CutPrefix(line, "ref: refs/heads/")
	if branch == line {
		return ""
	}
	return branch
}

// CheckedOut is a place where a branch is checked out, "" when there is none.
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

// Read reads a file of the work tree. Symlinks are not followed.
func (w *WorkTree) Read(name string) (b []byte, err error) {
	err = w.inside(func(root *os.Root) error {
		if err := regular(root, name); err != nil {
			return err
		}
		b, err = root.ReadFile(filepath.FromSlash(name))
		return err
	})
	return b, err
}

// Has is whether something is at a place of the work tree, of whatever kind.
func (w *WorkTree) Has(name string) (has bool, err error) {
	err = w.inside(func(root *os.Root) error {
		_, err := root.Lstat(filepath.FromSlash(name))
		has = err == nil
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return has, err
}

// Write replaces files of the work tree, each at once. What is not there is
// made, with its directories; nil removes a file.
func (w *WorkTree) Write(files map[string][]byte) error {
	return w.inside(func(root *os.Root) error {
		for name, content := range files {
			if err := rewrite(root, name, content); err != nil {
				return err
			}
		}
		return nil
	})
}

// inside keeps to the work tree, whatever symlinks lie in it.
func (w *WorkTree) inside(do func(*os.Root) error) error {
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
		return fmt.Errorf("%s is no regular file", name)
	}
	return nil
}

// rewrite puts a new file in the place of the old one, with its mode.
func rewrite(root *os.Root, name string, content []byte) error {
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
	mode := os.FileMode(0o666) // less what the user's mask takes
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

// UncommittedError says that a file is not what the commit has that is
// checked out.
type UncommittedError struct{ File, Why string }

func (e *UncommittedError) Error() string { return e.File + ": " + e.Why }

// busy are files that git keeps while something takes several commands.
var busy = map[string]string{
	"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "rebase-merge": "a rebase", "rebase-apply": "a rebase",
}

// Commit commits an edit on the branch that is checked out, and brings the
// work tree and the index along: what was clean is clean. The files must be
// as the branch has them, which of new ones is nowhere; whatever else is
// uncommitted stays as it is.
func (w *WorkTree) Commit(e Edit) (string, error) {
	r := w.repo
	e.Branch = w.Branch()
	if e.Branch == "" {
		return "", errors.New("no branch is checked out")
	}
	for name, what := range busy {
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
	if err := staged.doubt(written.ModTime()); err != nil {
		return "", err
	}
	head, err := r.Resolve("refs/heads/" + e.Branch)
	if err != nil {
		return "", err
	}
	if e.On != "" && e.On != head {
		return "", fmt.Errorf("branch %s: %w", e.Branch, ErrBranchMoved)
	}
	before, after, err := w.clean(staged, head, e.Files)
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

// clean checks that files are as a commit has them, in the index and in the
// work tree, and gives what stands there and what is to stand there. Line ends
// that git converts are not a difference.
func (w *WorkTree) clean(staged index, head string, files map[string][]byte) (before, after map[string][]byte, err error) {
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
			if err := w.vacant(staged, tree, name); err != nil {
				return nil, nil, err
			}
			before[name], after[name] = nil, content
			continue
		}
		if err != nil {
			return nil, nil, &UncommittedError{name, err.Error()}
		}
		if hash, ok := tree.BlobHash(name); !ok || hash != entry.hash.String() {
			return nil, nil, &UncommittedError{name, "it has changes that are staged and not committed"}
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
			return nil, nil, &UncommittedError{name, "it has changes that are not committed"}
		}
	}
	return before, after, nil
}

// vacant checks that a new file has its place to itself: in the commit, in the
// index and in the work tree.
func (w *WorkTree) vacant(staged index, tree *Tree, name string) error {
	if _, err := tree.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, &UncommittedError{name, "it has changes that are staged and not committed"})
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

// SameButLineEnds is whether a file of a work tree is a committed one with the
// line ends of another system, as git checks it out with core.autocrlf.
func SameButLineEnds(there, committed []byte) bool {
	return !bytes.Contains(committed, []byte("\r")) && bytes.Equal(there, bytes.ReplaceAll(committed, []byte("\n"), []byte("\r\n")))
}

// stage puts files that were committed into the index.
func (w *WorkTree) stage(staged index, files map[string][]byte) (index, error) {
	err := w.inside(func(root *os.Root) error {
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

// log notes a commit where git notes how its refs move, if it does.
func (r *Repo) log(old, hash string, e Edit) {
	subject, _, _ := strings.Cut(e.Message, "\n")
	line := fmt.Sprintf("%s %s %s <%s> %d %s\tcommit: %s\n", old, hash, e.Author, e.Mail, e.When.Unix(), e.When.Format("-0700"), subject)
	for _, path := range []string{filepath.Join(r.gitDir, "logs", "HEAD"), filepath.Join(r.common, "logs", "refs", "heads", filepath.FromSlash(e.Branch))} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			continue // it is not kept here, and nothing depends on it
		}
		_, _ = f.WriteString(line)
		_ = f.Close()
	}
}
