// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/propagate"
)

// A cluster is told from others by the UID of its namespace kube-system, which
// lasts as long as the cluster does. Behind the address of a member may one
// day be another cluster, or a proxy that answers for none: what is known of
// the member is not true of those, and nothing may be concluded from what they
// do not have.

// IdentityID is where the inventory keeps who a member is: the UID of its entry.
var IdentityID = propagate.ID{Group: "fairlead.dev", Kind: "Identity", Name: "kube-system"}

// believed is how long an identity need not be asked for again before an
// absence is believed.
const believed = 2 * time.Second

// identified is implemented by a Member that is a cluster with an API.
type identified interface{ identified() }

func (p *push) identified() {}

var kubeSystem = Ref{GroupVersionKind: namespaceKind, Name: "kube-system"}

// Expect says which cluster a name stands for, by the UID of its kube-system;
// "" is whichever it stood for first. It acts when the member is next met.
func (d *Dispatcher) Expect(cluster string, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expected == nil {
		d.expected = map[string]types.UID{}
	}
	d.expected[cluster] = uid
}

// unidentified is whether it must be found out who the member is, before
// anything is sent to it. The lock is held.
func (l *lane) unidentified() bool {
	return l.verified.IsZero() && hasIdentity(l.member)
}

func hasIdentity(m Member) bool {
	if dry, ok := m.(dryRun); ok {
		m = dry.Member
	}
	_, ok := m.(identified)
	return ok
}

// identify asks who the member is, and freezes the lane where it is not who
// it should be.
func (l *lane) identify(m Member, epoch int) {
	uid, err := l.askIdentity(m)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying--
	defer l.pump()
	if l.member != m || l.d.closed() {
		return
	}
	if err == nil {
		err = l.recognize(uid)
	}
	if err != nil {
		l.down(l.failed("reach", propagate.ID{}, err), epoch)
		return
	}
	l.verified = time.Now()
}

// askIdentity is the UID of the member's kube-system; "" where we may not know.
func (l *lane) askIdentity(m Member) (types.UID, error) {
	found, err := m.Get(l.d.ctx, kubeSystem)
	switch {
	case errors.Is(err, Forbidden):
		return "", nil
	case err != nil:
		return "", err
	case found == nil:
		return "", &Error{Reason: Unreachable, Err: errors.New("it says that it has no namespace kube-system, as every cluster has: it is not believed")}
	}
	return found.UID, nil
}

// recognize compares a member with who it was, and with who it should be. The
// lock is held.
func (l *lane) recognize(uid types.UID) error {
	if uid == "" {
		return nil
	}
	recorded := l.known[IdentityID].UID
	expected, other := l.d.claim(l.cluster, uid, recorded == uid)
	switch {
	case expected != "" && expected != uid:
		return &Error{Reason: Replaced, Err: fmt.Errorf("it is the cluster %s, and spec.id of its Cluster document says %s: nothing is sent to it", uid, expected)}
	case expected == "" && recorded != "" && recorded != uid:
		return &Error{Reason: Replaced, Err: fmt.Errorf("it is another cluster than before: the UID of kube-system is %s and was %s; nothing is sent to it. If it was rebuilt, say so in its Cluster document: spec.id: %s", uid, recorded, uid)}
	case other != "":
		return &Error{Reason: Replaced, Err: fmt.Errorf("it is the same cluster as %s (kube-system %s): nothing is sent to it under this name", other, uid)}
	}
	if recorded == uid {
		return nil
	}
	if recorded != "" {
		// What we knew was of a cluster that is no more.
		for id := range l.known {
			l.forget(id)
		}
		l.forgetNamespaces()
		l.contacted = false
	}
	e := Entry{APIVersion: "v1", UID: uid}
	l.know(IdentityID, &e)
	if !l.dry() {
		l.d.saver.put(l.cluster, IdentityID, &e)
	}
	return nil
}

// forget drops an entry of the inventory. The lock is held.
func (l *lane) forget(id propagate.ID) {
	l.know(id, nil)
	if !l.dry() {
		l.d.saver.put(l.cluster, id, nil)
	}
}

// claim notes that a name stands for a cluster. It returns which one it should
// stand for, and the other name that stands for it already. A name that did so
// in an earlier process comes before one that did not.
func (d *Dispatcher) claim(cluster string, uid types.UID, before bool) (expected types.UID, other string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.identities == nil {
		d.identities = map[types.UID]string{}
	}
	other = d.identities[uid]
	if _, stays := d.lanes[other]; other == "" || !stays || before {
		d.identities[uid] = cluster
	}
	if other == cluster || d.lanes[other] == nil {
		other = ""
	}
	return d.expected[cluster], other
}

// confirm is asked before it is believed that an object is not there: the
// member must still be who it was.
func (l *lane) confirm(m Member) error {
	l.mu.Lock()
	recorded, verified := l.known[IdentityID].UID, l.verified
	l.mu.Unlock()
	if recorded == "" || time.Since(verified) < believed || !hasIdentity(m) {
		return nil
	}
	uid, err := l.askIdentity(m)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.recognize(uid); err != nil {
		return err
	}
	l.verified = time.Now()
	return nil
}
