// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"sync"
)

// recent keeps the values that were used last.
type recent[K comparable, V any] struct {
	mu     sync.Mutex
	most   int
	values map[K]V
	order  []K // the one that was used last is last
}

func newRecent[K comparable, V any](most int) *recent[K, V] {
	return &recent[K, V]{most: most, values: map[K]V{}}
}

// get returns the value of a key.
func (r *recent[K, V]) get(key K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok := r.values[key]
	if ok {
		r.used(key)
	}
	return value, ok
}

// put keeps a value, in the place of the one that was not used for longest.
func (r *recent[K, V]) put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[key] = value
	r.used(key)
	for len(r.order) > r.most {
		delete(r.values, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *recent[K, V]) used(key K) {
	if i := slices.Index(r.order, key); i >= 0 {
		r.order = slices.Delete(r.order, i, i+1)
	}
	r.order = append(r.order, key)
}

// limit changes how many values are kept.
func (r *recent[K, V]) limit(most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = most
}

// clear forgets everything.
func (r *recent[K, V]) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values, r.order = map[K]V{}, nil
}
