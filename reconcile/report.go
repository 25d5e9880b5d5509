// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
)

// tell records an event and reports it.
func (l *Loop) tell(e Event) {
	l.events.Add(e.record())
	l.opt.Report(e)
}

func (l *Loop) info(format string, args ...any) {
	l.tell(Event{Severity: Info, Note: fmt.Sprintf(format, args...)})
}

func (l *Loop) warn(err error) { l.tell(Event{Type: eventlog.Failed, Err: err}) }

// once warns of a failure under a key, unless the same text was the last one under
// that key.
func (l *Loop) once(key string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if l.isNew(key, text) && err != nil {
		l.warn(err)
	}
}

// isNew stores a text under a key, and reports whether it differs from the one before.
// Dispatch calls it from many goroutines.
func (l *Loop) isNew(key, text string) bool {
	l.telling.Lock()
	defer l.telling.Unlock()
	if l.reported[key] == text {
		return false
	}

	l.reported[key] = text
	if text == "" {
		delete(l.reported, key)
	}

	return true
}

// openRecord starts the record of events.
func (l *Loop) openRecord() {
	if l.opt.DryRun {
		return // nothing is really done
	}
	// A failure to write the record is reported, but not recorded.
	l.events = eventlog.NewWriter(l.opt.StateDir, l.opt.Clock.Now, func(err error) { l.opt.Report(Event{Err: err}) })
	l.accepted()
}

// accepted stores the accepted commit for other goroutines.
func (l *Loop) accepted() {
	l.events.At(l.state.Accepted)
	l.telling.Lock()
	defer l.telling.Unlock()
	l.at = l.state.Accepted
}

func (l *Loop) commit() string {
	l.telling.Lock()
	defer l.telling.Unlock()
	return l.at
}

// refusal reports why the head is refused or awaits confirmation.
func (l *Loop) refusal() {
	l.accepted()
	r := l.state.Refusal
	if r == nil {
		l.once("refusal", nil)
		return
	}
	if !l.isNew("refusal", r.Commit) {
		return
	}

	verdict := eventlog.Refused
	if r.Guard != nil {
		verdict = eventlog.AwaitingConfirmation
	}
	for _, line := range history.RefusalLines(&l.state) {
		l.tell(Event{Type: verdict, Note: line, Commit: r.Commit})
	}
}

// maxTold is how many problems of frozen units are reported.
const maxTold = 100

// frozen reports which units are broken, and what runs instead.
func (l *Loop) frozen() {
	told := map[string]bool{}
	broken, more := l.state.Broken(), 0
	if len(broken) > maxTold {
		broken, more = broken[:maxTold], len(broken)-maxTold
	}
	for _, f := range broken {
		key := "frozen/" + f.String()
		if told[key] = true; l.isNew(key, f.String()) {
			l.tell(Event{Type: eventlog.Failed, Note: f.String()})
		}
	}

	if note := fmt.Sprintf("and %d more problems in units that stay as they were", more); more > 0 {
		if told["frozen/"] = true; l.isNew("frozen/", note) {
			l.tell(Event{Type: eventlog.Failed, Note: note})
		}
	}

	l.telling.Lock()
	defer l.telling.Unlock()
	maps.DeleteFunc(l.reported, func(key, _ string) bool { return strings.HasPrefix(key, "frozen/") && !told[key] })
}

// outcomes reports what the members do not have yet. What waits for other clusters
// is reported when it still does in the next round: most have answered by then.
func (l *Loop) outcomes() {
	waited := l.waited
	l.waited = map[string]bool{}
	for _, o := range l.dispatcher.Outcomes() {
		if key := outcomeKey(o.Cluster, o.ID); errors.Is(o.Err, member.Waiting) {
			l.waited[key] = true
			if !waited[key] {
				continue
			}
		}
		l.outcome(o)
	}
}

