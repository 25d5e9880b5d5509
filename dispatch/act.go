// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

var (
	errDeleting = errors.New("the previous object is still terminating")
	// errLeft says that what stands there is not ours to delete.
	errLeft = errors.New("not ours")
	// errEnded keeps an act from its next request; nobody hears of it.
	errEnded = errors.New("the process ends")
)

// act brings one object to what the fleet wants now. It returns what it did,
// "" for nothing, and what is worth saying about it.
func (w *worker) act(m member.Member, id object.ID) (op Op, note string, failure *member.Error) {
	defer func() {
		// One object must not end the process. What panicked may quote a
		// manifest, so it is not repeated.
		if r := recover(); r != nil {
			failure = w.failed(string(op), id, &member.Error{Reason: member.Unrendered, Err: fmt.Errorf("panic of type %T", r)})
		}
	}()
	w.mu.Lock()
	fleet := w.fleet
	w.mu.Unlock()
	if fleet == nil {
		return "", "", nil
	}
	if fenced, ok := member.As[member.Fenced](m); ok {
		m = fenced.For(fleet.Source().Commit)
	}
	want := fleet.Desire(w.cluster, id)
	entry, known := w.entry(id)
	var err error
	switch want.Verb {
	case Apply:
		drift := w.driftOf(id)
		if known && entry.Digest == want.Digest && entry.Digest != (object.Digest{}) && drift == "" {
			return "", "", nil
		}
		if known {
			err = w.shrinks(m, id, want)
		}
		if !known && !member.Is[member.BatchMember](m) {
			// It was wanted again while its deletion was under way, which took
			// the record with it.
			err = w.intendAgain(id, want.APIVersion)
		}
		if op = OpApply; err == nil {
			op, note, err = w.apply(m, fleet, id, want, entry)
		}
		if err == nil && drift != "" {
			return OpRestore, "it " + w.hindsight(id, entry, drift), nil
		}
	case Delete, Orphan:
		if !known {
			return "", "", nil
		}
		if op, err = OpDelete, w.d.awaited(m, waiter{w, id}, want.After); err == nil {
			op, note, err = w.remove(m, fleet, id, want, entry)
		}
	}
	if err != nil {
		return op, "", w.failed(string(op), id, err)
	}
	return op, note, nil
}

// remove deletes an object, or leaves it running, after a look at the live one.
func (w *worker) remove(m member.Member, fleet Fleet, id object.ID, want Desire, entry Entry) (op Op, note string, err error) {
	op = OpDelete
	if want.Verb == Orphan {
		op = OpOrphan
	}
	apiVersion := want.APIVersion
	if apiVersion == "" {
		apiVersion = entry.APIVersion
	}
	ref := member.RefTo(id, apiVersion)
	if want.Verb == Orphan {
		if err := m.Release(w.d.ctx, ref, entry.UID, fleet.Marker()); err != nil {
			return op, "", err
		}
		w.acknowledge(id, left(m, entry.UID))
		return op, "", nil
	}
	uid, version, note, err := w.ask(m, fleet, ref, entry.UID)
	if err == nil && w.d.closed() {
		err = errEnded
	}
	switch {
	case errors.Is(err, errLeft):
		w.acknowledge(id, nil)
		return "", "", nil
	case err != nil:
		return op, "", err
	case note != "":
		op = OpOrphan
		err = m.Release(w.d.ctx, ref, uid, fleet.Marker())
	case uid != "":
		err = w.delete(m, ref, uid, version, fleet.Marker())
	}
	if err != nil {
		return op, "", err
	}

	if op == OpOrphan {
		w.acknowledge(id, left(m, uid))
		return op, note, nil
	}
	w.acknowledge(id, nil)
	if object.IsNamespace(id) {
		w.namespaces.miss(id.Name)
	}
	return op, note, nil
}

// left is the entry of a copy that was left running: it is taken back if it is wanted
// again. What is published for a pull cluster has no UID there that says which it was.
func left(m member.Member, uid types.UID) *Entry {
	if uid == "" || member.Is[member.NamespaceCreator](m) {
		return nil
	}
	return &Entry{Left: uid}
}

// delete deletes an object as it was seen, where several processes write to the member.
func (w *worker) delete(m member.Member, ref member.Ref, uid types.UID, version string, of object.Marker) error {
	if fenced, ok := member.As[member.Fenced](m); ok {
		return fenced.DeleteVersion(w.d.ctx, ref, uid, version, of)
	}
	return m.Delete(w.d.ctx, ref, uid, of)
}

// ask returns the UID and the version of the object to delete, empty when there is none
// that is ours, and a note when a mark on it keeps it.
func (w *worker) ask(m member.Member, fleet Fleet, ref member.Ref, uid types.UID) (is types.UID, version, note string, err error) {
	found, err := m.Get(w.d.ctx, ref)
	if errors.Is(err, member.NotServed) {
		// Delete and Release know whether that is certain.
		return uid, "", "", nil
	}
	if err == nil && found == nil {
		err = w.identity.confirm(m)
	}
	if err != nil || found == nil {
		return "", "", "", err
	}
	switch whose := found.Whose(fleet.Marker(), uid != ""); {
	case uid != "" && found.UID != uid, whose == object.AnotherFleets:
		return "", "", "", errLeft
	case uid == "" && (whose != object.Ours || object.IsNeeded(ref.ID(), found.Annotations[object.AnnotationDigest])):
		return "", "", "", errLeft
	}
	if err := w.d.behind(found); err != nil {
		return "", "", "", err
	}
	if key := object.Protection(found.Annotations, found.Labels); key != "" {
		return found.UID, "", "kept in the cluster because of " + key, nil
	}
	return found.UID, found.ResourceVersion, "", nil
}

// behind is the error for an object as of a commit that is not known here: another process
// has sent it.
func (d *Dispatcher) behind(found *member.Found) error {
	commit := found.Annotations[object.AnnotationRevision]
	if d.opt.Knows == nil || commit == "" || d.opt.Knows(commit) {
		return nil
	}
	return &member.Error{Reason: member.Conflict, Err: fmt.Errorf("it is as of commit %.7s, which is not fetched here: another replica has sent it", commit)}
}

// hindsight is how an object differed from what was acknowledged, as its restoration
// shows: a watch does not tell what was deleted from what our label was taken off.
func (w *worker) hindsight(id object.ID, was Entry, drift string) string {
	rest, deleted := strings.CutPrefix(drift, wasDeleted)
	if is, known := w.entry(id); !deleted || !known || is.UID != was.UID || is.Version <= was.Version {
		return drift
	}
	return "had lost our label" + strings.Replace(rest, " by ", " to ", 1)
}

// driftOf is how an object differs from what was acknowledged; "" when it is not
// known to.
func (w *worker) driftOf(id object.ID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drift.how[id]
}
