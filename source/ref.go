// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// lockTime is how long another process may write refs.
const lockTime = 5 * time.Second

// move sets a ref from one commit to another, under the lock that git itself
// takes, so that nobody's commit is lost. A zero from says that there is no
// such ref yet. A ref that is elsewhere is ErrBranchMoved. r.mu is held.
func (r *Repo) move(name plumbing.ReferenceName, from, to plumbing.Hash) error {
	if err := name.Validate(); err != nil || !name.IsSafe() {
		return fmt.Errorf("%q is no name of a ref", name)
	}
	file := filepath.Join(r.common, filepath.FromSlash(name.String()))
	lock, unlock, err := r.lock(file, to.String()+"\n")
	if err != nil {
		return err
	}
	defer unlock()
	now := plumbing.ZeroHash
	switch ref, err := r.refs.Reference(name); {
	case err == nil:
		now = ref.Hash()
	case !errors.Is(err, plumbing.ErrReferenceNotFound):
		return err
	}
	if now != from {
		return ErrBranchMoved
	}
	if now.IsZero() {
		if err := r.hasRoom(name); err != nil {
			return err
		}
	}
	return os.Rename(lock, file)
}

// lock makes git's lock of a ref; renamed, it is the ref. Git leaves the lock
// of a process that was killed to the user. Ours is a link to a file of our
// own, which is made while we hold a lock that ends with its process: who finds
// the two knows that their process is gone.
func (r *Repo) lock(file, content string) (lock string, unlock func(), err error) {
	ours, err := onlyOne(filepath.Join(r.common, "fairlead.lock"))
	if err != nil {
		return "", nil, err
	}
	lock = file + ".lock"
	own := filepath.Join(r.common, "fairlead-"+BlobHash([]byte(file)))
	letRefGo(own, lock)
	if err = writeNew(own, content); err == nil {
		err = linkAs(own, lock)
	}
	if err != nil {
		_ = os.Remove(own)
		ours()
		return "", nil, err
	}
	return lock, func() {
		letRefGo(own, lock) // after the rename the lock is not ours any more
		ours()
	}, nil
}

// letRefGo removes our file of a ref, and the lock if it is a link to that.
func letRefGo(own, lock string) {
	mine, err := os.Stat(own)
	if err != nil {
		return
	}
	if its, err := os.Stat(lock); err == nil && os.SameFile(mine, its) {
		_ = os.Remove(lock)
	}
	_ = os.Remove(own)
}

func writeNew(file, content string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// linkAs takes git's lock, and waits while git has it.
func linkAs(own, lock string) error {
	for end := time.Now().Add(lockTime); ; time.Sleep(10 * time.Millisecond) {
		if err := os.MkdirAll(filepath.Dir(lock), 0o777); err != nil {
			return err
		}
		err := os.Link(own, lock)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist): // git removes empty directories
		case errors.Is(err, fs.ErrExist) && time.Now().After(end):
			return fmt.Errorf("%s is there: git writes the branch, or was killed and the file is to be removed", lock)
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
}

// hasRoom refuses a name that git cannot keep beside those that there are: a
// branch is no directory of branches.
func (r *Repo) hasRoom(name plumbing.ReferenceName) error {
	for dir := path.Dir(name.String()); strings.HasPrefix(dir, "refs/heads/"); dir = path.Dir(dir) {
		if _, err := r.refs.Reference(plumbing.ReferenceName(dir)); err == nil {
			return fmt.Errorf("there is a branch %s, so there can be none below it", plumbing.ReferenceName(dir).Short())
		}
	}
	return nil
}
