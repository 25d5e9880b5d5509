// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/source"
)

// Publish is a repository as dispatch publishes to its branches.
func Publish(to *source.Branches) dispatch.Branches { return branches{to} }

type branches struct{ *source.Branches }

func (b branches) Head(ctx context.Context, branch string) (string, error) {
	head, err := b.Branches.Head(ctx, branch)
	return head, reasoned(err)
}

func (b branches) Files(ctx context.Context, branch, commit string) (dispatch.Files, error) {
	tree, err := b.Tree(ctx, branch, commit)
	if err != nil {
		return nil, reasoned(err)
	}
	return tree, nil
}

func (branches) Hash(content []byte) string { return source.BlobHash(content) }

// Commit makes the same commit of the same change whoever makes it, so its
// date is the source's.
func (b branches) Commit(ctx context.Context, c dispatch.BranchCommit) (string, error) {
	head, err := b.Branches.Commit(ctx, c.On, source.Edit{
		Branch: c.Branch, Files: c.Files, Message: c.Message,
		Author: "fairlead", Mail: "noreply@fairlead.dev", When: cmp.Or(c.When, time.Unix(0, 0)).UTC(),
	})
	return head, reasoned(err)
}

// reasoned is an error as dispatch understands it.
func reasoned(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, source.ErrBranchMoved):
		return &dispatch.Error{Reason: dispatch.Conflict, Err: err}
	case errors.Is(err, source.ErrDenied):
		return &dispatch.Error{Reason: dispatch.Forbidden, Err: err}
	}
	return &dispatch.Error{Reason: dispatch.Unreachable, Err: err}
}
