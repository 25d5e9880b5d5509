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

// lockTime is how long to wait for another process that writes refs.
const lockTime = 5 * time.Second

// move updates a ref from one commit to another, under git's own lock, so that
// no commit is lost. A zero from means that the ref must not exist. If the ref
// has moved, the error is ErrBranchMoved. r.mu is held.
func (r *Repo) move(name plumbing.ReferenceName, from, to plumbing.Hash) error {
	if err := name.Validate(); err != nil || !name.IsSafe() {
		return fmt.Errorf("%q is not a valid ref name", name)
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
		if err := r.checkConflict(name); err != nil {
			return err
		}
	}

	return os.Rename(lock, file)
}

// lock takes git's lock of a ref: a file that becomes the ref when it is
// renamed. git leaves the lock of a killed process to the user. Ours is a hard
// link to a file of ours, created while holding a lock that ends with the
// process: if both files are there and that lock is free, their process is
// gone.
func (r *Repo) lock(file, content string) (lock string, unlock func(), err error) {
	ours, err := lockFile(filepath.Join(r.common, "fairlead.lock"))
	if err != nil {
		return "", nil, err
	}

	lock = file + ".lock"
	own := filepath.Join(r.common, "fairlead-"+BlobHash([]byte(file)))
	releaseRef(own, lock)

	if err = writeNew(own, content); err == nil {
		err = linkLock(own, lock)
	}

	if err != nil {
		_ = os.Remove(own)
		ours()
		return "", nil, err
	}

	return lock, func() {
		releaseRef(own, lock) // after the rename the lock is not ours any more
		ours()
	}, nil
}

// releaseRef removes our file of a ref, and the lock if it is a link to it.
func releaseRef(own, lock string) {
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

// linkLock takes git's lock, and waits while git holds it.
func linkLock(own, lock string) error {
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
			return fmt.Errorf("%s exists: another git process is updating the branch; if none is running, remove the file", lock)
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
}

// checkConflict refuses a name that conflicts with an existing branch: a branch
// cannot also be a directory of branches.
func (r *Repo) checkConflict(name plumbing.ReferenceName) error {
	for dir := path.Dir(name.String()); strings.HasPrefix(dir, "refs/heads/"); dir = path.Dir(dir) {
		if _, err := r.refs.Reference(plumbing.ReferenceName(dir)); err == nil {
			return fmt.Errorf("branch %s exists, so no branch can be created below it", plumbing.ReferenceName(dir).Short())
		}
	}
	return nil
}
