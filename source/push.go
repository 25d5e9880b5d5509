// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// ErrBranchMoved is what an edit or Push wraps when the branch has commits that
// the new one does not build on. Nothing is ever forced.
var ErrBranchMoved = errors.New("it has commits that this one does not build on")

// Remote is the address that a mirror is of; "" for a repository on this
// machine that was opened in place.
func (r *Repo) Remote() string {
	if r.remote == nil {
		return ""
	}
	return r.remote.String()
}

// Push sends a commit to a branch of the remote: of a mirror the one that it
// is of, else the one that is called origin. It gives the address it went to.
func (r *Repo) Push(ctx context.Context, commit, branch string, auth Auth) (to string, err error) {
	name := plumbing.NewBranchReferenceName(branch)
	if err := name.Validate(); err != nil {
		return "", fmt.Errorf("branch %q: %w", branch, err)
	}
	h := plumbing.NewHash(commit)
	if r.remote != nil {
		return r.remote.String(), r.remote.fault(r.push(ctx, r.remote, h, name))
	}
	address, err := r.origin()
	if err != nil {
		return "", err
	}
	if address == "" {
		return "", fmt.Errorf("repository %s has no remote origin to push to", r.path)
	}
	remote, isRemote, err := parseRemote(strings.TrimPrefix(address, "file://"), auth)
	if err != nil {
		return "", err
	}
	if isRemote {
		to, err = remote.String(), remote.fault(r.push(ctx, remote, h, name))
	} else {
		to = from(r.path, strings.TrimPrefix(address, "file://"))
		err = r.hand(to, h, name)
	}
	if err != nil {
		return to, err
	}
	return to, r.track(branch, h)
}

// track notes where a branch of origin is now, as a push of git's does.
func (r *Repo) track(branch string, h plumbing.Hash) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refs.SetReference(plumbing.NewHashReference(plumbing.NewRemoteReferenceName("origin", branch), h))
}

