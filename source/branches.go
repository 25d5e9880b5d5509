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
// one on this machine in place, another one over the network. Of the latter
// nothing is kept on disk, for what is published may hold Secrets. It may be
// used by several goroutines.
type Branches struct {
	repo    *Repo   // nil for a remote one
	remote  *remote // nil for one on this machine
	address string
	auth    func() (Auth, error) // nil: as the remote has it
	slots   chan struct{}

	asking sync.Mutex // held while the server is asked for its branches

	mu   sync.Mutex
	next *question // that was not put yet
	kept map[string]*loaded
	size int64 // of what is kept
}

// ErrDenied is what an error wraps when a server does not want what it is
// asked for: the credentials, the repository, the commit. Asking again does
// not help.
var ErrDenied = errors.New("refused")

const (
	// conversations is how many go on with one server at once.
	conversations = 8
	// conversationTime is how long one may take.
	conversationTime = 5 * time.Minute
)

// OpenBranches understands file://, https://, ssh:// and git@host:path. A
// repository on this machine must be there; a server is asked nothing yet.
func OpenBranches(address string, auth Auth) (*Branches, error) {
	b := &Branches{address: address, slots: make(chan struct{}, conversations), kept: map[string]*loaded{}}
	if strings.HasPrefix(address, "file:") {
		u, err := url.Parse(address)
		if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("url %s: write file:///path/to/repository", redact(address))
		}
		b.repo, err = Open(u.Path)
		return b, err
	}
	remote, isRemote, err := parseRemote(address, auth)
	if err != nil {
		return nil, err
	}
	if !isRemote {
		return nil, fmt.Errorf("url %s: it is a path; write file:///path/to/repository", redact(address))
	}
	b.remote = remote
	return b, nil
}

// Renew has the credentials read again for every conversation with the server,
// so that they may be rotated.
func (b *Branches) Renew(auth func() (Auth, error)) { b.auth = auth }

// reach is the server with the credentials as they are now.
func (b *Branches) reach() (*remote, error) {
	if b.auth == nil {
		return b.remote, nil
	}
	auth, err := b.auth()
	if err != nil {
		return nil, err
	}
	remote, _, err := parseRemote(b.address, auth)
	return remote, err
}

// String is the address, without secrets.
func (b *Branches) String() string {
	if b.remote != nil {
		return b.remote.String()
	}
	return "file://" + b.repo.path
}

// Head is the last commit of a branch, "" when there is no such branch.
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
		return "", b.fault(err)
	}
	if h := heads[name.String()]; !h.IsZero() {
		return h.String(), nil
	}
	return "", nil
}

// head is where a ref of a repository on this machine is.
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

// question is put to a server once for all who have asked before it was put.
type question struct {
	done  chan struct{}
	heads map[string]plumbing.Hash
	err   error
}

// heads are the refs of the server. However many ask at the same time, the
// server is asked for them twice at most.
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
	b.asking.Lock()
	defer b.asking.Unlock()
	b.mu.Lock()
	b.next = nil // who comes now may know of something newer
	b.mu.Unlock()
	q.err = b.converse(ctx, func(ctx context.Context, server *remote) error {
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

// converse waits for its turn with the server, and ends what takes too long.
func (b *Branches) converse(ctx context.Context, talk func(context.Context, *remote) error) error {
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.slots }()
	ctx, cancel := context.WithTimeout(ctx, conversationTime)
	defer cancel()
	server, err := b.reach()
	if err != nil {
		return err
	}
	return talk(ctx, server)
}

// fault is what went wrong with the server, free of secrets.
func (b *Branches) fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed),
		errors.Is(err, transport.ErrRepositoryNotFound):
		return &denied{b.remote.fault(err)}
	}
	return b.remote.fault(err)
}

// denied is an error that is ErrDenied, in its own words.
type denied struct{ error }

func (d *denied) Unwrap() error      { return d.error }
func (*denied) Is(target error) bool { return target == ErrDenied }

// Tree is the files of a commit that is the head of a branch. When the branch
// is elsewhere by now, and the commit cannot be had any more, it is
// ErrBranchMoved.
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

// Commit puts an edit on top of the head of a branch, and returns the new one.
// Without a head it makes the branch. When the branch is elsewhere by now it
// is ErrBranchMoved, and nothing is changed; nothing is ever forced. A commit
// is not older than the one before it.
//
// The same edit on the same head is the same commit, so that it does no harm
// when two do it, or when an answer is lost.
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

// put commits to a branch of a repository on this machine.
func (r *Repo) put(name plumbing.ReferenceName, on plumbing.Hash, e Edit) (plumbing.Hash, error) {
	if at := r.CheckedOut(name.Short()); at != "" {
		return plumbing.ZeroHash, &denied{fmt.Errorf("it is checked out at %s", at)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	hash, err := r.writer().after(on, e)
	if err != nil {
		return hash, err
	}
	if now, err := r.refs.Reference(name); err == nil && now.Hash() == hash {
		return hash, nil // somebody has made the same commit
	}
	return hash, r.move(name, on, hash)
}

// BlobHash is the hash that git gives a file's content.
func BlobHash(content []byte) string {
	return plumbing.ComputeHash(plumbing.BlobObject, content).String()
}
