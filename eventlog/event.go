// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"time"

	"github.com/fairlead/fairlead/object"
)

// Event is one thing that a loop did, or that prevented it from doing something.
type Event struct {
	Time time.Time `json:"time"`
	// Commit is the last one that was accepted by then. For an event about a commit
	// that is refused, or awaits confirmation, it is that commit.
	Commit  string  `json:"commit,omitempty"`
	Type    Type    `json:"what"`
	Cluster string  `json:"cluster,omitempty"`
	Object  *Object `json:"object,omitempty"`
	Text    string  `json:"text,omitempty"`
}

// Object is what an event is about.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ID is the object's identity.
func (o Object) ID() object.ID { return object.ID(o) }

// Type says what happened.
type Type string

// The types of events.
const (
	Applied     Type = "applied"
	Adopted     Type = "adopted"  // it was not ours before
	Restored    Type = "restored" // drift was reverted
	Deleted     Type = "deleted"
	LeftRunning Type = "left-running" // without our marks
	Failed      Type = "failed"
	// Refused and AwaitingConfirmation are about a commit: it is broken, or it
	// deletes more than the guard lets pass.
	Refused              Type = "refused"
	AwaitingConfirmation Type = "awaiting-confirmation"
	Noted                Type = "noted"
)
