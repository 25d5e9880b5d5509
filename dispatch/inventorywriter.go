// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"maps"
	"sync"
	"time"

	"github.com/fairlead/fairlead/object"
)

// gather is how long acknowledgements are gathered while others are expected.
// Each write waits for the disk, and an etcd beside us may wait for the same.
const gather = time.Second

// inventoryWriter writes acknowledgements to the inventory, many at a time. One that is
// lost with the process costs one repetition of its request.
type inventoryWriter struct {
	d *Dispatcher

	saving  sync.Mutex // during a write; taken before mu
	mu      sync.Mutex
	pending map[string]map[object.ID]*Entry
	writing bool
	err     error
}

func (i *inventoryWriter) put(cluster string, id object.ID, e *Entry) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pending == nil {
		i.pending = map[string]map[object.ID]*Entry{}
	}
	if i.pending[cluster] == nil {
		i.pending[cluster] = map[object.ID]*Entry{}
	}
	if e != nil {
		copied := *e
		e = &copied
	}
	i.pending[cluster][id] = e
	if !i.writing {
		i.writing = true
		go i.run()
	}
}

// forget drops what is not written yet of a cluster. Nothing of it is being written
// afterwards, nor is tried again.
func (i *inventoryWriter) forget(cluster string) {
	i.saving.Lock()
	defer i.saving.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.pending, cluster)
}

func (i *inventoryWriter) run() {
	for {
		i.d.whileWorking(gather)
		if !i.flush() {
			break
		}
	}
	i.d.notify()
}

// flush writes what is pending and reports whether there may be more to come.
// What could not be written is kept for the next acknowledgement, or the end.
func (i *inventoryWriter) flush() bool {
	i.saving.Lock()
	defer i.saving.Unlock()
	i.mu.Lock()
	batch := i.pending
	i.pending = nil
	if len(batch) == 0 {
		i.writing = false
		i.mu.Unlock()
		return false
	}
	i.mu.Unlock()
	err := i.d.inventory.Save(batch)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
	if err == nil {
		return true
	}
	for cluster, entries := range batch {
		newer := i.pending[cluster]
		maps.Copy(entries, newer)
		if i.pending == nil {
			i.pending = map[string]map[object.ID]*Entry{}
		}
		i.pending[cluster] = entries
	}
	i.writing = false
	return false
}

// idle reports whether everything is written, or cannot be.
func (i *inventoryWriter) idle() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.writing
}
