// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// queue is what a worker has to do: a job for each object, in the order of
// sending. It asks nobody, and is told the time. Its owner holds the lock.
type queue struct {
	jobs    map[object.ID]*job
	ready   [stages]jobs
	running [stages]int // first attempts in flight
	open    int         // jobs that waiting may mend
	wake    time.Time   // when the first waiting job is due; zero without one
}

// job is one object with work to do.
type job struct {
	id         object.ID
	stage      stage
	rank       int
	failures   int
	generation int // of the breaker when it was started
	running    bool
	again      bool // what is desired changed while it was running
	final      bool // not mended by waiting
	at         time.Time
	err        *member.Error
	waits      bool // for its time, or for another Sync when at is zero
}

func newQueue() queue { return queue{jobs: map[object.ID]*job{}} }

// put makes the job of an object, or has a waiting one done now. One whose turn has
// not come is made anew where something else is wanted by now, because its turn is
// another one.
func (q *queue) put(id object.ID, v Verb) {
	j := q.jobs[id]
	if j != nil && !j.waits && j.stage != stageOf(v, id) {
		q.drop(id)
		j = nil
	}
	if j == nil {
		j = &job{id: id, final: true, waits: true}
		q.jobs[id] = j
	}
	if j.waits {
		j.stage, j.rank = stageOf(v, id), rank(v, id)
		heap.Push(&q.ready[j.stage], j)
	}

	j.waits, j.failures, j.err = false, 0, nil
	q.setFinal(j, false)
}

// next takes the first job of the lowest stage, unless a lower one still has
// first attempts in flight.
func (q *queue) next() *job {
	for s := range q.ready {
		for q.ready[s].Len() > 0 {
			j := heap.Pop(&q.ready[s]).(*job)
			if q.jobs[j.id] == j && !j.running && !j.waits {
				return j
			}
		}
		if q.running[s] > 0 {
			return nil
		}
	}
	return nil
}

// start notes that a job is tried.
func (q *queue) start(j *job, generation int) {
	j.running, j.generation = true, generation
	if j.failures == 0 {
		q.running[j.stage]++
	}
}

// end notes that the attempt is over, and reports whether the job still counts.
func (q *queue) end(j *job) bool {
	if j.failures == 0 {
		q.running[j.stage]--
	}
	j.running = false
	return q.jobs[j.id] == j
}

// retry has a job tried again without a pause: it was not the object's failure.
func (q *queue) retry(j *job) { heap.Push(&q.ready[j.stage], j) }

// fail has a job wait for its time, or for another Sync if waiting cannot mend
// it.
func (q *queue) fail(j *job, err *member.Error, now time.Time, b Backoff) {
	j.failures++
	j.err, j.waits = err, true
	switch {
	case err.Reason == member.Waiting && err.RetryAfter == 0:
		j.at = time.Time{} // it is woken
	case err.Reason == member.Waiting:
		j.at = now.Add(err.RetryAfter)
	case err.Reason == member.Forbidden:
		// Someone may grant it, but asking often would not help.
		j.at = now.Add(b.Max)
	case err.Reason.Final():
		j.at = time.Time{}
	default:
		j.at = now.Add(max(err.RetryAfter, b.after(j.failures)))
	}

	q.setFinal(j, err.Reason.Final() || err.Reason == member.Waiting)
	if !j.at.IsZero() {
		q.wakeAt(j.at)
	}
}

// giveUp records a failure that only another Sync ends.
func (q *queue) giveUp(id object.ID, err *member.Error) {
	q.drop(id)
	q.jobs[id] = &job{id: id, final: true, waits: true, err: err}
}

func (q *queue) drop(id object.ID) {
	if j := q.jobs[id]; j != nil {
		q.setFinal(j, true)
		delete(q.jobs, id)
	}
}

// clear drops every job.
func (q *queue) clear() {
	q.jobs, q.ready, q.open = map[object.ID]*job{}, [stages]jobs{}, 0
}

func (q *queue) setFinal(j *job, final bool) {
	if j.final == final {
		return
	}
	j.final = final
	if final {
		q.open--
	} else {
		q.open++
	}
}

// due makes the waiting jobs ready whose time has come. It returns when the next
// one's does; zero when none waits for a time.
func (q *queue) due(now time.Time) time.Time {
	if q.wake.IsZero() || now.Before(q.wake) {
		return q.wake
	}

	q.wake = time.Time{}
	for _, j := range q.jobs {
		if !j.waits || j.at.IsZero() {
			continue
		}
		if j.at.After(now) {
			q.wakeAt(j.at)
			continue
		}
		j.waits = false
		heap.Push(&q.ready[j.stage], j)
	}
	return q.wake
}

func (q *queue) wakeAt(at time.Time) {
	if q.wake.IsZero() || at.Before(q.wake) {
		q.wake = at
	}
}

// hasReady reports whether anything waits for nothing but its turn.
func (q *queue) hasReady() bool {
	return slices.ContainsFunc(q.ready[:], func(s jobs) bool { return s.Len() > 0 })
}

// jobs is a heap in the order of sending.
type jobs []*job

func (s jobs) Len() int      { return len(s) }
func (s jobs) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *jobs) Push(x any)   { *s = append(*s, x.(*job)) }
func (s *jobs) Pop() any {
	last := len(*s) - 1
	j := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return j
}
func (s jobs) Less(i, j int) bool {
	a, b := s[i], s[j]
	return cmp.Or(
		cmp.Compare(a.rank, b.rank),
		cmp.Compare(a.id.Namespace, b.id.Namespace),
		cmp.Compare(a.id.Kind, b.id.Kind),
		cmp.Compare(a.id.Name, b.id.Name),
	) < 0
}
