// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/propagate"
)

// contact reads what the member holds of ours, before anything is sent to a
// member of which nothing is known. What cannot be read ends it: an object
// that we did not see may be there.
func (l *lane) contact(m Member, fleet Fleet, level, epoch int) {
	began := time.Now()
	var at Position
	var err error
	batched, isBatched := m.(together)
	if isBatched {
		at, err = l.position(batched, true)
	}
	var ours map[propagate.ID]Entry
	var seen *round
	if err == nil {
		ours, seen, err = l.readMarks(m, fleet)
	}
	var failure *Error
	if err != nil {
		failure = l.failed("list", propagate.ID{}, err)
	}
	l.d.log(Event{Cluster: l.cluster, Op: "contact", Err: asError(failure), Took: time.Since(began)})

	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying--
	defer l.pump()
	if l.member != m || l.d.closed() {
		return
	}
	if failure != nil {
		l.down(failure, epoch)
		return
	}
	l.well(epoch)
	for id, e := range ours {
		l.know(id, &e)
		if !l.dry() {
			l.d.saver.put(l.cluster, id, &e)
		}
	}
	if isBatched {
		l.standAt(at)
	}
	if l.onlyKnown && len(ours) == 0 {
		// A member without our marks gets nothing of a head that is refused
		// or held. The next Sync asks it again.
		l.fleet, l.fresh = nil, true
		return
	}
	if l.onlyKnown {
		if err := l.intend(); err != nil {
			l.down(l.failed("save", propagate.ID{}, err), l.epoch)
			return
		}
	}
	l.contacted = true
	if l.level == level {
		l.round = seen
	}
	for id := range l.fleet.Desires(l.cluster) {
		l.enqueue(id)
	}
}

// intend saves the intents that Sync left out because the member was not
// known to bear our marks.
func (l *lane) intend() error {
	if l.dry() {
		return nil
	}
	changed := map[propagate.ID]*Entry{}
	for id, want := range l.fleet.Desires(l.cluster) {
		if _, ok := l.known[id]; !ok && want.Verb == Apply {
			changed[id] = &Entry{APIVersion: want.APIVersion}
			l.know(id, changed[id])
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return l.d.inventory.Save(map[string]map[propagate.ID]*Entry{l.cluster: changed})
}

// intendAgain saves that an object which is gone is to be made again, before
// it is: from then on our label says whether what stands there is ours.
func (l *lane) intendAgain(id propagate.ID, apiVersion string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dry() {
		return nil
	}
	e := Entry{APIVersion: apiVersion}
	if err := l.d.inventory.Save(map[string]map[propagate.ID]*Entry{l.cluster: {id: &e}}); err != nil {
		return &Error{Reason: Unavailable, Err: fmt.Errorf("save: %w", err)}
	}
	l.know(id, &e)
	l.d.saver.put(l.cluster, id, &e) // after what may be on its way to the file
	return nil
}
