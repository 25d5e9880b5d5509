// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
)

func (l *Loop) report(level Level, format string, args ...any) {
	l.opt.Report(Line{Level: level, Text: fmt.Sprintf(format, args...)})
}

// once reports a failure under a key when it is new, and says when it is over.
// The same problem in the same words is not told twice.
func (l *Loop) once(key string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if l.isNew(key, text) && text != "" {
		l.report(Warn, "%s", text)
	}
}

// isNew notes what is reported under a key, and says whether it differs from
// what was. Dispatch reports from many goroutines.
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

// keepEvents records from here on what is reported.
func (l *Loop) keepEvents() {
	if l.opt.DryRun {
		return // nothing of it is done
	}
	l.events = newEventLog(l.opt.StateDir, l.opt.Now, l.opt.Report)
	l.events.at(l.state.Accepted)
	l.opt.Report = l.events.report
}

// refusal tells why the head contributes nothing.
func (l *Loop) refusal() {
	l.events.at(l.state.Accepted)
	r := l.state.Refusal
	if r == nil {
		l.once("refusal", nil)
		return
	}
	if !l.isNew("refusal", r.Commit) {
		return
	}
	what := Refused
	if r.Guard != nil {
		what = HeldBack
	}
	for _, line := range RefusalLines(&l.state) {
		l.opt.Report(Line{Level: Warn, Text: line, What: what, Note: line, Commit: r.Commit})
	}
}

// frozen tells what is broken, and what runs instead.
func (l *Loop) frozen() {
	told := map[string]bool{}
	for _, f := range l.state.Broken() {
		key := "frozen/" + f.String()
		if told[key] = true; l.isNew(key, f.String()) {
			l.report(Warn, "%s", f)
		}
	}
	l.telling.Lock()
	defer l.telling.Unlock()
	maps.DeleteFunc(l.reported, func(key, _ string) bool { return strings.HasPrefix(key, "frozen/") && !told[key] })
}

// RefusalLines say, one per reason, why a state's head is refused or held.
func RefusalLines(s *propagate.State) []string {
	r := s.Refusal
	if r == nil {
		return nil
	}
	var lines []string
	for _, p := range r.Problems {
		verdict := "refused: "
		if r.Guard != nil {
			verdict = "" // the guard's own problems say that it is held
		}
		lines = append(lines, fmt.Sprintf("commit %s is %s%s", short(r.Commit), verdict, p.Error()))
	}
	return append(lines, fmt.Sprintf("the fleet stays as of %s", cmp.Or(short(s.Accepted), "before the first commit")))
}

// outcomes reports what the members do not have yet.
func (l *Loop) outcomes() {
	for _, o := range l.dispatcher.Outcomes() {
		l.outcome(o)
	}
}

// outcomeKey tells outcomes from the other things that are reported once.
func outcomeKey(cluster string, id propagate.ID) string { return "outcome/" + cluster + "/" + id.Key() }

func (l *Loop) outcome(o dispatch.Outcome) {
	if o.Err == nil {
		return
	}
	text := o.Err.Error()
	if o.Waiting > 0 {
		text = fmt.Sprintf("%s (%s waiting)", text, plural(o.Waiting, "object"))
	}
	key := outcomeKey(o.Cluster, o.ID)
	if !l.isNew(key, text) {
		return
	}
	l.opt.Report(Line{Level: Warn, Cluster: o.Cluster, Object: o.ID, Text: text, What: Failed, Note: cause(o.Err, text)})
}

// cause is a failure without the object and the cluster that it is about.
func cause(err error, text string) string {
	var failure *dispatch.Error
	if !errors.As(err, &failure) {
		return text
	}
	return failure.Op + ": " + failure.Err.Error()
}

// acted passes on what dispatch does. Failures are told by outcomes, once; an
// act that goes well ends them, and one that comes again is told again.
func (l *Loop) acted(e dispatch.Event) {
	if watching := strings.HasPrefix(e.Op, "watch "); watching && e.Err != nil {
		// A member that is away is told by its outcome, and watched when it is back.
		if errors.Is(e.Err, dispatch.Forbidden) || errors.Is(e.Err, dispatch.NotServed) {
			l.once(e.Op+" on "+e.Cluster, fmt.Errorf("%s: cannot %s, so what is changed by hand is not noticed: %w", e.Cluster, e.Op, e.Err))
		}
		return
	}
	switch {
	case e.Op == "look" && e.Err != nil:
		l.once("look on "+e.Cluster, fmt.Errorf("%s: it cannot be looked at, so what is changed by hand there is not noticed: %w", e.Cluster, e.Err))
		return
	case e.Op == "publish":
		l.opt.Report(Line{Level: Info, Cluster: e.Cluster, Text: fmt.Sprintf("%s: published as %s", e.Cluster, e.Note), What: Noted, Note: "published as " + e.Note})
		return
	case e.Op == "warn" && e.Cluster == "":
		l.opt.Report(Line{Level: Warn, Text: e.Note})
		return
	case e.Op == "warn":
		l.opt.Report(Line{Level: Warn, Cluster: e.Cluster, Text: fmt.Sprintf("%s: %s", e.Cluster, e.Note), What: Noted, Note: e.Note})
		return
	case e.Err != nil || e.ID == (propagate.ID{}):
		return
	}
	l.isNew(outcomeKey(e.Cluster, e.ID), "")
	l.isNew(outcomeKey(e.Cluster, propagate.ID{}), "")
	text := fmt.Sprintf("%s: %s %s", e.Cluster, e.Op, e.ID)
	if e.Note != "" {
		text += ": " + e.Note
	}
	level := Act
	if e.Note != "" {
		level = Info
	}
	l.opt.Report(Line{Level: level, Cluster: e.Cluster, Object: e.ID, Text: text, What: acts[e.Op], Note: e.Note})
}

// plural reads "1 commit" or "2 commits".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func compare(a, b propagate.ID) int { return cmp.Compare(a.Key(), b.Key()) }