// outcomeKey returns the key of an outcome for isNew.
func outcomeKey(cluster string, id object.ID) string { return "outcome/" + cluster + "/" + id.Key() }

func (l *Loop) outcome(o dispatch.Outcome) {
	if o.Err == nil {
		return
	}
	e := Event{Type: eventlog.Failed, Cluster: o.Cluster, Object: o.ID, Err: o.Err, Waiting: o.Waiting}
	if errors.Is(o.Err, member.Waiting) {
		e.Type, e.Severity = eventlog.Noted, Info
	}
	if o.ID == (object.ID{}) {
		l.fallSilent(o.Cluster)
	}
	if l.isNew(outcomeKey(o.Cluster, o.ID), e.String()) {
		l.tell(e)
	}
}

// fallSilent notes since when a cluster does not answer.
func (l *Loop) fallSilent(cluster string) {
	l.telling.Lock()
	defer l.telling.Unlock()
	if l.silent[cluster].IsZero() {
		l.silent[cluster] = l.opt.Clock.Now()
	}
}

// silence reads " after 22s", and ends the silence of a cluster.
func (l *Loop) silence(cluster string) string {
	l.telling.Lock()
	defer l.telling.Unlock()
	since := l.silent[cluster]
	delete(l.silent, cluster)
	lasted := l.opt.Clock.Now().Sub(since).Round(time.Second)
	if since.IsZero() || lasted == 0 {
		return ""
	}
	return " after " + lasted.String()
}

// dispatched reports what dispatch does. Failures are reported once, by outcomes; a
// successful act ends them, so that one that recurs is reported again.
func (l *Loop) dispatched(e dispatch.Event) {
	defer l.hasMoved()
	switch e.Op {
	case dispatch.OpWatch:
		// A member that does not answer is reported by its outcome, and watched later.
		if errors.Is(e.Err, member.Forbidden) || errors.Is(e.Err, member.NotServed) {
			l.once("watch "+e.Kind+" on "+e.Cluster, fmt.Errorf("%s: cannot watch %s, so drift is not noticed: %w", e.Cluster, e.Kind, e.Err))
		}
	case dispatch.OpRelist:
		if e.Err != nil {
			l.once("relist on "+e.Cluster, fmt.Errorf("%s: cannot list what it holds, so drift is not noticed: %w", e.Cluster, e.Err))
		}
	case dispatch.OpPublish:
		l.tell(Event{Severity: Info, Cluster: e.Cluster, Note: "published as " + e.Note})
	case dispatch.OpWarn:
		l.tell(Event{Type: eventlog.Noted, Cluster: e.Cluster, Note: e.Note})
	default:
		l.acted(e)
	}
}

// acted reports an act on an object.
func (l *Loop) acted(e dispatch.Event) {
	if e.ID == (object.ID{}) {
		return
	}

	act := Act{Verb: e.Op, Object: e.ID, Cluster: e.Cluster, Commit: l.commit(), Err: e.Err}
	l.note(act)
	if e.Err != nil {
		return
	}

	l.count(e.Op)
	l.isNew(outcomeKey(e.Cluster, e.ID), "")
	if l.isNew(outcomeKey(e.Cluster, object.ID{}), "") {
		l.tell(Event{Severity: Info, Cluster: e.Cluster, Note: "answers again" + l.silence(e.Cluster)})
	}
	severity := Detail
	if e.Note != "" {
		severity = Info
	}
	l.tell(Event{Severity: severity, Type: recorded[e.Op], Act: &act, Cluster: e.Cluster, Object: e.ID, Note: e.Note})
}

// count adds an act to the tally.
func (l *Loop) count(op dispatch.Op) {
	l.telling.Lock()
	defer l.telling.Unlock()
	if l.tally == nil {
		l.tally = tally{}
	}
	l.tally[op]++
}

// plural reads "1 commit" or "2 commits".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func compare(a, b object.ID) int { return cmp.Compare(a.Key(), b.Key()) }
