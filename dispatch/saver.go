// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"maps"
	"sync"
	"time"

	"github.com/fairlead/fairlead/propagate"
)

// gather is how long acknowledgements are gathered while others are expected.
// Each write waits for the disk, and an etcd beside us may wait for the same.
const gather = time.Second

// saver writes acknowledgements to the inventory, many at a time. One that is
// lost with the process costs one repetition of its request.
type saver struct {
	d *Dispatcher

	mu      sync.Mutex
	pending map[string]map[propagate.ID]*Entry
	writing bool
	err     error
}

func (s *saver) put(cluster string, id propagate.ID, e *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[string]map[propagate.ID]*Entry{}
	}
	if s.pending[cluster] == nil {
		s.pending[cluster] = map[propagate.ID]*Entry{}
	}
	if e != nil {
		copied := *e
		e = &copied
	}
	s.pending[cluster][id] = e
	if !s.writing {
		s.writing = true
		go s.run()
	}
}

func (s *saver) run() {
	for {
		s.d.whileWorking(gather)
		if !s.flush() {
			break
		}
	}
	s.d.notify()
}

// flush writes what is pending and reports whether there may be more to come.
// What could not be written is kept for the next acknowledgement, or the end.
func (s *saver) flush() bool {
	s.mu.Lock()
	batch := s.pending
	s.pending = nil
	if len(batch) == 0 {
		s.writing = false
		s.mu.Unlock()
		return false
	}
	s.mu.Unlock()
	err := s.d.inventory.Save(batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if err == nil {
		return true
	}
	for cluster, entries := range batch {
		newer := s.pending[cluster]
		maps.Copy(entries, newer)
		if s.pending == nil {
			s.pending = map[string]map[propagate.ID]*Entry{}
		}
		s.pending[cluster] = entries
	}
	s.writing = false
	return false
}

// idle reports whether everything is written, or cannot be.
func (s *saver) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.writing
}
