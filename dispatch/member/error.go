// SPDX-License-Identifier: Apache-2.0

package member

import (
	"strings"
	"time"

	"github.com/fairlead/fairlead/object"
)

// Reason is what a caller branches on: errors.Is(err, dispatch.Foreign).
type Reason string

// The reasons. Those marked final are not mended by waiting.
const (
	Foreign      Reason = "Foreign"      // exists and is not ours; final
	Invalid      Reason = "Invalid"      // the member refuses the content; final
	Forbidden    Reason = "Forbidden"    // our credentials may not; final
	Unauthorized Reason = "Unauthorized" // our credentials are not accepted; final, of the whole member
	Contested    Reason = "Contested"    // somebody else keeps writing it; final
	Unrendered   Reason = "Unrendered"   // there is no manifest to send; final
	Unreachable  Reason = "Unreachable"  // no answer, or none of a Kubernetes API; of the whole member
	Replaced     Reason = "Replaced"     // it is another cluster than it should be; final, of the whole member
	Throttled    Reason = "Throttled"    // asked to slow down; of the whole member
	NotServed    Reason = "NotServed"    // the member does not serve the kind
	NoNamespace  Reason = "NoNamespace"  // the namespace is absent or terminating
	Gone         Reason = "Gone"         // the object that must be there is not
	Conflict     Reason = "Conflict"     // someone else wrote at the same moment
	Unavailable  Reason = "Unavailable"  // the member answered that it could not
	Pending      Reason = "Pending"      // not acknowledged yet
	Withheld     Reason = "Withheld"     // this process may not write to it now; of the whole member
	Waiting      Reason = "Waiting"      // kept until other clusters have acknowledged theirs
)

// Error makes a Reason a target of errors.Is.
func (r Reason) Error() string { return string(r) }

// Final reports whether waiting cannot mend it.
func (r Reason) Final() bool {
	switch r {
	case Foreign, Invalid, Forbidden, Unauthorized, Unrendered, Contested, Replaced:
		return true
	}
	return false
}

// OfMember reports whether the failure is the whole member's.
func (r Reason) OfMember() bool {
	return r == Unreachable || r == Unauthorized || r == Throttled || r == Replaced || r == Withheld
}

// Error says what could not be done to which object of which cluster, and why.
type Error struct {
	Cluster string
	ID      object.ID // zero: the cluster as a whole
	Op      string
	Reason  Reason
	// RetryAfter is how long the member asks to be left alone.
	RetryAfter time.Duration
	Err        error
	// silent: there was no answer at all.
	Silent bool
}

// Error reads "apply Deployment shop/web on eu-1: cause".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.ID != (object.ID{}) {
		b.WriteString(" " + e.ID.String())
	}
	if e.Cluster != "" {
		b.WriteString(" on " + e.Cluster)
	}
	return strings.TrimSpace(b.String()) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the error's Reason.
func (e *Error) Is(target error) bool {
	r, ok := target.(Reason)
	return ok && r == e.Reason
}
