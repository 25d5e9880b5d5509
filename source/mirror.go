// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Clone mirrors url at dir, bare, with all branches and tags. If dir already
// has the mirror, it is opened and fetched. A mirror that is damaged, or of
// another url, is cloned again next to it and replaced when the clone is
// complete.
//
// If there is a mirror and only the fetch fails, Clone returns both the Repo
// and the error, so that commands that only read still work. A url that is a
// local path is opened in place, as Open does.
func Clone(ctx context.Context, dir, url string, auth Auth) (*Repo, error) {
	remote, isRemote, err := parseRemote(url, auth)
	if err != nil {
		return nil, err
	}

	if !isRemote {
		return Open(url)
	}

	dir = filepath.Clean(dir)
	if err := checkMirrorDir(dir); err != nil {
		return nil, err
	}

	if r, err := openMirror(dir, remote); err == nil {
		return r, r.Fetch(ctx)
	}

	return reclone(ctx, dir, remote)
}

// marker is a file in a mirror with the address of its remote. A directory
// without it is never replaced.
const marker = "fairlead-mirror"

func checkMirrorDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}

	if err != nil {
		return fmt.Errorf("mirror %s: %w", dir, err)
	}
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == marker }) {
		return fmt.Errorf("mirror %s: the directory is not empty and is not a mirror", dir)
	}

	return nil
}

// openMirror opens the mirror of an earlier Clone, if it is complete and of the
// same remote.
func openMirror(dir string, remote *remote) (*Repo, error) {
	of, err := oneLine(filepath.Join(dir, marker))
	if err != nil {
		return nil, err
	}

	if of != remote.String() {
		return nil, fmt.Errorf("mirror %s: is a mirror of %s", dir, of)
	}

	r, err := Open(dir)
	if err != nil {
		return nil, err
	}

	r.remote.Store(remote)
	have, err := r.mirrored()
	if err != nil {
		return nil, err
	}

	if missing := r.missing(have); len(missing) > 0 {
		return nil, fmt.Errorf("mirror %s: object %s is missing", dir, missing[0])
	}
	if _, err := r.Resolve("HEAD"); err != nil {
		return nil, fmt.Errorf("mirror %s: %w", dir, err)
	}

	return r, nil
}

// reclone fetches into a directory next to dir and swaps the two.
func reclone(ctx context.Context, dir string, remote *remote) (*Repo, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("mirror %s: %w", dir, err)
	}

	temp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".new-*")
	if err != nil {
		return nil, fmt.Errorf("mirror %s: %w", dir, err)
	}
	defer os.RemoveAll(temp)

	if err := initialise(temp, remote); err != nil {
		return nil, fmt.Errorf("mirror %s: %w", dir, err)
	}

	fresh, err := Open(temp)
	if err != nil {
		return nil, err
	}

	fresh.remote.Store(remote)
	if err := fresh.Fetch(ctx); err != nil {
		return nil, err
	}
	if err := replaceDir(dir, temp); err != nil {
		return nil, fmt.Errorf("mirror %s: %w", dir, err)
	}

	return openMirror(dir, remote)
}

func initialise(dir string, remote *remote) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}

	for name, content := range map[string]string{
		"HEAD":   "ref: refs/heads/main\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
		marker:   remote.String() + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}

	return nil
}

// replaceDir moves temp to dir. The old directory is renamed first and removed
// last, so that a crash leaves one of the two.
func replaceDir(dir, temp string) error {
	old := temp + ".old"
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}

// mirrored is the part of a server's refs that a mirror stores.
type mirrored struct {
	head plumbing.ReferenceName // the branch that HEAD points to
	refs map[plumbing.ReferenceName]plumbing.Hash
}

func (m mirrored) equal(o mirrored) bool {
	if m.head != o.head || len(m.refs) != len(o.refs) {
		return false
	}

	for name, h := range m.refs {
		if o.refs[name] != h {
			return false
		}
	}

	return true
}

// Fetch updates a mirror: new objects first, then all refs at once. If the
// server has nothing new, it only lists the refs. It does nothing for a
// repository that was opened in place.
func (r *Repo) Fetch(ctx context.Context) error {
	remote := r.remote.Load()
	if remote == nil {
		return nil
	}
	if r.damaged.Load() {
		return r.repair(ctx)
	}

	ctx, cancel := context.WithTimeout(ctx, maxFetch)
	defer cancel()
	return remote.redacted(r.fetch(ctx, remote))
}

// SetAuth replaces the credentials of a mirror, from the next session on. It does nothing
// for a repository that was opened in place.
func (r *Repo) SetAuth(auth Auth) {
	if remote := r.remote.Load(); remote != nil {
		r.remote.Store(remote.with(auth))
	}
}

// FetchRef fetches the ref that a revision names if a mirror does not keep it, such as
// refs/pull/7/merge, so that Resolve finds it. It does nothing for any other revision,
// and for a repository that was opened in place.
func (r *Repo) FetchRef(ctx context.Context, rev string) error {
	name, _, _ := splitRevision(rev)
	ref := plumbing.ReferenceName(name)
	remote := r.remote.Load()
	if remote == nil || !strings.HasPrefix(name, "refs/") || ref.IsBranch() || ref.IsTag() {
		return nil
	}
	if ref.Validate() != nil || !ref.IsSafe() {
		return fmt.Errorf("revision %q: %w: it is not a valid ref name", rev, ErrUnknownRevision)
	}

	ctx, cancel := context.WithTimeout(ctx, maxFetch)
	defer cancel()
	return remote.redacted(r.fetchRef(ctx, remote, ref))
}

