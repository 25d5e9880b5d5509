// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Backup remembers what the server holds. What it returns puts that back, as a
// restored etcd does: versions go on from where they were then, and whoever
// watches is told to begin again.
func (s *Server) Backup() (restore func()) {
	version, kinds, objects := s.store.copied()
	return func() {
		st := s.store
		st.mu.Lock()
		defer st.mu.Unlock()
		st.version, st.kinds, st.objects, st.events = version, maps.Clone(kinds), cloned(objects), nil
		st.life++
		close(st.changed)
		st.changed = make(chan struct{})
	}
}

func (s *store) copied() (int64, map[schema.GroupVersionResource]*kind, map[schema.GroupResource]map[string]*stored) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version, maps.Clone(s.kinds), cloned(s.objects)
}

func cloned(tables map[schema.GroupResource]map[string]*stored) map[schema.GroupResource]map[string]*stored {
	out := make(map[schema.GroupResource]map[string]*stored, len(tables))
	for at, table := range tables {
		out[at] = maps.Clone(table)
	}
	return out
}
