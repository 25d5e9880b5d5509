// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
)

// Event is one thing that the loop did, or that prevented it from doing something.
// The line of text, the log entry and the entry of the record all derive from it.
type Event struct {
	Severity Severity
	Type     eventlog.Type
	// Act is set if something was done to an object.
	Act *Act
	// Cluster and Object are empty when the event is about neither.
	Cluster string
	Object  object.ID
	// Commit is set when the event is about one.
	Commit string
	// Note is what the other fields do not say.
	Note string
	// Err is why something failed; it names the cluster and the object by itself.
	Err error
	// Waiting is how many objects wait because of the failure of a cluster.
	Waiting int
}

// Severity is how important an event is.
type Severity int

// Warnings are what an operator must know, infos what is good to know, and details
// every single act.
const (
	Warning Severity = iota
	Info
	Detail
)

// Act is what was done to one object on one cluster, or was not because of Err.
type Act struct {
	Verb    dispatch.Op // OpApply, OpAdopt, OpRestore, OpDelete or OpOrphan
	Object  object.ID
	Cluster string
	Commit  string // that the fleet was at
	Err     error
}

// recorded are the types of acts in the record.
var recorded = map[dispatch.Op]eventlog.Type{
	dispatch.OpApply:   eventlog.Applied,
	dispatch.OpAdopt:   eventlog.Adopted,
	dispatch.OpRestore: eventlog.Restored,
	dispatch.OpDelete:  eventlog.Deleted,
	dispatch.OpOrphan:  eventlog.LeftRunning,
}

// String returns the event as one line.
func (e Event) String() string { return printable.Line(e.text()) }

func (e Event) text() string {
	switch {
	case e.Act != nil && e.Note == "":
		return fmt.Sprintf("%s: %s %s", e.Cluster, e.Act.Verb, e.Object)
	case e.Act != nil:
		return fmt.Sprintf("%s: %s %s: %s", e.Cluster, e.Act.Verb, e.Object, e.Note)
	case e.Err != nil && e.Waiting > 0:
		return e.unreached()
	case e.Err != nil:
		return e.Err.Error()
	case e.Cluster != "":
		return e.Cluster + ": " + e.Note
	}

	return e.Note
}

// unreached says of a cluster that does not answer how much waits for it.
func (e Event) unreached() string {
	waits := "1 object waits"
	if e.Waiting > 1 {
		waits = fmt.Sprintf("%d objects wait", e.Waiting)
	}
	if failure := (*member.Error)(nil); errors.As(e.Err, &failure) && failure.Reason == member.Unreachable {
		return fmt.Sprintf("%s does not answer: %v; %s", e.Cluster, failure.Err, waits)
	}
	return fmt.Sprintf("%v; %s", e.Err, waits)
}

// record returns the event for the record.
func (e Event) record() eventlog.Event {
	r := eventlog.Event{Type: cmp.Or(e.Type, eventlog.Noted), Commit: e.Commit, Cluster: e.Cluster, Text: printable.Line(e.Note)}
	if e.Object != (object.ID{}) {
		o := eventlog.Object(e.Object)
		r.Object = &o
	}
	if e.Err == nil {
		return r
	}

	// The cluster and the object stand beside it.
	r.Text = e.String()
	if failure := (*member.Error)(nil); errors.As(e.Err, &failure) {
		r.Text = printable.Line(failure.Op + ": " + failure.Err.Error())
	}

	return r
}
