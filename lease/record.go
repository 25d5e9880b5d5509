// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"strings"
	"time"
)

// Kind is what a Lease is for: the value of the label fairlead.dev/lease.
type Kind string

// The Leases of a fleet.
const (
	Shard   Kind = "shard"
	Replica Kind = "replica"
	Leader  Kind = "leader"
)

// Labels and annotations of Leases.
const (
	LabelFleet       = "fairlead.dev/fleet"
	LabelLease       = "fairlead.dev/lease"
	AnnotationSent   = "fairlead.dev/sent"
	AnnotationEngine = "fairlead.dev/engine"
	AnnotationNext   = "fairlead.dev/next"
)

// Record is what a Lease says, as far as the machine cares.
type Record struct {
	Name    string
	Kind    Kind
	Version int64 // the resourceVersion: a later one is larger; 0 is no Lease

	Holder      string // the identity of a replica, or empty: given back
	Transitions int32  // the epoch: one more with every holder
	Duration    time.Duration

	Sent   string // the newest commit of which something may have been sent
	Engine string // what decided and rendered it
	Next   string // the pod that it is given to
}

// podOf is the pod of an identity.
func podOf(identity string) string {
	if i := strings.LastIndexByte(identity, '_'); i >= 0 {
		return identity[:i]
	}
	return identity
}

// Verb is what is asked of the API server.
type Verb string

// The requests of a machine. An Update and a Delete carry the Version that was seen,
// and are refused if it is not the present one.
const (
	Get    Verb = "get"
	List   Verb = "list"
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Request is one that the machine wants sent, within Rules.Request.
type Request struct {
	ID     uint64
	Verb   Verb
	Record Record
}

// Outcome is how a request ended.
type Outcome int

// Failed says nothing about what the server did: the request may have taken effect,
// and it may still do so.
const (
	OK Outcome = iota
	Conflict
	NotFound
	Failed
)

// Answer is how a request ended, and what the server has now if it was OK.
type Answer struct {
	Request Request
	Outcome Outcome
	Record  Record
}

// History is the branch as this replica has folded it.
type History interface {
	// Position counts the commits up to this one, if it is on the branch.
	Position(commit string) (int, bool)

	// Head is the newest one.
	Head() string

	// Replaces reports, of a commit that is not on the branch, whether the branch says
	// that it may be left behind.
	Replaces(commit string) bool
}

// NoticeKind is what the machine tells the loop.
type NoticeKind string

// Notices.
const (
	Opened   NoticeKind = "opened"   // the shard is ours and its gate is open: bring its clusters up to date
	Draining NoticeKind = "draining" // the gate is closed: say Drained when nothing is in flight and all is saved
	Lost     NoticeKind = "lost"     // the shard is not ours any more
	Behind   NoticeKind = "behind"   // somebody has sent a commit that is not folded here: fetch
)

// Notice is about one shard, or about the leader's Lease.
type Notice struct {
	Kind   NoticeKind
	Lease  string
	Shard  int // -1: the leader
	Shards int
	Commit string
}

// Output is what has to be done after a step.
type Output struct {
	Requests []Request
	Notices  []Notice
	Wake     time.Duration // when to step again, if nothing happens before
	Done     bool          // stopped, and everything is given back
}