func (r *Repo) fetchRef(ctx context.Context, remote *remote, name plumbing.ReferenceName) error {
	s, err := remote.dial(ctx)
	if err != nil {
		return err
	}
	defer s.Close()

	advertised, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		return err
	}
	at, ok := advertised.References[name.String()]
	if !ok {
		return fmt.Errorf("revision %q: %w: the server has no such ref", name, ErrUnknownRevision)
	}

	have, err := r.mirrored()
	if err != nil {
		return err
	}
	want := mirrored{refs: map[plumbing.ReferenceName]plumbing.Hash{name: at}}
	if wants := r.missing(want); len(wants) > 0 {
		if err := r.download(ctx, s, advertised, wants, have); err != nil {
			return err
		}
	}

	// A loose ref: the next fetch replaces the packed ones.
	file := filepath.Join(r.common, filepath.FromSlash(name.String()))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return replace(file, at.String()+"\n")
}

// repair clones a mirror again in which an object is missing.
func (r *Repo) repair(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, maxFetch)
	defer cancel()
	if _, err := reclone(ctx, r.path, r.remote.Load()); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects = cache.NewObjectLRU(cacheSize)
	r.damaged.Store(false)
	return r.reopen()
}

func (r *Repo) fetch(ctx context.Context, remote *remote) error {
	s, err := remote.dial(ctx)
	if err != nil {
		return err
	}
	defer s.Close()

	advertised, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		return err
	}

	want := mirrorOf(advertised)
	if len(want.refs) == 0 {
		return transport.ErrEmptyRemoteRepository
	}

	have, err := r.mirrored()
	if err != nil {
		return err
	}

	if want.equal(have) {
		return nil
	}

	if wants := r.missing(want); len(wants) > 0 {
		if err := r.download(ctx, s, advertised, wants, have); err != nil {
			return err
		}
	}

	if missing := r.missing(want); len(missing) > 0 {
		return fmt.Errorf("the server did not send %s", missing[0])
	}

	return r.writeRefs(want)
}

// mirrorOf selects the branches and tags of a server's refs. Invalid ref names
// are skipped: they can be neither stored nor requested.
func mirrorOf(advertised *packp.AdvRefs) mirrored {
	m := mirrored{refs: map[plumbing.ReferenceName]plumbing.Hash{}}
	for name, h := range advertised.References {
		ref := plumbing.ReferenceName(name)
		if (ref.IsBranch() || ref.IsTag()) && ref.Validate() == nil && ref.IsSafe() {
			m.refs[ref] = h
		}
	}

	for _, pair := range advertised.Capabilities.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(pair, "HEAD:"); ok {
			m.head = plumbing.ReferenceName(target)
		}
	}

	if _, ok := m.refs[m.head]; ok || advertised.Head == nil {
		return m
	}

	// An old server, or a detached HEAD: take a branch at that commit.
	for _, name := range []plumbing.ReferenceName{"refs/heads/main", "refs/heads/master"} {
		if m.refs[name] == *advertised.Head {
			m.head = name
			return m
		}
	}

	m.head = ""
	for name, h := range m.refs {
		if h == *advertised.Head && name.IsBranch() && (m.head == "" || name < m.head) {
			m.head = name
		}
	}

	return m
}

// mirrored reads the refs that the last fetch wrote.
func (r *Repo) mirrored() (mirrored, error) {
	m := mirrored{refs: map[plumbing.ReferenceName]plumbing.Hash{}}
	r.mu.Lock()
	defer r.mu.Unlock()

	if head, err := r.refs.Reference(plumbing.HEAD); err == nil {
		m.head = head.Target()
	}

	refs, err := r.refs.IterReferences()
	if err != nil {
		return m, fmt.Errorf("refs: %w", err)
	}

	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() == plumbing.HashReference && (ref.Name().IsBranch() || ref.Name().IsTag()) {
			m.refs[ref.Name()] = ref.Hash()
		}
		return nil
	})
	return m, err
}

// Has reports whether a commit is in the repository. One that is not says nothing
// about the repository: nobody may need it.
func (r *Repo) Has(commit string) bool {
	h := plumbing.NewHash(commit)
	return len(r.missing(mirrored{refs: map[plumbing.ReferenceName]plumbing.Hash{"": h}})) == 0
}

// missing returns which of the wanted objects do not exist yet.
func (r *Repo) missing(want mirrored) []plumbing.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()

	stores := r.fresh()
	missing := map[plumbing.Hash]bool{}
	for _, h := range want.refs {
		missing[h] = true
		for _, s := range stores {
			if s.HasEncodedObject(h) == nil {
				delete(missing, h)
				break
			}
		}
	}

	hashes := make([]plumbing.Hash, 0, len(missing))
	for h := range missing {
		hashes = append(hashes, h)
	}

	plumbing.HashesSort(hashes)
	return hashes
}

// writeRefs replaces all refs in one rename. A mirror has packed refs only.
func (r *Repo) writeRefs(m mirrored) error {
	if m.head != "" {
		if err := replace(filepath.Join(r.gitDir, "HEAD"), "ref: "+m.head.String()+"\n"); err != nil {
			return err
		}
	}

	names := make([]plumbing.ReferenceName, 0, len(m.refs))
	for name := range m.refs {
		names = append(names, name)
	}

	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%s %s\n", m.refs[name], name)
	}

	return replace(filepath.Join(r.common, "packed-refs"), b.String())
}

// replace writes a file of a mirror, all of it or nothing. It does not wait for the
// disk, which takes longer than the fetch: the packs are not waited for either, and a
// mirror that lost something with its machine is found damaged and cloned again.
func replace(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*")
	if err != nil {
		return err
	}

	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}

	return nil
}
