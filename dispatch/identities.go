// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
)

// patience is how long a cluster that is new waits for one that is new as well, and
// comes before it by name, to say who it is.
const patience = 5 * time.Second

// identities are which clusters names stand for. Where two names stand for one
// cluster, the one keeps it of which the records say that it was that cluster; where
// they say so of neither, the one that git says it of (spec.id); and where that
// says nothing, the first by name. The dispatcher's lock guards it.
type identities struct {
	known    map[string]types.UID // what the records say, by name
	expected map[string]types.UID // what git says
	// called are the names that known or expected had say so of a cluster, and maybe do
	// not any more.
	called map[types.UID]map[string]bool
	// asked are names of which nothing is known, and that are about to be asked.
	asked map[string]bool
}

func newIdentities() identities {
	return identities{known: map[string]types.UID{}, expected: map[string]types.UID{}, called: map[types.UID]map[string]bool{}, asked: map[string]bool{}}
}

// note notes a name that is said to stand for a cluster.
func (i *identities) note(of map[string]types.UID, name string, uid types.UID) {
	of[name] = uid
	if uid == "" {
		return // nobody has said so
	}
	if i.called[uid] == nil {
		i.called[uid] = map[string]bool{}
	}
	i.called[uid][name] = true
}

// namesOf are the names that may stand for a cluster, sorted: of thousands of members one
// or two.
func (i *identities) namesOf(uid types.UID, there func(name string) bool) (names []string) {
	for name := range i.called[uid] {
		if there(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (i *identities) forget(name string) {
	if uid := i.known[name]; i.expected[name] != uid {
		delete(i.called[uid], name)
		if len(i.called[uid]) == 0 {
			delete(i.called, uid)
		}
	}
	delete(i.known, name)
	delete(i.asked, name)
}

// is reports whether what is known of a name says that it is a cluster. One that
// git has stand for another cluster by now is that one.
func (i *identities) is(name string, uid types.UID) bool {
	expected := i.expected[name]
	return i.known[name] == uid && (expected == "" || expected == uid)
}

// owner is the name, other than this one, that keeps a cluster; "" when none does.
func (i *identities) owner(name string, uid types.UID, names []string) string {
	for _, other := range names {
		if other != name && i.is(other, uid) && (!i.is(name, uid) || other < name) {
			return other
		}
	}
	if i.is(name, uid) || i.expected[name] == uid {
		return ""
	}
	for _, other := range names {
		if other != name && i.expected[other] == uid {
			return other
		}
	}
	return ""
}

// Expect says which cluster a name stands for, by the UID of its kube-system;
// "" is whichever it stood for first. It acts when the member is next met.
func (d *Dispatcher) Expect(cluster string, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.identities.note(d.identities.expected, cluster, uid)
}

// remember notes what the records say of a name.
func (d *Dispatcher) remember(cluster string, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if uid != "" {
		d.identities.note(d.identities.known, cluster, uid)
	}
}

// claim notes that a name stands for a cluster, if it may. It returns which one git
// has it stand for, and the other name that keeps it; elsewhere is one in another process.
func (d *Dispatcher) claim(cluster string, uid, recorded types.UID, elsewhere string) (expected types.UID, other string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := &d.identities
	expected = i.expected[cluster]
	if expected != "" && expected != uid || expected == "" && recorded != "" && recorded != uid {
		return expected, ""
	}
	if elsewhere != "" {
		return expected, elsewhere
	}
	names := i.namesOf(uid, func(name string) bool { return d.workers[name] != nil })
	if other = i.owner(cluster, uid, names); other == "" {
		i.note(i.known, cluster, uid)
	}
	return expected, other
}

// elsewhere is what other processes know of a name: which cluster it was, and which other
// name has the cluster that it is.
type elsewhere struct {
	recorded types.UID
	other    string
}

// claimElsewhere has no other process send anything to a cluster under another name. What
// spec.id does not allow is not claimed.
func (d *Dispatcher) claimElsewhere(cluster string, uid types.UID) (of elsewhere, err error) {
	d.mu.Lock()
	expected := d.identities.expected[cluster]
	d.mu.Unlock()
	if d.opt.Claim == nil || uid == "" || expected != "" && expected != uid {
		return elsewhere{}, nil
	}

	of.recorded, of.other, err = d.opt.Claim(d.ctx, cluster, uid)
	if err != nil {
		err = &member.Error{Reason: member.Withheld, Err: fmt.Errorf("that no other name has this cluster is not certain, so nothing is sent to it: %w", err)}
	}
	return of, err
}

// expectAnswers notes which clusters are about to be asked who they are for the first
// time, before the first of them is.
func (d *Dispatcher) expectAnswers(workers []*worker, fleet Fleet) {
	var asked []string
	for _, w := range workers {
		if w.willIntroduce(fleet) {
			asked = append(asked, w.cluster)
		}
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range asked {
		if d.workers[name] != nil {
			d.identities.asked[name] = true
		}
	}
}

// willIntroduce reports whether the next Sync has the member asked who it is, of which
// nothing is known.
func (w *worker) willIntroduce(fleet Fleet) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.member == nil || !w.fresh || w.contacted || !member.Is[member.Identified](w.member) {
		return false
	}
	for range fleet.Wants(w.cluster) {
		return true
	}
	return false
}

// answered notes that a cluster was asked, whatever it said.
func (d *Dispatcher) answered(cluster string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.identities.asked[cluster] {
		delete(d.identities.asked, cluster)
		if !d.before(cluster) {
			d.changed.Broadcast() // else each waits for another that comes before it
		}
	}
}

// awaitNames has a cluster that is new wait for those that are new as well and come
// before it, so that which of two names gets a cluster does not depend on which
// answers first. One that does not answer is not waited for much longer.
func (d *Dispatcher) awaitNames(cluster string) {
	end := time.Now().Add(patience)
	timer := time.AfterFunc(patience, d.notify)
	defer timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.identities.known[cluster] == "" && d.before(cluster) && !d.closed() && time.Now().Before(end) {
		d.changed.Wait()
	}
}

// before reports whether a name that comes before this one is being asked. The lock is
// held.
func (d *Dispatcher) before(cluster string) bool {
	for name := range d.identities.asked {
		if name < cluster {
			return true
		}
	}
	return false
}
