// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// A cluster is told from others by the UID of its namespace kube-system, which
// lasts as long as the cluster does. One day another cluster may answer at the
// address of a member, or a proxy that speaks for none: what is known of the member
// is not true of those, and what they lack proves nothing.

// IdentityID is where the inventory keeps who a member is: the UID of its entry.
var IdentityID = object.ID{Group: "fairlead.dev", Kind: "Identity", Name: "kube-system"}

// believed is how long an identity need not be asked for again before an
// absence is believed.
const believed = 2 * time.Second

var kubeSystem = member.Ref{GroupVersionKind: member.NamespaceKind, Name: "kube-system"}

// identity is who a worker's member is.
type identity struct {
	w        *worker
	verified time.Time // when it was last who it should be; zero when that is not known
	ahead    *asking   // under way for verify; nil without one
}

// asking is the question who a member is.
type asking struct {
	m    member.Member
	done chan struct{} // closed when uid and err are known
	uid  types.UID
	at   time.Time
	err  error
}

// doubt has the member asked who it is before anything is sent to it. The lock is
// held.
func (i *identity) doubt() { i.verified, i.ahead = time.Time{}, nil }

// unknown reports whether it must be found out who the member is. The lock is
// held.
func (i *identity) unknown() bool {
	return i.verified.IsZero() && member.Is[member.Identified](i.w.member)
}

// askAhead begins to ask who the member is before its first intents are saved. Nothing is
// sent on the answer: verify takes it, after they are.
func (i *identity) askAhead() {
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	if i.w.member == nil || !i.unknown() || i.w.inFlight > 0 || i.w.d.closed() || i.w.breaker.state(time.Now()) == open {
		return
	}

	a := &asking{m: i.w.member, done: make(chan struct{})}
	i.ahead = a
	go func() {
		defer close(a.done)
		a.uid, a.err = i.ask(a.m)
		a.at = time.Now()
	}()
}

// forgetAhead has verify ask anew.
func (i *identity) forgetAhead() {
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.ahead = nil
}

// answer is what a member says of who it is, to a question that is under way or a new
// one, and when it said so.
func (i *identity) answer(m member.Member) (types.UID, time.Time, error) {
	i.w.mu.Lock()
	a := i.ahead
	i.ahead = nil
	i.w.mu.Unlock()
	if a == nil || a.m != m {
		uid, err := i.ask(m)
		return uid, time.Now(), err
	}

	<-a.done
	return a.uid, a.at, a.err
}

// verify asks who the member is, and trips the breaker where it is not who it
// should be.
func (i *identity) verify(m member.Member, generation int) {
	w := i.w
	defer w.d.answered(w.cluster)
	uid, at, err := i.answer(m)
	if err == nil && uid != "" {
		w.d.awaitNames(w.cluster)
	}
	var of elsewhere
	if err == nil {
		of, err = w.d.claimElsewhere(w.cluster, uid)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight--
	defer w.schedule()
	if w.member != m || w.d.closed() {
		return
	}

	if err == nil {
		err = i.recognize(uid, of)
	}
	if err != nil {
		w.trip(w.failed("reach", object.ID{}, err), generation)
		return
	}
	i.verified = at
}

// ask is the UID of the member's kube-system; "" where we may not know.
func (i *identity) ask(m member.Member) (types.UID, error) {
	found, err := m.Get(i.w.d.ctx, kubeSystem)
	switch {
	case errors.Is(err, member.Forbidden):
		return "", nil
	case err != nil:
		return "", err
	case found == nil:
		return "", &member.Error{Reason: member.Unreachable, Err: errors.New("it reports no namespace kube-system, which every cluster has, so its answers are not trusted")}
	}
	return found.UID, nil
}

// recognize compares a member with who it was, and with who it should be. of is what
// other processes know of it. The lock is held.
func (i *identity) recognize(uid types.UID, of elsewhere) error {
	if uid == "" {
		return nil
	}

	w := i.w
	known := w.holdings.uid(IdentityID)
	recorded := cmp.Or(known, of.recorded)
	expected, other := w.d.claim(w.cluster, uid, recorded, of.other)
	switch {
	case expected != "" && expected != uid:
		return &member.Error{Reason: member.Replaced, Err: fmt.Errorf("it is the cluster %s, and spec.id of its Cluster document says %s: nothing is sent to it", uid, expected)}
	case expected == "" && recorded != "" && recorded != uid:
		return &member.Error{Reason: member.Replaced, Err: fmt.Errorf("it is another cluster than before: the UID of kube-system is %s and was %s; nothing is sent to it. If it was rebuilt, say so in its Cluster document: spec.id: %s", uid, recorded, uid)}
	case other != "":
		return &member.Error{Reason: member.Replaced, Err: fmt.Errorf("it is the same cluster as %s (kube-system %s): nothing is sent to it under this name", other, uid)}
	case known == uid:
		return nil
	}

	if recorded != "" && recorded != uid {
		// What we knew was of a cluster that is no more.
		for id := range w.holdings.ids() {
			w.record(id, nil)
		}
		for id := range w.holdings.left {
			w.record(id, nil)
		}
		w.namespaces.known.forget()
		w.contacted = false
	}
	w.record(IdentityID, &Entry{APIVersion: "v1", UID: uid})
	return nil
}

// confirm is asked before it is believed that an object is not there: the
// member must still be who it was.
func (i *identity) confirm(m member.Member) error {
	w := i.w
	w.mu.Lock()
	recorded, verified := w.holdings.uid(IdentityID), i.verified
	w.mu.Unlock()
	if recorded == "" || time.Since(verified) < believed || !member.Is[member.Identified](m) {
		return nil
	}

	uid, err := i.ask(m)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if uid != "" && uid != recorded && w.d.opt.Claim != nil {
		// Which name has that cluster is asked when nothing is in flight.
		i.doubt()
		return &member.Error{Reason: member.Withheld, Err: fmt.Errorf("the UID of kube-system is %s and was %s", uid, recorded)}
	}
	if err := i.recognize(uid, elsewhere{}); err != nil {
		return err
	}
	i.verified = time.Now()
	return nil
}
