// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// flapWindow and flapLimit say when an object flaps: it is restored so many times
// within that time, and then left to whoever else writes it.
const (
	flapWindow = 10 * time.Minute
	flapLimit  = 5
)

// drifts are the objects that are not as they were acknowledged. It is told the
// time. Its owner holds the lock.
type drifts struct {
	// how each of them differs.
	how map[object.ID]string
	// restored are the times at which an object was restored lately.
	restored map[object.ID][]time.Time
	// late is what a watch told while a job was under way, or a hold: it is judged
	// afterwards.
	late map[object.ID]member.WatchEvent
}

func newDrifts() drifts {
	return drifts{how: map[object.ID]string{}, restored: map[object.ID][]time.Time{}, late: map[object.ID]member.WatchEvent{}}
}

func (d *drifts) note(id object.ID, how string) { d.how[id] = how }

// lost adds which fields somebody else has written.
func (d *drifts) lost(id object.ID, fields string) {
	if fields != "" {
		d.how[id] += ": " + fields
	}
}

func (d *drifts) has(id object.ID) bool { return d.how[id] != "" }

// mayRestore reports whether an object may be restored once more, and counts it.
func (d *drifts) mayRestore(id object.ID, now time.Time) bool {
	times := d.restored[id]
	for len(times) > 0 && now.Sub(times[0]) > flapWindow {
		times = times[1:]
	}
	if len(times) >= flapLimit {
		d.restored[id] = times
		return false
	}
	d.restored[id] = append(times, now)
	return true
}

// remembers reports whether more is known of an object than what the member
// holds.
func (d *drifts) remembers(id object.ID) bool {
	_, told := d.late[id]
	return told || d.restored[id] != nil
}

// settled notes that an object is as it was acknowledged.
func (d *drifts) settled(id object.ID) { delete(d.how, id) }

// changed forgets how often an object was restored: something else is wanted.
func (d *drifts) changed(id object.ID) { delete(d.restored, id) }

// forget is for an object that is not ours any more.
func (d *drifts) forget(id object.ID) {
	delete(d.how, id)
	delete(d.restored, id)
}

// takeLate is what was told of an object while it could not be judged.
func (d *drifts) takeLate(id object.ID) (member.WatchEvent, bool) {
	e, ok := d.late[id]
	delete(d.late, id)
	return e, ok
}
