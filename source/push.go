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
)

// ErrBranchMoved is wrapped by an edit or Push if the branch has commits that
// the new one does not build on. Nothing is ever forced.
var ErrBranchMoved = errors.New("it has new commits (non-fast-forward)")

// Remote is the address of a mirror's remote; "" for a repository that was
// opened in place.
func (r *Repo) Remote() string {
	remote := r.remote.Load()
	if remote == nil {
		return ""
	}
	return remote.String()
}

// Push sends a commit to a branch of the remote: a mirror's own, otherwise
// origin. It returns the address that it pushed to.
func (r *Repo) Push(ctx context.Context, commit, branch string, auth Auth) (to string, err error) {
	name := plumbing.NewBranchReferenceName(branch)
	if err := name.Validate(); err != nil {
		return "", fmt.Errorf("branch %q: %w", branch, err)
	}

	h := plumbing.NewHash(commit)
	if mine := r.remote.Load(); mine != nil {
		return mine.String(), mine.redacted(r.push(ctx, mine, h, name))
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
		to, err = remote.String(), remote.redacted(r.push(ctx, remote, h, name))
	} else {
		to = from(r.path, strings.TrimPrefix(address, "file://"))
		err = r.pushLocal(to, h, name)
	}

	if err != nil {
		return to, err
	}

	return to, r.track(branch, h)
}

// track updates the remote-tracking branch of origin, as git push does.
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
	objects, err := r.missingObjects(commit, old, theirs)
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

// pushLocal adds a commit to a repository on this machine. No hook runs there.
func (r *Repo) pushLocal(dir string, commit plumbing.Hash, name plumbing.ReferenceName) error {
	other, err := Open(dir)
	if err != nil {
		return err
	}

	if at := other.CheckedOut(name.Short()); at != "" {
		return fmt.Errorf("branch %s is checked out at %s: push to another branch", name.Short(), at)
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
	objects, err := r.missingObjects(commit, old, theirs)
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

// missingObjects returns the objects of a commit that a remote lacks, given its
// refs. old is the commit of its branch, and must be an ancestor.
func (r *Repo) missingObjects(commit, old plumbing.Hash, theirs []plumbing.Hash) ([]plumbing.Hash, error) {
	if !old.IsZero() {
		if len(r.present(old)) == 0 {
			return nil, fmt.Errorf("%w; run git fetch first", ErrBranchMoved)
		}

		behind, err := r.isAncestor(old, commit)
		if err != nil {
			return nil, err
		}
		if !behind {
			return nil, ErrBranchMoved
		}
	}

	shared := r.commonCommits(theirs)
	unsent, err := r.reachable([]plumbing.Hash{commit}, shared)
	if err != nil {
		return nil, err
	}

	o := &objectWalk{repo: r, done: map[plumbing.Hash]bool{}}
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

// commonCommits returns the local commits that a remote is known to have: its
// refs, and what was fetched from it.
func (r *Repo) commonCommits(theirs []plumbing.Hash) []plumbing.Hash {
	r.mu.Lock()
	if refs, err := r.refs.IterReferences(); err == nil {
		_ = refs.ForEach(func(ref *plumbing.Reference) error {
			if ref.Type() == plumbing.HashReference && (r.remote.Load() != nil || strings.HasPrefix(ref.Name().String(), "refs/remotes/origin/")) {
				theirs = append(theirs, ref.Hash())
			}
			return nil
		})
	}

	r.mu.Unlock()
	var found []plumbing.Hash
	for _, h := range r.present(theirs...) {
		if c, err := r.commit(h); err == nil { // not a tag, not a tree
			found = append(found, c.hash)
		}
	}

	return found
}

// present returns which of the objects are in the repository, each once.
func (r *Repo) present(hashes ...plumbing.Hash) []plumbing.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()

	stores := r.fresh()
	var found []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, h := range hashes {
		if !seen[h] && slices.ContainsFunc(stores, func(s *store) bool { return s.HasEncodedObject(h) == nil }) {
			found = append(found, h)
		}
		seen[h] = true
	}

	return found
}

// objectWalk collects the objects of trees that older trees do not have.
type objectWalk struct {
	repo   *Repo
	done   map[plumbing.Hash]bool
	hashes []plumbing.Hash
}

func (o *objectWalk) tree(h plumbing.Hash, old []plumbing.Hash, depth int) error {
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
