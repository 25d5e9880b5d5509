// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"github.com/fairlead/fairlead/object"
)

// Op is what an event is about.
type Op string

// Acts on one object.
const (
	OpApply   Op = "apply"
	OpAdopt   Op = "adopt"   // it was somebody else's
	OpRestore Op = "restore" // it was changed by hand
	OpDelete  Op = "delete"
	OpOrphan  Op = "orphan" // left running, without our marks
)

// What concerns a member as a whole.
const (
	OpContact Op = "contact" // what it holds of ours was read
	OpWatch   Op = "watch"   // a watch over Event.Kind failed
	OpRelist  Op = "relist"  // a look at what it holds failed
	OpPublish Op = "publish" // a batch has reached it
	OpWarn    Op = "warn"
)

// Event is one act on a member, or a failure to act.
type Event struct {
	Cluster string
	ID      object.ID // zero: of the member as a whole
	Op      Op
	Kind    string // of OpWatch
	Note    string // what is worth saying although it went well
	Err     error  // a *member.Error
	Took    time.Duration
}
