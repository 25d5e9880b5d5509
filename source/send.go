// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/memory"
)

const (
	// branchCacheSize limits the objects that are kept between two commits to a
	// server's branches. What is not kept is fetched again.
	branchCacheSize = 64 << 20
	// maxBranchPack limits what a server sends for one branch.
	maxBranchPack = 256 << 20
)

// loaded is the last commit of a server's branch with all its objects, in
// memory.
type loaded struct {
	commit plumbing.Hash
	size   int64

	mu    sync.Mutex
	store *memory.Storage
	fresh []plumbing.Hash // written, not sent yet
}

func (l *loaded) object(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, err := l.store.EncodedObject(plumbing.AnyObject, h)
	if err != nil {
		return plumbing.InvalidObject, nil, unavailable{fmt.Errorf("object %s: %w", h, err)}
	}
	b, err := content(o)
	return o.Type(), b, err
}

func (l *loaded) head() (*commit, error) {
	kind, b, err := l.object(l.commit)
	if err != nil {
		return nil, err
	}
	if kind != plumbing.CommitObject {
		return nil, fmt.Errorf("object %s: is a %s, not a commit", l.commit, kind)
	}
	return parseCommit(l.commit, b)
}

// recorder records the objects that are new.
type recorder struct {
	*memory.Storage
	l *loaded
}

func (w recorder) SetEncodedObject(o plumbing.EncodedObject) (plumbing.Hash, error) {
	if w.HasEncodedObject(o.Hash()) != nil {
		w.l.fresh = append(w.l.fresh, o.Hash())
		w.l.size += o.Size()
	}
	return w.Storage.SetEncodedObject(o)
}

// take removes what is cached of a branch and returns it.
func (b *Branches) take(branch string) *loaded {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.cached[branch]
	if l != nil {
		delete(b.cached, branch)
		b.size -= l.size
	}
	return l
}

// keep caches a branch for the next commit, and evicts others if necessary.
func (b *Branches) keep(branch string, l *loaded) {
	b.take(branch)
	if l.size > branchCacheSize {
		return
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	for other, o := range b.cached {
		if b.size+l.size <= branchCacheSize {
			break
		}
		delete(b.cached, other)
		b.size -= o.size
	}

	b.cached[branch] = l
	b.size += l.size
}

// load returns a commit of the server with its objects, from the cache or
// fetched.
func (b *Branches) load(ctx context.Context, branch, commit string) (*loaded, error) {
	l := b.take(branch)
	if l == nil || l.commit.String() != commit {
		var err error
		err = b.withSession(ctx, func(ctx context.Context, server *remote) error {
			l, err = fetchHead(ctx, server, plumbing.NewBranchReferenceName(branch))
			return err
		})
		if err != nil {
			return nil, b.redacted(err)
		}
	}

	b.keep(branch, l)
	if l.commit.String() != commit {
		return nil, fmt.Errorf("branch %s: %w", branch, ErrBranchMoved)
	}

	return l, nil
}

// fetchHead fetches the last commit of a branch without its history.
func fetchHead(ctx context.Context, server *remote, name plumbing.ReferenceName) (*loaded, error) {
	s, err := server.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()

	advertised, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return &loaded{}, nil
	}

	if err != nil {
		return nil, err
	}

	l := &loaded{commit: advertised.References[name.String()], store: memory.NewStorage()}
	if l.commit.IsZero() {
		return l, nil
	}

	req := packp.NewUploadPackRequestFromCapabilities(advertised.Capabilities)
	req.Wants = []plumbing.Hash{l.commit}

	for _, c := range []capability.Capability{capability.NoProgress, capability.Shallow} {
		if !advertised.Capabilities.Supports(c) {
			continue
		}
		if err := req.Capabilities.Set(c); err != nil {
			return nil, err
		}
	}

	if advertised.Capabilities.Supports(capability.Shallow) {
		req.Depth = packp.DepthCommits(1)
	}

	response, err := s.UploadPack(ctx, req)
	if err != nil {
		return nil, err
	}
	defer response.Close()
	return l, l.read(&packReader{ctx: ctx, from: demuxed(req, response), left: maxBranchPack, most: maxBranchPack})
}

