// SPDX-License-Identifier: Apache-2.0

// Package intercept wraps a member so that one function stands around each of its
// requests, those of its capabilities included. counting and ratelimit are such
// functions.
package intercept

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Verb is what a request does.
type Verb string

// The verbs: a method of a member each. BatchMember.Holds is none of them, because
// it asks what Begin has read.
const (
	List     Verb = "list"
	Get      Verb = "get"
	Replicas Verb = "replicas"
	Apply    Verb = "apply"
	Adopt    Verb = "adopt"
	Release  Verb = "release"
	Delete   Verb = "delete"
	Ready    Verb = "ready"
	Read     Verb = "read"
	Watch    Verb = "watch"
	Relist   Verb = "relist"
	Begin    Verb = "begin"
	Flush    Verb = "flush"
)

// Around stands around a request: it makes it by calling do, at most once, and
// returns its error; or it returns an error of its own, of type *member.Error, and
// the request is not made. It is called from many goroutines at once.
type Around func(ctx context.Context, verb Verb, do func() error) error

// Wrap is m with around at each request. What m is capable of shows through.
func Wrap(m member.Member, around Around) member.Member { return &intercepted{m, around} }

type intercepted struct {
	member.Member
	around Around
}

func (i *intercepted) Unwrap() member.Member { return i.Member }

// Override offers the capabilities that make requests, where the member inside has
// them. The others show through by themselves.
func (i *intercepted) Override(target any) (offered, handled bool) {
	switch target := target.(type) {
	case *member.Observer:
		inner, ok := member.As[member.Observer](i.Member)
		*target = &observer{inner, i.around}
		return ok, true
	case *member.Watcher:
		inner, ok := member.As[member.Watcher](i.Member)
		*target = &watcher{inner, i.around}
		return ok, true
	case *member.Relister:
		inner, ok := member.As[member.Relister](i.Member)
		*target = &relister{watcher{inner, i.around}, inner}
		return ok, true
	case *member.BatchMember:
		inner, ok := member.As[member.BatchMember](i.Member)
		*target = &batch{inner, i.around}
		return ok, true
	}
	return false, false
}

// List makes its request when it is ranged over, and that is over when the last
// object was taken.
func (i *intercepted) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[member.Found, error] {
	return func(yield func(member.Found, error) bool) {
		stopped := false
		err := i.around(ctx, List, func() error {
			for found, err := range i.Member.List(ctx, gvk, namespace) {
				if err != nil {
					return err
				}
				if stopped = !yield(found, nil); stopped {
					return nil
				}
			}
			return nil
		})
		if err != nil && !stopped {
			yield(member.Found{}, err)
		}
	}
}

func (i *intercepted) Get(ctx context.Context, ref member.Ref) (*member.Found, error) {
	return result(ctx, i.around, Get, func() (*member.Found, error) { return i.Member.Get(ctx, ref) })
}

func (i *intercepted) Replicas(ctx context.Context, ref member.Ref) (n int64, ok bool, err error) {
	err = i.around(ctx, Replicas, func() (err error) {
		n, ok, err = i.Member.Replicas(ctx, ref)
		return err
	})
	return n, ok, err
}

func (i *intercepted) Apply(ctx context.Context, manifest map[string]any, opt member.ApplyOptions) (member.Applied, error) {
	return result(ctx, i.around, Apply, func() (member.Applied, error) { return i.Member.Apply(ctx, manifest, opt) })
}

func (i *intercepted) Adopt(ctx context.Context, ref member.Ref) error {
	return i.around(ctx, Adopt, func() error { return i.Member.Adopt(ctx, ref) })
}

func (i *intercepted) Release(ctx context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	return i.around(ctx, Release, func() error { return i.Member.Release(ctx, ref, uid, of) })
}

func (i *intercepted) Delete(ctx context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	return i.around(ctx, Delete, func() error { return i.Member.Delete(ctx, ref, uid, of) })
}

// result is for a request that answers with a value.
func result[T any](ctx context.Context, around Around, verb Verb, do func() (T, error)) (answer T, err error) {
	err = around(ctx, verb, func() (err error) {
		answer, err = do()
		return err
	})
	return answer, err
}
