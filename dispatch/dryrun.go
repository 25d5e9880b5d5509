// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// DryRun is m without its writes: they succeed and send nothing. A Dispatcher
// saves nothing of such a member.
func DryRun(m Member) Member { return dryRun{m} }

type dryRun struct{ Member }

func (dryRun) Apply(context.Context, map[string]any, ApplyOptions) (Applied, error) {
	return Applied{Created: true}, nil
}
func (dryRun) Adopt(context.Context, Ref) error              { return nil }
func (dryRun) Release(context.Context, Ref, types.UID) error { return nil }
func (dryRun) Delete(context.Context, Ref, types.UID) error  { return nil }
