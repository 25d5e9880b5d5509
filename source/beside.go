// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// Beside makes an empty repository at dir that reads the objects of a mirror as its own.
// What it fetches itself is kept at dir alone: for the mirror those objects do not exist.
// What was at dir is removed. One fetch may bring at most so many bytes.
func (r *Repo) Beside(dir string, most int64) (*Repo, error) {
	if r.remote.Load() == nil {
		return nil, fmt.Errorf("repository %s: it is no mirror of a remote", r.path)
	}
	objects, err := filepath.Abs(filepath.Join(r.common, "objects"))
	if err != nil {
		return nil, err
	}

	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	for name, content := range map[string]string{
		"HEAD":                    "ref: refs/heads/main\n",
		"config":                  "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
		"objects/info/alternates": objects + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}

	beside, err := Open(dir)
	if err != nil {
		return nil, err
	}
	beside.of, beside.most = r, most
	return beside, nil
}

// FetchRefs fetches refs of the mirror's remote, with the credentials that the mirror has
// now, and returns the commits of those that the remote has. Refs that were fetched before
// and are not named any more are dropped.
func (r *Repo) FetchRefs(ctx context.Context, names ...string) (map[string]string, error) {
	if r.of == nil {
		return nil, fmt.Errorf("repository %s: it is not beside a mirror", r.path)
	}
	remote := r.of.remote.Load()
	ctx, cancel := context.WithTimeout(ctx, maxFetch)
	defer cancel()

	found, err := r.fetchRefs(ctx, remote, names)
	if err != nil {
		return nil, remote.redacted(err)
	}
	commits := map[string]string{}
	for name, h := range found.refs {
		commits[name.String()] = h.String()
	}
	return commits, nil
}

func (r *Repo) fetchRefs(ctx context.Context, remote *remote, names []string) (mirrored, error) {
	want := mirrored{refs: map[plumbing.ReferenceName]plumbing.Hash{}}
	s, err := remote.dial(ctx)
	if err != nil {
		return want, err
	}
	defer s.Close()

	advertised, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		return want, err
	}
	for _, name := range names {
		ref := plumbing.ReferenceName(name)
		if ref.Validate() != nil || !ref.IsSafe() || ref.IsBranch() {
			return want, fmt.Errorf("%q is not a ref to fetch", name)
		}
		if h, ok := advertised.References[name]; ok {
			want.refs[ref] = h
		}
	}

	if wants := r.missing(want); len(wants) > 0 {
		have, err := r.of.mirrored()
		if err != nil {
			return want, err
		}
		if err := r.download(ctx, s, advertised, wants, have); err != nil {
			return want, err
		}
	}
	if missing := r.missing(want); len(missing) > 0 {
		return want, fmt.Errorf("the server did not send %s", missing[0])
	}
	return want, r.writeRefs(want)
}

// PointBranch has a branch of a repository beside a mirror point to a commit.
func (r *Repo) PointBranch(name, commit string) error {
	ref := plumbing.NewBranchReferenceName(name)
	if r.of == nil || ref.Validate() != nil || !ref.IsSafe() || !plumbing.IsHash(commit) {
		return fmt.Errorf("branch %q cannot point to %q", name, commit)
	}
	file := filepath.Join(r.common, filepath.FromSlash(ref.String()))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return replace(file, commit+"\n")
}

// Fetched is how many bytes a repository beside a mirror has fetched for itself.
func (r *Repo) Fetched() (size int64, err error) {
	err = filepath.WalkDir(filepath.Join(r.common, "objects"), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file
		}
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
