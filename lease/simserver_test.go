// SPDX-License-Identifier: Apache-2.0

package lease

import "time"

// event is what happens at a moment of true time.
type event struct {
	at       time.Duration
	kind     int
	slot     int
	life     int
	n        int
	name     string
	deadline time.Duration
	outcome  Outcome
	version  int64
	request  *Request
	rec      *Record
	records  []Record
}

func (e event) record() Record {
	if e.rec == nil {
		return Record{}
	}
	return *e.rec
}

// queue is a heap of events, in the order of time; of one moment, in the order in
// which they were added.
type queue struct {
	heap, spare []*queued
	pushed      int
}

type queued struct {
	event
	order int
}

func (q *queue) push(e event) {
	var item *queued
	if n := len(q.spare); n > 0 {
		item, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		item = new(queued)
	}
	q.pushed++
	item.event, item.order = e, q.pushed
	q.heap = append(q.heap, item)
	h := q.heap
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (a *queued) before(b *queued) bool { return a.at < b.at || a.at == b.at && a.order < b.order }

func (q *queue) pop() event {
	h := q.heap
	first := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h[last] = nil
	h = h[:last]
	for i := 0; ; {
		least := 2*i + 1
		if least >= last {
			break
		}
		if right := least + 1; right < last && h[right].before(h[least]) {
			least = right
		}
		if !h[least].before(h[i]) {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	q.heap = h
	q.spare = append(q.spare, first)
	return first.event
}

// send puts a request on the wire. It may be lost, or its answer, and either may be
// late; a request that its sender has given up may still arrive.
func (w *world) send(s *slot, i int, req Request) {
	r := new(Request)
	*r = req
	if w.tracing {
		w.log("%s: %s %s holder %q next %q sent %q (%d)", s.pod, r.Verb, r.Record.Name, r.Record.Holder, r.Record.Next, r.Record.Sent, r.Record.Version)
	}
	timeout := time.Duration(float64(realRules.Request) / s.rate)
	there, deadline := w.latency(s), w.now+timeout
	lost := w.now < s.cut || w.now < s.lossy && w.random.IntN(4) == 0
	lost = lost || w.now < s.barred && r.Record.Kind == Shard
	if lost || there >= timeout {
		w.at(deadline, event{kind: evFail, slot: i, life: s.life, request: r})
		if lost {
			return
		}
	}
	w.at(w.now+there, event{kind: evArrive, slot: i, life: s.life, request: r, deadline: deadline})
}

func (w *world) latency(s *slot) time.Duration {
	if w.now < s.lossy {
		switch w.random.IntN(6) {
		case 0:
			return w.upTo(20 * time.Second)
		case 1, 2:
			return w.upTo(5 * time.Second)
		}
	}
	return time.Millisecond + w.upTo(60*time.Millisecond)
}

// arrive has the server do what a request asks for, and sends the answer.
func (w *world) arrive(e event) {
	s := &w.slots[e.slot]
	answer := event{kind: evAnswer, slot: e.slot, life: e.life, request: e.request, deadline: e.deadline}
	if w.now >= s.cut {
		w.serve(e.request, &answer)
	}
	if w.now >= e.deadline {
		return // whoever sent it has given up
	}

	back := w.now + w.latency(s)
	if w.now < s.cut || w.now < s.lossy && w.random.IntN(4) == 0 || back >= e.deadline {
		w.at(e.deadline, event{kind: evFail, slot: e.slot, life: e.life, request: e.request})
		return
	}
	w.at(back, answer)
}

// serve is the API server: an update of a version that is not the present one is
// refused.
func (w *world) serve(r *Request, answer *event) {
	have := w.find(r.Record.Name)
	switch r.Verb {
	case List:
		answer.version = w.version
		for i := range w.records {
			answer.records = append(answer.records, w.records[i].Record)
		}
		return
	case Get:
	case Create:
		if have != nil {
			answer.outcome = Conflict
			return
		}
		w.records = append(w.records, stored{Record: Record{Name: r.Record.Name}})
		have = &w.records[len(w.records)-1]
		w.change(have, r.Record)
	case Update, Delete:
		if have != nil && r.Record.Version != 0 && r.Record.Version != have.Version {
			answer.outcome = Conflict
			return
		}
		if have != nil && r.Verb == Delete {
			w.remove(have)
			return
		}
		if have != nil {
			w.change(have, r.Record)
		}
	}
	if have == nil {
		answer.outcome = NotFound
		return
	}
	rec := have.Record
	answer.rec = &rec
}

// change stores a Lease, and has every watch tell of it.
func (w *world) change(have *stored, rec Record) {
	if have.Version > 0 && have.Holder == "" && have.Next != "" && rec.Holder != "" && podOf(rec.Holder) != have.Next &&
		w.now-have.changed < time.Duration(float64(realRules.Reserve)/1.1) {
		w.breach("reservation: %s takes %s, which is given to %s", rec.Holder, rec.Name, have.Next)
	}
	if rec.Kind == Shard && rec.Holder != "" && rec.Holder != have.Holder {
		w.takeovers++
	}
	w.version++
	rec.Version = w.version
	have.Record, have.changed = rec, w.now
	w.tell(rec, OK)
}

func (w *world) remove(have *stored) {
	w.version++
	rec := have.Record
	rec.Version = w.version
	*have = w.records[len(w.records)-1]
	w.records = w.records[:len(w.records)-1]
	w.tell(rec, NotFound)
}

func (w *world) tell(rec Record, outcome Outcome) {
	told := new(Record)
	*told = rec
	for i := range w.slots {
		s := &w.slots[i]
		if !s.up || w.now < s.cut || w.now < s.lossy && w.random.IntN(4) == 0 {
			continue
		}
		w.at(w.now+w.latency(s), event{kind: evSee, slot: i, life: s.life, rec: told, outcome: outcome})
	}
}

func (w *world) find(name string) *stored {
	for i := range w.records {
		if w.records[i].Name == name {
			return &w.records[i]
		}
	}
	return nil
}
