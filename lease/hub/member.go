// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/object"
)

// Push is a member behind a Kubernetes API, as push.New makes it, that writes what the gate
// of its shard lets pass. Each wrap goes around it and below what counts commits. may is
// asked before each write, too: its error says why there is none; nil is always.
func (r *Runner) Push(cfg *push.Config, shard int, may func() error, wrap ...func(member.Member) member.Member) (member.Member, error) {
	gate := r.Gate(shard)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return gatedTransport(next, gate, r.rules.WriteDeadline)
	})
	m, err := push.New(cfg, push.Options{})
	if err != nil {
		return nil, err
	}
	for _, w := range wrap {
		m = w(m)
	}
	return &gated{Member: m, runner: r, shard: shard, may: may}, nil
}

// Pull is a member as a branch, as pull.Branch makes it, whose commits the gate of its
// shard lets pass, and may.
func (r *Runner) Pull(in pull.Branches, branch string, shard int, may func() error) member.Member {
	m := pull.Branch(&gatedBranches{Branches: in, gate: r.Gate(shard)}, branch)
	return &gated{Member: m, runner: r, shard: shard, may: may}
}

// gated is a member that asks for each commit before it writes the first of it. What it
// asks may take a request to the API server of the Leases; whatever is asked beside it, or
// afterwards, takes none. The gate is asked once more where the request goes out.
type gated struct {
	member.Member
	runner *Runner
	shard  int
	may    func() error
	commit string
}

// Unwrap is the member that writes whatever it is told.
func (g *gated) Unwrap() member.Member { return g.Member }

// For is the member for the writes of a commit.
func (g *gated) For(commit string) member.Member {
	return &gated{g.Member, g.runner, g.shard, g.may, commit}
}

// permit waits until a commit may be written, and returns the context to write it with.
func (g *gated) permit(ctx context.Context, commit string) (context.Context, error) {
	if g.may != nil {
		if err := g.may(); err != nil {
			return nil, &member.Error{Reason: member.Withheld, Err: err}
		}
	}
	if position := g.runner.options.Position; position != nil {
		commit = position(commit)
	}
	if err := g.runner.Permit(ctx, g.shard, commit); err != nil {
		return nil, withheld(err)
	}
	return withCommit(ctx, commit), nil
}

func (g *gated) Apply(ctx context.Context, manifest map[string]any, opt member.ApplyOptions) (member.Applied, error) {
	ctx, err := g.permit(ctx, g.commit)
	if err != nil {
		return member.Applied{}, err
	}
	applied, err := g.Member.Apply(ctx, manifest, opt)
	return applied, withheld(err)
}

func (g *gated) Adopt(ctx context.Context, ref member.Ref) error {
	ctx, err := g.permit(ctx, g.commit)
	if err != nil {
		return err
	}
	return withheld(g.Member.Adopt(ctx, ref))
}

func (g *gated) Release(ctx context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	ctx, err := g.permit(ctx, g.commit)
	if err != nil {
		return err
	}
	return withheld(g.Member.Release(ctx, ref, uid, of))
}

func (g *gated) Delete(ctx context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	ctx, err := g.permit(ctx, g.commit)
	if err != nil {
		return err
	}
	return withheld(g.Member.Delete(ctx, ref, uid, of))
}

// DeleteVersion is Delete of an object as it was seen, where the member can.
func (g *gated) DeleteVersion(ctx context.Context, ref member.Ref, uid types.UID, version string, of object.Marker) error {
	ctx, err := g.permit(ctx, g.commit)
	if err != nil {
		return err
	}
	if inner, ok := member.As[member.VersionDeleter](g.Member); ok {
		return withheld(inner.DeleteVersion(ctx, ref, uid, version, of))
	}
	return withheld(g.Member.Delete(ctx, ref, uid, of))
}

// Override has a batch flushed when its commit may be.
func (g *gated) Override(target any) (offered, handled bool) {
	to, ok := target.(*member.BatchMember)
	if !ok {
		return false, false
	}
	inner, ok := member.As[member.BatchMember](g.Member)
	*to = &gatedBatch{inner, g}
	return ok, true
}

// gatedBatch is the batch of a gated member.
type gatedBatch struct {
	member.BatchMember
	gated *gated
}

func (b *gatedBatch) Flush(ctx context.Context, of member.Source) (member.Flushed, error) {
	ctx, err := b.gated.permit(ctx, of.Commit)
	if err != nil {
		return member.Flushed{}, err
	}
	done, err := b.BatchMember.Flush(ctx, of)
	return done, withheld(err)
}

// gatedBranches asks a gate before a branch is pushed. A push has no deadline of its own:
// git refuses one that does not continue the branch as it is by then.
type gatedBranches struct {
	pull.Branches
	gate *lease.Gate
}

func (b *gatedBranches) Commit(ctx context.Context, c pull.BranchCommit) (string, error) {
	commit, _ := ctx.Value(commitKey{}).(string)
	err := b.gate.Permit(commit)
	if err == nil {
		err = b.gate.Open(now())
	}
	if err != nil {
		return "", err
	}
	return b.Branches.Commit(ctx, c)
}

// withheld is the error of a member for what a gate has refused: the member has not been
// told, and a newer commit is about to be.
func withheld(err error) error {
	closed := (*lease.ClosedError)(nil)
	if !errors.As(err, &closed) {
		return err
	}
	if closed.Reason == lease.Position {
		return &member.Error{Reason: member.Conflict, Err: closed}
	}
	return &member.Error{Reason: member.Withheld, Err: closed}
}
