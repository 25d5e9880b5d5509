// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"unique"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Observer is the way to ask a cluster's member, nil when there is none or
// when it cannot be asked.
func (d *Dispatcher) Observer(cluster string) member.Observer {
	w := d.worker(cluster)
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o, _ := member.As[member.Observer](w.member)
	return o
}

// Gone reports whether a cluster is known not to hold an object: it was asked, and
// has confirmed what it was told to delete.
func (d *Dispatcher) Gone(cluster string, id object.ID) bool {
	w := d.worker(cluster)
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.contacted && w.queue.jobs[id] == nil && !w.holdings.has(id)
}

// Acknowledged reports whether a cluster has confirmed the content that is wanted
// of an object.
func (d *Dispatcher) Acknowledged(cluster string, id object.ID) bool {
	w := d.worker(cluster)
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fleet == nil {
		return false
	}
	want := w.fleet.Desire(cluster, id)
	return want.Verb == Apply && w.settled(unique.Make(id), want.Want)
}

// Digests returns what a cluster has acknowledged last of each object that it holds; nil
// if nothing is known of it.
func (d *Dispatcher) Digests(cluster string) map[object.ID]object.Digest {
	w := d.worker(cluster)
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holdings.digests()
}

func (d *Dispatcher) worker(cluster string) *worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.workers[cluster]
}
