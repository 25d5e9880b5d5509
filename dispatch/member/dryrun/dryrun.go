// SPDX-License-Identifier: Apache-2.0

// Package dryrun wraps a member so that its writes succeed and send nothing.
// Reads, watches and observations reach the member, so a dry run decides as a
// real one would.
package dryrun

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Wrap is m without its writes.
func Wrap(m member.Member) member.Member { return dryRun{m} }

type dryRun struct{ member.Member }

func (d dryRun) Unwrap() member.Member { return d.Member }

// IsReadOnly has the Dispatcher record nothing.
func (dryRun) IsReadOnly() {}

func (dryRun) Apply(context.Context, map[string]any, member.ApplyOptions) (member.Applied, error) {
	return member.Applied{Created: true}, nil
}

func (dryRun) Adopt(context.Context, member.Ref) error { return nil }

func (dryRun) Release(context.Context, member.Ref, types.UID, object.Marker) error { return nil }
func (dryRun) Delete(context.Context, member.Ref, types.UID, object.Marker) error  { return nil }

// Override hides batches: what is never staged need not be flushed.
func (dryRun) Override(target any) (offered, handled bool) {
	_, batch := target.(*member.BatchMember)
	return false, batch
}
