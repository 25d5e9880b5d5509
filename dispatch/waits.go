// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Acknowledgement is a content that a cluster confirms.
type Acknowledgement struct {
	Cluster string
	ID      object.ID
	// APIVersion is how the object is read on a cluster that another process reconciles.
	APIVersion string
	// Digest is of the content; the zero Digest is never confirmed.
	Digest object.Digest
}

// copyKey is an object on a cluster.
type copyKey struct {
	cluster string
	id      object.ID
}

// waits has the jobs that wait for what other clusters acknowledge (decision 42).
// They are not tried again in the meantime: the acknowledgement, or another Sync,
// wakes them. Nothing is called with its lock held.
type waits struct {
	mu   sync.Mutex
	jobs map[copyKey]map[waiter]bool
}

type waiter struct {
	w  *worker
	id object.ID
}

// add files a job under everything that it waits for.
func (s *waits) add(job waiter, after []Acknowledgement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		s.jobs = map[copyKey]map[waiter]bool{}
	}
	for _, a := range after {
		key := copyKey{a.Cluster, a.ID}
		if s.jobs[key] == nil {
			s.jobs[key] = map[waiter]bool{}
		}
		s.jobs[key][job] = true
	}
}

// take returns what waits for a copy, which is filed there no longer.
func (s *waits) take(key copyKey) map[waiter]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	jobs := s.jobs[key]
	delete(s.jobs, key)
	return jobs
}

// takeAll returns every job that waits.
func (s *waits) takeAll() map[waiter]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[waiter]bool{}
	for _, jobs := range s.jobs {
		for job := range jobs {
			all[job] = true
		}
	}
	s.jobs = nil
	return all
}

// awaited returns the error of a job that has to wait; nil when all was
// acknowledged. It is filed first, so that no acknowledgement is missed. No lock is
// held.
func (d *Dispatcher) awaited(m member.Member, job waiter, after []Acknowledgement) error {
	if len(after) == 0 || member.Is[member.ReadOnly](m) {
		return nil // a dry run waits for nothing, because nothing comes
	}

	d.waits.add(job, after)
	var missing []string
	var again time.Duration
	for _, a := range after {
		has, told := d.has(a)
		if has {
			continue
		}
		if !told {
			again = askElsewhere // nobody here learns of it
		}
		name := a.Cluster
		if a.ID != job.id {
			name = fmt.Sprintf("%s on %s", a.ID, a.Cluster)
		}
		missing = append(missing, name)
	}
	if missing == nil {
		return nil
	}

	slices.Sort(missing)
	return &member.Error{Reason: member.Waiting, RetryAfter: again, Err: fmt.Errorf("waits for %s", strings.Join(slices.Compact(missing), ", "))}
}

// askElsewhere is how soon a cluster that another process reconciles is asked again.
const askElsewhere = time.Second

// has reports whether a cluster has acknowledged a content, and whether a job that waits
// for it will be told.
func (d *Dispatcher) has(a Acknowledgement) (has, told bool) {
	w := d.worker(a.Cluster)
	switch {
	case a.Digest == (object.Digest{}):
		return false, true
	case w == nil && d.opt.Elsewhere == nil:
		return false, true
	case w == nil:
		return d.opt.Elsewhere(d.ctx, a), false
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	digest, _ := w.holdings.acknowledged(unique.Make(a.ID))
	return digest == a.Digest, true
}

// wake has jobs tried again. It may be called with a worker locked, so they are
// woken beside it; until they are, the Dispatcher counts as busy.
func (d *Dispatcher) wake(jobs map[waiter]bool) {
	for job := range jobs {
		d.count(true)
		go func() {
			job.w.mu.Lock()
			if job.w.fleet != nil && job.w.contacted {
				job.w.enqueue(job.id)
				job.w.schedule()
			}
			job.w.mu.Unlock()
			d.count(false)
		}()
	}
}

// shrinks returns the error of an update that takes replicas away before other
// clusters have those that they gained for them. The live object is only asked how
// many it has when somebody lacks some.
func (w *worker) shrinks(m member.Member, id object.ID, want Desire) error {
	if want.RetainReplicas {
		return nil
	}
	wait := w.d.awaited(m, waiter{w, id}, want.After)
	if wait == nil {
		return nil
	}

	ref, read := member.RefTo(id, want.APIVersion), m.Replicas
	if files, ok := member.As[member.Publisher](m); ok {
		read = files.Published
	}
	has, ok, err := read(w.d.ctx, ref)
	if err != nil {
		return err
	}
	if !ok || has <= want.Replicas {
		return nil
	}
	return wait
}
