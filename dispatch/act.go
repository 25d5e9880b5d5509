// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/propagate"
)

var (
	errForeign  = errors.New("already exists in the cluster and is not ours: set conflictResolution: Overwrite to adopt it")
	errDeleting = errors.New("the object of before is still being deleted")
	// errEnded keeps an act from its next request; nobody hears of it.
	errEnded = errors.New("the process ends")
)

// act brings one object to what the fleet wants now. It returns what it did,
// "" for nothing, and what is worth saying about it.
func (l *lane) act(m Member, id propagate.ID) (op, note string, failure *Error) {
	defer func() {
		// One object must not end the process. What panicked may quote a
		// manifest, so it is not repeated.
		if r := recover(); r != nil {
			failure = l.failed(op, id, &Error{Reason: Unrendered, Err: fmt.Errorf("panic of type %T", r)})
		}
	}()
	l.mu.Lock()
	fleet := l.fleet
	l.mu.Unlock()
	if fleet == nil {
		return "", "", nil
	}
	want := fleet.Desire(l.cluster, id)
	entry, known := l.entry(id)
	var err error
	switch want.Verb {
	case Apply:
		drift := l.drift(id)
		if known && entry.Digest == want.Digest && entry.Digest != (propagate.Digest{}) && drift == nil {
			return "", "", nil
		}
		if _, batched := m.(together); !known && !batched {
			// It was wanted again while its deletion was under way, which took
			// the record with it.
			err = l.intendAgain(id, want.APIVersion)
		}
		if op = "apply"; err == nil {
			op, err = l.apply(m, fleet, id, want, entry)
		}
		if err == nil && drift != nil {
			return opRestore, "it " + drift.how, nil
		}
	case Delete, Release:
		if !known {
			return "", "", nil
		}
		op, note, err = l.remove(m, id, want, entry)
	}
	if err != nil {
		return op, "", l.failed(op, id, err)
	}
	return op, note, nil
}

func (l *lane) apply(m Member, fleet Fleet, id propagate.ID, want Desire, entry Entry) (op string, err error) {
	manifest, err := want.Manifest()
	if err != nil {
		return "apply", &Error{Reason: Unrendered, Err: err}
	}
	a := &application{l: l, m: m, fleet: fleet, ref: refTo(id, want.APIVersion), want: want, manifest: manifest}
	if err := a.apply(entry); err != nil || !a.adopted {
		return "apply", err
	}
	return "adopt", nil
}

// apply sends the object to its place, of which the inventory says what entry
// is.
func (a *application) apply(entry Entry) error {
	if entry.UID == "" {
		found, err := a.l.look(a.m, a.ref)
		if err != nil {
			return err
		}
		return a.onto(found)
	}
	update, err := a.update()
	if err != nil {
		return err
	}
	applied, err := a.put(update, ApplyOptions{Force: true, UID: entry.UID})
	if errors.Is(err, Gone) || errors.Is(err, NoNamespace) {
		// It was deleted or replaced behind our back.
		found, err := a.m.Get(a.l.d.ctx, a.ref)
		if err != nil {
			return err
		}
		if found == nil {
			if err := a.l.confirm(a.m); err != nil {
				return err
			}
			// What is made now has another UID, and whether we learn of it or
			// not, the one that we knew is no more.
			if err := a.l.intendAgain(a.ref.ID(), a.want.APIVersion); err != nil {
				return err
			}
		}
		return a.onto(found)
	}
	if err != nil {
		return err
	}
	return a.acknowledge(applied)
}

// application is one object on its way to a member.
type application struct {
	l        *lane
	m        Member
	fleet    Fleet
	ref      Ref
	want     Desire
	manifest map[string]any
	adopted  bool // it was somebody else's
}

func (a *application) put(manifest map[string]any, opt ApplyOptions) (Applied, error) {
	opt.Namespace = func() map[string]any { return a.fleet.Namespace(a.l.cluster, a.ref.Namespace) }
	return a.m.Apply(a.l.d.ctx, manifest, opt)
}

// update is the manifest for an object that is there: an autoscaler's number
// of replicas is sent back to the member as it is. What the autoscaler does
// between the read and the apply is undone, and done again by it.
func (a *application) update() (map[string]any, error) {
	if !a.want.RetainReplicas {
		return a.manifest, nil
	}
	replicas, ok, err := a.m.Replicas(a.l.d.ctx, a.ref)
	if err != nil || !ok {
		return a.manifest, err
	}
	spec, _ := a.manifest["spec"].(map[string]any)
	spec = maps.Clone(spec)
	if spec == nil {
		spec = map[string]any{}
	}
	spec["replicas"] = replicas
	manifest := maps.Clone(a.manifest)
	manifest["spec"] = spec
	return manifest, nil
}

// onto applies to what was found at the object's place.
func (a *application) onto(found *Found) error {
	switch {
	case found == nil:
		return a.create()
	case found.Ours() && found.Deleting:
		return &Error{Reason: Conflict, Err: errDeleting}
	case found.Ours() && digestOf(found) == a.want.Digest:
		// It was sent before, and the acknowledgement was lost.
		return a.acknowledge(Applied{UID: found.UID})
	case found.Ours():
		return a.send(ApplyOptions{Force: true, UID: found.UID})
	case a.want.Overwrite:
		return a.overwrite()
	}
	return &Error{Reason: Foreign, Err: errForeign}
}

