// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Branches is a repository whose branches are written here and read by others:
// one on this machine, in place, or a remote one over the network. Nothing of a
// remote one is stored on disk, since what is published may contain Secrets. It
// is safe for concurrent use.
type Branches struct {
	repo    *Repo   // nil for a remote one
	remote  *remote // nil for a local one
	address string
	auth    func() (Auth, error) // nil: the credentials of remote
	slots   chan struct{}

	listing sync.Mutex // held while listing the server's refs

	mu     sync.Mutex
	next   *question // not sent yet
	cached map[string]*loaded
	size   int64 // bytes of what is cached
}

// ErrDenied is wrapped by the error for a request that a server rejects: the
// credentials, the repository or the commit. Retrying does not help.
var ErrDenied = errors.New("refused")

const (
	// maxSessions limits the concurrent sessions with one server.
	maxSessions = 8
	// sessionTimeout limits the duration of a session.
	sessionTimeout = 5 * time.Minute
)

// OpenBranches opens file://, https://, ssh:// and git@host:path. A local
// repository must exist; a server is not contacted yet.
func OpenBranches(address string, auth Auth) (*Branches, error) {
	b := &Branches{address: address, slots: make(chan struct{}, maxSessions), cached: map[string]*loaded{}}
	if strings.HasPrefix(address, "file:") {
		u, err := url.Parse(address)
		if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("url %s: use file:///path/to/repository", Redact(address))
		}
		b.repo, err = Open(u.Path)
		return b, err
	}

	remote, isRemote, err := parseRemote(address, auth)
	if err != nil {
		return nil, err
	}

	if !isRemote {
		return nil, fmt.Errorf("url %s: not a URL; use file:///path/to/repository", Redact(address))
	}

	b.remote = remote
	return b, nil
}

// Renew makes every session read the credentials again, so that they can be
// rotated.
func (b *Branches) Renew(auth func() (Auth, error)) { b.auth = auth }

// server is the remote with its current credentials.
func (b *Branches) server() (*remote, error) {
	if b.auth == nil {
		return b.remote, nil
	}

	auth, err := b.auth()
	if err != nil {
		return nil, err
	}

	return b.remote.with(auth), nil
}

// String is the address, without secrets.
func (b *Branches) String() string {
	if b.remote != nil {
		return b.remote.String()
	}
	return "file://" + b.repo.path
}

// Head is the last commit of a branch; "" if there is no such branch.
func (b *Branches) Head(ctx context.Context, branch string) (string, error) {
	name := plumbing.NewBranchReferenceName(branch)
	if err := name.Validate(); err != nil {
		return "", &denied{fmt.Errorf("branch %q: %w", branch, err)}
	}

	if b.remote == nil {
		return b.repo.head(name)
	}

	heads, err := b.heads(ctx)
	if err != nil {
		return "", b.redacted(err)
	}

	if h := heads[name.String()]; !h.IsZero() {
		return h.String(), nil
	}

	return "", nil
}

// head is the hash that a ref of a local repository points to.
func (r *Repo) head(name plumbing.ReferenceName) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	ref, err := r.refs.Reference(name)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", nil
	}

	if err != nil {
		return "", fmt.Errorf("repository %s: %s: %w", r.path, name, err)
	}

	return ref.Hash().String(), nil
}

// question is one listing of the server's refs, shared by everyone who asked
// before it was sent.
type question struct {
	done  chan struct{}
	heads map[string]plumbing.Hash
	err   error
}

