// SPDX-License-Identifier: Apache-2.0

// Package ordered provides an immutable map with sorted keys. A copy with one
// entry changed shares everything else, and Diff of two copies costs only what
// differs between them: so a step of the fold costs the change, not the fleet.
//
// It is a treap whose priorities are hashes of the keys. So its shape depends
// on the keys alone, two maps with equal keys align node by node, and equal
// subtrees of derived maps are the same pointer.
package ordered

import (
	"iter"
	"maps"
	"slices"
)

// Map is an immutable map from string keys. The zero Map is empty.
type Map[V comparable] struct {
	root *node[V]
}

type node[V comparable] struct {
	key         string
	rank        uint64
	size        int
	value       V
	left, right *node[V]
}

// Len returns the number of entries.
func (m Map[V]) Len() int { return m.root.len() }

// Same reports whether both maps are the same version. It does not compare
// entries.
func (m Map[V]) Same(o Map[V]) bool { return m.root == o.root }

// Get returns the value at key, and whether there is one.
func (m Map[V]) Get(key string) (V, bool) {
	for n := m.root; n != nil; {
		switch {
		case key < n.key:
			n = n.left
		case key > n.key:
			n = n.right
		default:
			return n.value, true
		}
	}

	var none V
	return none, false
}

// At returns the value at key, or the zero value.
func (m Map[V]) At(key string) V {
	v, _ := m.Get(key)
	return v
}

// With returns the map with key set to value. Setting an equal value returns
// the same map, so Diff sees no change.
func (m Map[V]) With(key string, value V) Map[V] {
	return Map[V]{m.root.with(key, rank(key), value)}
}

// Without returns the map without key.
func (m Map[V]) Without(key string) Map[V] {
	return Map[V]{m.root.without(key)}
}

// All yields the entries in key order.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) { m.root.walk(yield) }
}

// From yields the entries whose key is not before start, in key order.
func (m Map[V]) From(start string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) { m.root.walkFrom(start, yield) }
}

// Values yields the values in key order.
func (m Map[V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) {
		m.root.walk(func(_ string, v V) bool { return yield(v) })
	}
}

// Change is one difference between two maps.
type Change[V comparable] struct {
	Key           string
	Before, After V
	// Had and Has report whether the key is in the first and the second map.
	Had, Has bool
}

// Diff yields the changes from before to after, in key order.
func Diff[V comparable](before, after Map[V]) iter.Seq[Change[V]] {
	return func(yield func(Change[V]) bool) { diff(before.root, after.root, yield) }
}

func (n *node[V]) len() int {
	if n == nil {
		return 0
	}
	return n.size
}

func (n *node[V]) holding(left, right *node[V]) *node[V] {
	if n.left == left && n.right == right {
		return n
	}
	return &node[V]{key: n.key, rank: n.rank, value: n.value, left: left, right: right, size: 1 + left.len() + right.len()}
}

func (n *node[V]) with(key string, rank uint64, value V) *node[V] {
	if n == nil {
		return &node[V]{key: key, rank: rank, value: value, size: 1}
	}

	if key == n.key {
		if n.value == value {
			return n
		}
		return &node[V]{key: key, rank: rank, value: value, left: n.left, right: n.right, size: n.size}
	}

	if before(n.rank, n.key, rank, key) {
		if key < n.key {
			return n.holding(n.left.with(key, rank, value), n.right)
		}
		return n.holding(n.left, n.right.with(key, rank, value))
	}

	// The new key outranks this subtree, so it cannot be in it.
	left, right := n.split(key)
	return &node[V]{key: key, rank: rank, value: value, left: left, right: right, size: 1 + left.len() + right.len()}
}

func (n *node[V]) without(key string) *node[V] {
	switch {
	case n == nil:
		return nil
	case key < n.key:
		return n.holding(n.left.without(key), n.right)
	case key > n.key:
		return n.holding(n.left, n.right.without(key))
	}

	return merge(n.left, n.right)
}

// split divides n into the keys before key and those after it.
func (n *node[V]) split(key string) (left, right *node[V]) {
	switch {
	case n == nil:
		return nil, nil
	case n.key < key:
		l, r := n.right.split(key)
		return n.holding(n.left, l), r
	case n.key > key:
		l, r := n.left.split(key)
		return l, n.holding(r, n.right)
	}

	return n.left, n.right
}

// merge joins two trees; every key of left is before every key of right.
func merge[V comparable](left, right *node[V]) *node[V] {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case before(left.rank, left.key, right.rank, right.key):
		return left.holding(left.left, merge(left.right, right))
	}

	return right.holding(merge(left, right.left), right.right)
}

func (n *node[V]) walk(yield func(string, V) bool) bool {
	if n == nil {
		return true
	}
	return n.left.walk(yield) && yield(n.key, n.value) && n.right.walk(yield)
}

func (n *node[V]) walkFrom(start string, yield func(string, V) bool) bool {
	if n == nil {
		return true
	}
	if n.key < start {
		return n.right.walkFrom(start, yield)
	}
	return n.left.walkFrom(start, yield) && yield(n.key, n.value) && n.right.walk(yield)
}

func diff[V comparable](a, b *node[V], yield func(Change[V]) bool) bool {
	switch {
	case a == b:
		return true
	case a == nil:
		return b.walk(func(k string, v V) bool { return yield(Change[V]{Key: k, After: v, Has: true}) })
	case b == nil:
		return a.walk(func(k string, v V) bool { return yield(Change[V]{Key: k, Before: v, Had: true}) })
	case a.key == b.key:
		return diff(a.left, b.left, yield) &&
			(a.value == b.value || yield(Change[V]{Key: a.key, Before: a.value, After: b.value, Had: true, Has: true})) &&
			diff(a.right, b.right, yield)
	case before(a.rank, a.key, b.rank, b.key):
		// a's root is not in b, or it would be b's root.
		left, right := b.split(a.key)
		return diff(a.left, left, yield) &&
			yield(Change[V]{Key: a.key, Before: a.value, Had: true}) &&
			diff(a.right, right, yield)
	}

	left, right := a.split(b.key)
	return diff(left, b.left, yield) &&
		yield(Change[V]{Key: b.key, After: b.value, Has: true}) &&
		diff(right, b.right, yield)
}

// before reports whether the first key is nearer to the root.
func before(rank uint64, key string, thanRank uint64, than string) bool {
	return rank > thanRank || rank == thanRank && key < than
}

// rank is a mixed FNV-1a hash: the shape of a map must be the same on every
// machine and in every run.
func rank(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}

	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Of returns the map with these entries. It is what With makes of them one after
// another, in a fraction of the time.
func Of[V comparable](entries map[string]V) Map[V] {
	var spine []*node[V] // the right edge, from the root
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		n := &node[V]{key: key, rank: rank(key), value: entries[key]}
		for len(spine) > 0 && before(n.rank, key, spine[len(spine)-1].rank, spine[len(spine)-1].key) {
			n.left = spine[len(spine)-1]
			spine = spine[:len(spine)-1]
		}
		if len(spine) > 0 {
			spine[len(spine)-1].right = n
		}
		spine = append(spine, n)
	}

	if len(spine) == 0 {
		return Map[V]{}
	}
	spine[0].count()
	return Map[V]{spine[0]}
}

// count sets the sizes of a new tree.
func (n *node[V]) count() int {
	if n == nil {
		return 0
	}
	n.size = 1 + n.left.count() + n.right.count()
	return n.size
}
