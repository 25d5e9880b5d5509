// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
)

type observer struct {
	inner  member.Observer
	around Around
}

func (o *observer) Ready(ctx context.Context) (bool, error) {
	return result(ctx, o.around, Ready, func() (bool, error) { return o.inner.Ready(ctx) })
}

func (o *observer) Read(ctx context.Context, ref member.Ref) (map[string]any, error) {
	return result(ctx, o.around, Read, func() (map[string]any, error) { return o.inner.Read(ctx, ref) })
}

// watcher has a watch as one request, which lasts as long as the watch.
type watcher struct {
	inner  member.Watcher
	around Around
}

func (w *watcher) Watch(ctx context.Context, gvk schema.GroupVersionKind, lasting time.Duration, tell func(member.WatchEvent)) error {
	return w.around(ctx, Watch, func() error { return w.inner.Watch(ctx, gvk, lasting, tell) })
}

type relister struct {
	watcher
	inner member.Relister
}

func (r *relister) Relist(ctx context.Context, gvk schema.GroupVersionKind, tell func(member.WatchEvent)) error {
	return r.around(ctx, Relist, func() error { return r.inner.Relist(ctx, gvk, tell) })
}

type batch struct {
	inner  member.BatchMember
	around Around
}

func (b *batch) Begin(ctx context.Context, ask bool) (member.Position, error) {
	return result(ctx, b.around, Begin, func() (member.Position, error) { return b.inner.Begin(ctx, ask) })
}

func (b *batch) Holds(ctx context.Context, ref member.Ref) (types.UID, error) {
	return b.inner.Holds(ctx, ref)
}

func (b *batch) Flush(ctx context.Context, of member.Source) (member.Flushed, error) {
	return result(ctx, b.around, Flush, func() (member.Flushed, error) { return b.inner.Flush(ctx, of) })
}