// heads lists the server's refs. However many callers ask at the same time, the
// server is asked at most twice.
func (b *Branches) heads(ctx context.Context) (map[string]plumbing.Hash, error) {
	b.mu.Lock()
	q := b.next
	if q == nil {
		q = &question{done: make(chan struct{})}
		b.next = q
		go b.put(context.WithoutCancel(ctx), q)
	}

	b.mu.Unlock()
	select {
	case <-q.done:
		return q.heads, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *Branches) put(ctx context.Context, q *question) {
	defer close(q.done)

	b.listing.Lock()
	defer b.listing.Unlock()

	b.mu.Lock()
	b.next = nil // later callers may know of something newer
	b.mu.Unlock()
	q.err = b.withSession(ctx, func(ctx context.Context, server *remote) error {
		s, err := server.dial(ctx)
		if err != nil {
			return err
		}
		defer s.Close()

		advertised, err := s.AdvertisedReferencesContext(ctx)
		if errors.Is(err, transport.ErrEmptyRemoteRepository) {
			return nil
		}

		if err == nil {
			q.heads = advertised.References
		}

		return err
	})
}

// withSession waits for a free session, and limits its duration.
func (b *Branches) withSession(ctx context.Context, talk func(context.Context, *remote) error) error {
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.slots }()

	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()

	server, err := b.server()
	if err != nil {
		return err
	}

	return talk(ctx, server)
}

// redacted is an error of the server without secrets.
func (b *Branches) redacted(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed),
		errors.Is(err, transport.ErrRepositoryNotFound):
		return &denied{b.remote.redacted(err)}
	}
	return b.remote.redacted(err)
}

// denied is an error that matches ErrDenied and keeps its own text.
type denied struct{ error }

func (d *denied) Unwrap() error      { return d.error }
func (*denied) Is(target error) bool { return target == ErrDenied }

// Tree is the files of a commit that is the head of a branch. The error is
// ErrBranchMoved if the branch has moved and the commit is no longer available.
func (b *Branches) Tree(ctx context.Context, branch, commit string) (*Tree, error) {
	if b.remote == nil {
		c, err := b.repo.Commit(commit)
		if err != nil {
			return nil, err
		}
		return c.Tree(".")
	}

	l, err := b.load(ctx, branch, commit)
	if err != nil {
		return nil, err
	}

	c, err := l.head()
	if err != nil {
		return nil, err
	}

	return newTree(l, c.tree), nil
}

// Commit commits an edit on top of the head of a branch, and returns the new
// head. With an empty head it creates the branch. If the branch has moved, the
// error is ErrBranchMoved and nothing changes; it never forces a push. A commit
// is never older than its parent.
//
// The same edit on the same head gives the same commit, so it is harmless if
// two writers make it, or if an answer is lost.
func (b *Branches) Commit(ctx context.Context, head string, e Edit) (string, error) {
	name := plumbing.NewBranchReferenceName(e.Branch)
	if err := name.Validate(); err != nil {
		return "", &denied{fmt.Errorf("branch %q: %w", e.Branch, err)}
	}

	on := plumbing.ZeroHash
	if head != "" {
		on = plumbing.NewHash(head)
	}

	var hash plumbing.Hash
	var err error
	if b.remote == nil {
		hash, err = b.repo.put(name, on, e)
	} else {
		hash, err = b.send(ctx, name, on, e)
	}

	if err != nil {
		return "", fmt.Errorf("branch %s: %w", e.Branch, err)
	}

	return hash.String(), nil
}

// put commits to a branch of a local repository.
func (r *Repo) put(name plumbing.ReferenceName, on plumbing.Hash, e Edit) (plumbing.Hash, error) {
	if at := r.CheckedOut(name.Short()); at != "" {
		return plumbing.ZeroHash, &denied{fmt.Errorf("it is checked out at %s", at)}
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	hash, err := r.writer().commitAfter(on, e)
	if err != nil {
		return hash, err
	}

	if now, err := r.refs.Reference(name); err == nil && now.Hash() == hash {
		return hash, nil // another writer made the same commit
	}

	return hash, r.move(name, on, hash)
}

// BlobHash is git's hash of a file's content.
func BlobHash(content []byte) string {
	return plumbing.ComputeHash(plumbing.BlobObject, content).String()
}