// demuxed is the pack of a response, without the server's progress messages.
func demuxed(req *packp.UploadPackRequest, response io.Reader) io.Reader {
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, response)
	case req.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, response)
	}
	return response
}

func (l *loaded) read(pack io.Reader) error {
	p, err := packfile.NewParserWithStorage(packfile.NewScanner(pack), l.store)
	if err == nil {
		_, err = p.Parse()
	}
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}

	for _, o := range l.store.Objects {
		l.size += o.Size()
	}

	return nil
}

// send commits to a branch of the server.
func (b *Branches) send(ctx context.Context, name plumbing.ReferenceName, on plumbing.Hash, e Edit) (plumbing.Hash, error) {
	l := &loaded{store: memory.NewStorage()}
	if !on.IsZero() {
		var err error
		if l, err = b.load(ctx, name.Short(), on.String()); err != nil {
			return plumbing.ZeroHash, err
		}
	}

	b.take(name.Short())
	hash, err := l.commitOn(on, e)
	if err != nil {
		return hash, err
	}

	err = b.withSession(ctx, func(ctx context.Context, server *remote) error { return l.push(ctx, server, name, on, hash) })
	if err = b.confirm(ctx, name, on, hash, err); err != nil {
		return hash, err
	}

	l.commit, l.fresh = hash, nil
	b.keep(name.Short(), l)
	return hash, nil
}

func (l *loaded) commitOn(on plumbing.Hash, e Edit) (plumbing.Hash, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return (&writer{recorder{l.store, l}}).commitAfter(on, e)
}

// push sends the written objects.
func (l *loaded) push(ctx context.Context, server *remote, name plumbing.ReferenceName, on, hash plumbing.Hash) error {
	s, err := server.dialPush(ctx)
	if err != nil {
		return err
	}
	defer s.Close()

	advertised, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		return err
	}

	switch now := advertised.References[name.String()]; now {
	case hash:
		return nil // another writer made the same commit
	case on:
	default:
		return ErrBranchMoved
	}

	l.mu.Lock()
	var pack bytes.Buffer
	_, err = packfile.NewEncoder(&pack, l.store, false).Encode(l.fresh, 0)
	l.mu.Unlock()
	if err != nil {
		return err
	}

	req := packp.NewReferenceUpdateRequestFromCapabilities(advertised.Capabilities)
	req.Commands = []*packp.Command{{Name: name, Old: on, New: hash}}
	req.Packfile = io.NopCloser(&pack)
	return received(ctx, s, req, advertised)
}

// received sends a push and adds the server's messages to its error.
func received(ctx context.Context, s pushSession, req *packp.ReferenceUpdateRequest, advertised *packp.AdvRefs) error {
	said := &tail{}
	if advertised.Capabilities.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return err
		}
		req.Progress = said
	}

	report, err := s.ReceivePack(ctx, req)
	if err == nil {
		return nil
	}

	if text := said.String(); text != "" {
		err = fmt.Errorf("%w; the server says: %s", err, text)
	}
	if report != nil && report.UnpackStatus == "ok" {
		return &denied{err} // the server has the commit and does not accept it on this branch
	}

	return err
}

// confirm finds out what became of a push that failed. The answer may be lost,
// or the push may have been rejected because an earlier attempt succeeded.
func (b *Branches) confirm(ctx context.Context, name plumbing.ReferenceName, on, hash plumbing.Hash, failure error) error {
	if failure == nil || errors.Is(failure, ErrBranchMoved) {
		return failure
	}

	heads, err := b.heads(ctx)
	if err == nil && heads[name.String()] == hash {
		return nil
	}

	if err == nil && heads[name.String()] != on {
		return ErrBranchMoved
	}

	var refused *denied
	if errors.As(failure, &refused) {
		return &denied{b.remote.redacted(refused.error)}
	}

	return b.redacted(failure)
}
