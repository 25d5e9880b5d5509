// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/source"
)

// Publish returns the branches of a repository for dispatch to publish to.
func Publish(to *source.Branches) pull.Branches { return branches{to} }

type branches struct{ *source.Branches }

func (b branches) Head(ctx context.Context, branch string) (string, error) {
	head, err := b.Branches.Head(ctx, branch)
	return head, reasoned(err)
}

func (b branches) Files(ctx context.Context, branch, commit string) (pull.Files, error) {
	tree, err := b.Tree(ctx, branch, commit)
	if err != nil {
		return nil, reasoned(err)
	}
	return tree, nil
}

func (branches) Hash(content []byte) string { return source.BlobHash(content) }

// Commit creates the same commit for the same change on every machine, so its date is
// that of the source commit.
func (b branches) Commit(ctx context.Context, c pull.BranchCommit) (string, error) {
	head, err := b.Branches.Commit(ctx, c.On, source.Edit{
		Branch: c.Branch, Files: c.Files, Message: c.Message,
		Author: "fairlead", Mail: "noreply@fairlead.dev", When: cmp.Or(c.When, time.Unix(0, 0)).UTC(),
	})
	return head, reasoned(err)
}

// reasoned returns an error with the reason that dispatch acts on.
func reasoned(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, source.ErrBranchMoved):
		return &member.Error{Reason: member.Conflict, Err: err}
	case errors.Is(err, source.ErrDenied):
		return &member.Error{Reason: member.Forbidden, Err: err}
	}

	return &member.Error{Reason: member.Unreachable, Err: err}
}