// create applies without force to a place that is believed to be empty: an
// object that came in between must not be taken.
func (a *application) create() error {
	if a.l.d.closed() {
		return errEnded
	}
	if err := a.l.ensureNamespace(a.m, a.fleet, a.ref.Namespace); err != nil {
		return err
	}
	applied, err := a.put(a.manifest, ApplyOptions{})
	if errors.Is(err, NoNamespace) {
		a.l.missNamespace(a.ref.Namespace)
		if err := a.l.ensureNamespace(a.m, a.fleet, a.ref.Namespace); err != nil {
			return err
		}
		applied, err = a.put(a.manifest, ApplyOptions{})
	}
	taken := err == nil && others(applied)
	if !taken && !errors.Is(err, Foreign) {
		if err != nil {
			return err
		}
		return a.acknowledge(applied)
	}
	if a.want.Overwrite {
		return a.overwrite()
	}
	if taken {
		// Our part of it goes again: an apply of nothing but the identity.
		if _, err := a.m.Apply(a.l.d.ctx, identity(a.ref), ApplyOptions{UID: applied.UID}); err != nil && !errors.Is(err, Gone) {
			return err
		}
	}
	return &Error{Reason: Foreign, Err: errForeign}
}

// overwrite makes an object ours that is not. What was never tracked gets its
// managers only by the first apply, hence the second round.
func (a *application) overwrite() error {
	for range 2 {
		if a.l.d.closed() {
			return errEnded
		}
		if err := a.m.Adopt(a.l.d.ctx, a.ref); err != nil {
			return err
		}
		update, err := a.update()
		if err != nil {
			return err
		}
		applied, err := a.put(update, ApplyOptions{Force: true})
		if err != nil {
			return err
		}
		if !others(applied) {
			a.adopted = true
			return a.acknowledge(applied)
		}
	}
	return &Error{Reason: Conflict, Err: errors.New("someone else keeps writing to it")}
}

// others reports whether someone else wrote the object from the outside.
func others(a Applied) bool {
	for _, m := range a.Managers {
		if clientSide(m) {
			return true
		}
	}
	return false
}

func identity(ref Ref) map[string]any {
	meta := map[string]any{"name": ref.Name}
	if ref.Namespace != "" {
		meta["namespace"] = ref.Namespace
	}
	return map[string]any{
		"apiVersion": ref.GroupVersion().String(),
		"kind":       ref.Kind,
		"metadata":   meta,
	}
}

func (a *application) send(opt ApplyOptions) error {
	update, err := a.update()
	if err != nil {
		return err
	}
	applied, err := a.put(update, opt)
	if errors.Is(err, Gone) {
		return &Error{Reason: Conflict, Err: err}
	}
	if err != nil {
		return err
	}
	return a.acknowledge(applied)
}

func (a *application) acknowledge(applied Applied) error {
	if applied.Deleting {
		return &Error{Reason: Conflict, Err: errDeleting}
	}
	a.l.save(a.ref.ID(), &Entry{APIVersion: a.want.APIVersion, UID: applied.UID, Digest: a.want.Digest, Fields: applied.Fields, Version: applied.Version})
	if isNamespace(a.ref.ID()) {
		a.l.haveNamespace(a.ref.Name)
	}
	return nil
}

// remove deletes or releases an object, after a look at the live one.
func (l *lane) remove(m Member, id propagate.ID, want Desire, entry Entry) (op, note string, err error) {
	op = want.Verb.String()
	apiVersion := want.APIVersion
	if apiVersion == "" {
		apiVersion = entry.APIVersion
	}
	ref := refTo(id, apiVersion)
	if want.Verb == Release {
		if err := m.Release(l.d.ctx, ref, entry.UID); err != nil {
			return op, "", err
		}
		l.save(id, nil)
		return op, "", nil
	}
	uid, note, err := l.ask(m, ref, entry.UID)
	if err == nil && l.d.closed() {
		err = errEnded
	}
	switch {
	case err != nil:
		return op, "", err
	case note != "":
		op = Release.String()
		err = m.Release(l.d.ctx, ref, uid)
	case uid != "":
		err = m.Delete(l.d.ctx, ref, uid)
	}
	if err != nil {
		return op, "", err
	}
	l.save(id, nil)
	if isNamespace(id) {
		l.missNamespace(id.Name)
	}
	return op, note, nil
}

// ask returns the UID of the object to delete, empty when there is none that
// is ours, and a note when a mark on it keeps it.
func (l *lane) ask(m Member, ref Ref, uid types.UID) (types.UID, string, error) {
	found, err := m.Get(l.d.ctx, ref)
	if errors.Is(err, NotServed) {
		// Delete and Release know whether that is certain.
		return uid, "", nil
	}
	if err == nil && found == nil {
		err = l.confirm(m)
	}
	if err != nil || found == nil {
		return "", "", err
	}
	if uid != "" && found.UID != uid || uid == "" && (!found.Ours() || Unplaced(ref.ID(), found.Annotations[AnnotationDigest])) {
		return "", "", nil
	}
	if key := protection(found); key != "" {
		return found.UID, "kept in the cluster because of " + key, nil
	}
	return found.UID, "", nil
}

func refTo(id propagate.ID, apiVersion string) Ref {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return Ref{schema.GroupVersionKind{Group: id.Group, Version: gv.Version, Kind: id.Kind}, id.Namespace, id.Name}
}