func (r *Repo) push(ctx context.Context, remote *remote, commit plumbing.Hash, name plumbing.ReferenceName) error {
	s, err := remote.dialPush(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	advertised, err := s.AdvertisedReferencesContext(ctx)
	switch {
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		advertised = packp.NewAdvRefs()
	case err != nil:
		return err
	}
	theirs := make([]plumbing.Hash, 0, len(advertised.References))
	for _, h := range advertised.References {
		theirs = append(theirs, h)
	}
	old := advertised.References[name.String()]
	objects, err := r.owed(commit, old, theirs)
	if err != nil {
		return fmt.Errorf("branch %s: %w", name.Short(), err)
	}
	var pack bytes.Buffer
	if _, err := packfile.NewEncoder(&pack, r.writer().store, false).Encode(objects, 0); err != nil {
		return err
	}
	req := packp.NewReferenceUpdateRequestFromCapabilities(advertised.Capabilities)
	req.Commands = []*packp.Command{{Name: name, Old: old, New: commit}}
	req.Packfile = io.NopCloser(&pack)
	return received(ctx, s, req, advertised)
}

// hand gives a commit to a repository on this machine. Nothing runs there.
func (r *Repo) hand(dir string, commit plumbing.Hash, name plumbing.ReferenceName) error {
	other, err := Open(dir)
	if err != nil {
		return err
	}
	if at := other.CheckedOut(name.Short()); at != "" {
		return fmt.Errorf("branch %s is checked out at %s: push to another one", name.Short(), at)
	}
	there, err := other.mirrored()
	if err != nil {
		return err
	}
	theirs := make([]plumbing.Hash, 0, len(there.refs))
	for _, h := range there.refs {
		theirs = append(theirs, h)
	}
	old := there.refs[name]
	objects, err := r.owed(commit, old, theirs)
	if err != nil {
		return fmt.Errorf("branch %s of %s: %w", name.Short(), filepath.Clean(dir), err)
	}
	w := other.writer()
	for _, h := range objects {
		kind, b, err := r.object(h)
		if err != nil {
			return err
		}
		if _, err := w.object(kind, b); err != nil {
			return err
		}
	}
	other.mu.Lock()
	defer other.mu.Unlock()
	if err := other.move(name, old, commit); err != nil {
		return fmt.Errorf("branch %s of %s: %w", name.Short(), filepath.Clean(dir), err)
	}
	return nil
}

// owed is the objects that a remote lacks for a commit, given what its refs
// are; old is its branch, and must be an ancestor.
func (r *Repo) owed(commit, old plumbing.Hash, theirs []plumbing.Hash) ([]plumbing.Hash, error) {
	if !old.IsZero() {
		if len(r.here(old)) == 0 {
			return nil, fmt.Errorf("%w, and they are not here: fetch first", ErrBranchMoved)
		}
		ahead, err := r.reachable([]plumbing.Hash{old}, []plumbing.Hash{commit}, commits{})
		if err != nil {
			return nil, err
		}
		if len(ahead) > 0 {
			return nil, ErrBranchMoved
		}
	}
	shared := r.shared(theirs)
	unsent, err := r.reachable([]plumbing.Hash{commit}, shared, commits{})
	if err != nil {
		return nil, err
	}
	o := &owing{repo: r, done: map[plumbing.Hash]bool{}}
	for _, c := range unsent {
		var trees []plumbing.Hash
		for _, p := range c.parents {
			parent, err := r.commit(p)
			if err != nil {
				return nil, err
			}
			trees = append(trees, parent.tree)
		}
		o.hashes = append(o.hashes, c.hash)
		if err := o.tree(c.tree, trees, 0); err != nil {
			return nil, err
		}
	}
	return o.hashes, nil
}

// shared is the commits that a remote is known to have and that are here: its
// refs, and what was fetched from it.
func (r *Repo) shared(theirs []plumbing.Hash) []plumbing.Hash {
	r.mu.Lock()
	if refs, err := r.refs.IterReferences(); err == nil {
		_ = refs.ForEach(func(ref *plumbing.Reference) error {
			if ref.Type() == plumbing.HashReference && (r.remote != nil || strings.HasPrefix(ref.Name().String(), "refs/remotes/origin/")) {
				theirs = append(theirs, ref.Hash())
			}
			return nil
		})
	}
	r.mu.Unlock()
	var found []plumbing.Hash
	for _, h := range r.here(theirs...) {
		if c, err := r.commit(h); err == nil { // no tag, no tree
			found = append(found, c.hash)
		}
	}
	return found
}

// here is which of the objects are in the repository, each once.
func (r *Repo) here(hashes ...plumbing.Hash) []plumbing.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	stores := r.fresh()
	var found []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, h := range hashes {
		if !seen[h] && slices.ContainsFunc(stores, func(s *filesystem.ObjectStorage) bool { return s.HasEncodedObject(h) == nil }) {
			found = append(found, h)
		}
		seen[h] = true
	}
	return found
}

// owing collects the objects of trees that older trees do not have.
type owing struct {
	repo   *Repo
	done   map[plumbing.Hash]bool
	hashes []plumbing.Hash
}

func (o *owing) tree(h plumbing.Hash, old []plumbing.Hash, depth int) error {
	if o.done[h] || slices.Contains(old, h) {
		return nil
	}
	if depth > maxDepth {
		return fmt.Errorf("more than %d directories deep", maxDepth)
	}
	o.done[h] = true
	o.hashes = append(o.hashes, h)
	entries, err := o.repo.entries(h)
	if err != nil {
		return err
	}
	var olds [][]entry
	for _, t := range old {
		list, err := o.repo.entries(t)
		if err != nil {
			return err
		}
		olds = append(olds, list)
	}
	for _, e := range entries {
		var was []plumbing.Hash
		for _, list := range olds {
			if same := lookup(list, e.name); same != nil && same.mode == e.mode {
				was = append(was, same.hash)
			}
		}
		switch {
		case o.done[e.hash] || slices.Contains(was, e.hash) || e.mode == modeSubmodule:
		case e.isDir():
			if err := o.tree(e.hash, was, depth+1); err != nil {
				return err
			}
		default:
			o.done[e.hash] = true
			o.hashes = append(o.hashes, e.hash)
		}
	}
	return nil
}
