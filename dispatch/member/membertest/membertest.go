// SPDX-License-Identifier: Apache-2.0

// Package membertest has members in memory, for the tests of what wraps a member.
// Bare has no capability, and Capable every one that makes requests. Calls and
// Capabilities are each of their methods, to be called through a wrapper.
package membertest

import (
	"context"
	"iter"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Bare is a Member that answers every request with Err, and notes it.
type Bare struct {
	Err error

	mu    sync.Mutex
	asked []string
}

// Asked is what was asked so far.
func (b *Bare) Asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.asked...)
}

func (b *Bare) ask(what string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, what)
	return b.Err
}

// List yields two objects, or Err after the first.
func (b *Bare) List(_ context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[member.Found, error] {
	return func(yield func(member.Found, error) bool) {
		err := b.ask("list " + gvk.Kind + " in " + namespace)
		if !yield(member.Found{UID: "1"}, nil) {
			return
		}
		if err != nil {
			yield(member.Found{}, err)
			return
		}
		yield(member.Found{UID: "2"}, nil)
	}
}

// Get finds an object with the UID 1.
func (b *Bare) Get(_ context.Context, ref member.Ref) (*member.Found, error) {
	return &member.Found{UID: "1"}, b.ask("get " + ref.Name)
}

// Replicas are 3.
func (b *Bare) Replicas(_ context.Context, ref member.Ref) (int64, bool, error) {
	return 3, true, b.ask("replicas " + ref.Name)
}

// Apply answers with the UID that it was given.
func (b *Bare) Apply(_ context.Context, manifest map[string]any, opt member.ApplyOptions) (member.Applied, error) {
	return member.Applied{UID: opt.UID}, b.ask("apply " + member.RefOf(manifest).Name)
}

// Adopt is noted.
func (b *Bare) Adopt(_ context.Context, ref member.Ref) error { return b.ask("adopt " + ref.Name) }

// Release is noted with the UID and the fleet.
func (b *Bare) Release(_ context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	return b.ask("release " + ref.Name + " " + string(uid) + " of " + of.Name)
}

// Delete is noted with the UID and the fleet.
func (b *Bare) Delete(_ context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	return b.ask("delete " + ref.Name + " " + string(uid) + " of " + of.Name)
}

// Capable is a Bare with every capability that makes requests, and with an identity.
type Capable struct{ Bare }

// HasIdentity says that it is Identified.
func (*Capable) HasIdentity() {}

// Ready is true.
func (c *Capable) Ready(context.Context) (bool, error) { return true, c.ask("ready") }

// Read reads an object with one field.
func (c *Capable) Read(_ context.Context, ref member.Ref) (map[string]any, error) {
	return map[string]any{"a": "b"}, c.ask("read " + ref.Name)
}

// Watch tells of one object.
func (c *Capable) Watch(_ context.Context, gvk schema.GroupVersionKind, lasting time.Duration, tell func(member.WatchEvent)) error {
	tell(member.WatchEvent{Version: 7})
	return c.ask("watch " + gvk.Kind + " for " + lasting.String())
}

// Relist tells of one object.
func (c *Capable) Relist(_ context.Context, gvk schema.GroupVersionKind, tell func(member.WatchEvent)) error {
	tell(member.WatchEvent{Version: 8})
	return c.ask("relist " + gvk.Kind)
}

// Begin stands at 1 when it looks, and else at 0.
func (c *Capable) Begin(_ context.Context, ask bool) (member.Position, error) {
	at := types.UID("0")
	if ask {
		at = "1"
	}
	return member.Position{At: at}, c.ask("begin")
}

// Holds holds everything, with the UID 1.
func (c *Capable) Holds(_ context.Context, ref member.Ref) (types.UID, error) {
	return "1", c.ask("holds " + ref.Name)
}

// Flush has changed one object.
func (c *Capable) Flush(_ context.Context, of member.Source) (member.Flushed, error) {
	return member.Flushed{Changes: 1}, c.ask("flush " + of.Commit)
}

// Call is one method of a member.
type Call struct {
	Verb string // as a wrapper names it; "" is no request
	// Asked is what a Bare notes.
	Asked string
	// Do calls it, and reports whether the answer is the one of a Bare.
	Do func(ctx context.Context, m member.Member) (right bool, err error)
}

var (
	kind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	ref  = member.Ref{GroupVersionKind: kind, Namespace: "shop", Name: "settings"}
	of   = object.Marker{Name: "sea"}
)

// Calls are every method of a Member.
func Calls() []Call {
	return []Call{
		{"list", "list ConfigMap in shop", list},
		{"get", "get settings", func(ctx context.Context, m member.Member) (bool, error) {
			found, err := m.Get(ctx, ref)
			return found != nil && found.UID == "1", err
		}},
		{"replicas", "replicas settings", func(ctx context.Context, m member.Member) (bool, error) {
			n, ok, err := m.Replicas(ctx, ref)
			return n == 3 && ok, err
		}},
		{"apply", "apply settings", func(ctx context.Context, m member.Member) (bool, error) {
			applied, err := m.Apply(ctx, member.Identity(ref), member.ApplyOptions{UID: "9"})
			return applied.UID == "9", err
		}},
		{"adopt", "adopt settings", func(ctx context.Context, m member.Member) (bool, error) { return true, m.Adopt(ctx, ref) }},
		{"release", "release settings 9 of sea", func(ctx context.Context, m member.Member) (bool, error) { return true, m.Release(ctx, ref, "9", of) }},
		{"delete", "delete settings 9 of sea", func(ctx context.Context, m member.Member) (bool, error) { return true, m.Delete(ctx, ref, "9", of) }},
	}
}

func list(ctx context.Context, m member.Member) (bool, error) {
	var uids []types.UID
	for found, err := range m.List(ctx, kind, "shop") {
		if err != nil {
			return len(uids) == 1, err
		}
		uids = append(uids, found.UID)
	}
	return len(uids) == 2, nil
}

// Capabilities are every method of the capabilities that make requests.
func Capabilities() []Call {
	return []Call{
		{"ready", "ready", with(func(ctx context.Context, o member.Observer) (bool, error) { return o.Ready(ctx) })},
		{"read", "read settings", with(func(ctx context.Context, o member.Observer) (bool, error) {
			object, err := o.Read(ctx, ref)
			return object["a"] == "b", err
		})},
		{"watch", "watch ConfigMap for 1m0s", with(func(ctx context.Context, w member.Watcher) (right bool, err error) {
			err = w.Watch(ctx, kind, time.Minute, func(e member.WatchEvent) { right = e.Version == 7 })
			return right, err
		})},
		{"watch", "watch ConfigMap for 1m0s", with(func(ctx context.Context, r member.Relister) (right bool, err error) {
			err = r.Watch(ctx, kind, time.Minute, func(e member.WatchEvent) { right = e.Version == 7 })
			return right, err
		})},
		{"relist", "relist ConfigMap", with(func(ctx context.Context, r member.Relister) (right bool, err error) {
			err = r.Relist(ctx, kind, func(e member.WatchEvent) { right = e.Version == 8 })
			return right, err
		})},
		{"begin", "begin", with(func(ctx context.Context, b member.BatchMember) (bool, error) {
			at, err := b.Begin(ctx, true)
			return at.At == "1", err
		})},
		{"", "holds settings", with(func(ctx context.Context, b member.BatchMember) (bool, error) {
			uid, err := b.Holds(ctx, ref)
			return uid == "1", err
		})},
		{"flush", "flush abc", with(func(ctx context.Context, b member.BatchMember) (bool, error) {
			done, err := b.Flush(ctx, member.Source{Commit: "abc"})
			return done.Changes == 1, err
		})},
	}
}

// with calls a capability; one that is not found answers wrongly.
func with[T any](do func(context.Context, T) (bool, error)) func(context.Context, member.Member) (bool, error) {
	return func(ctx context.Context, m member.Member) (bool, error) {
		c, ok := member.As[T](m)
		if !ok {
			return false, nil
		}
		return do(ctx, c)
	}
}
