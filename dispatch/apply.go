// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

func (w *worker) apply(m member.Member, fleet Fleet, id object.ID, want Desire, entry Entry) (op Op, note string, err error) {
	manifest, err := want.Manifest()
	if err != nil {
		return OpApply, "", &member.Error{Reason: member.Unrendered, Err: err}
	}
	a := &application{w: w, m: m, fleet: fleet, ref: member.RefTo(id, want.APIVersion), want: want, manifest: manifest}
	switch err := a.apply(entry); {
	case err != nil:
		return OpApply, "", err
	case a.formerly:
		return OpApply, "taken back: it was left running here", nil
	case a.adopted:
		return OpAdopt, "", nil
	}
	return OpApply, "", nil
}

// apply sends the object to its place, of which the inventory says what entry
// is.
func (a *application) apply(entry Entry) error {
	if entry.UID == "" {
		found, err := a.w.find(a.m, a.ref)
		if err != nil {
			return err
		}
		return a.onto(found, "")
	}
	update, err := a.update()
	if err != nil {
		return err
	}
	applied, err := a.put(update, member.ApplyOptions{Force: true, UID: entry.UID})
	if errors.Is(err, member.Gone) || errors.Is(err, member.NoNamespace) {
		// It was deleted or replaced behind our back.
		found, err := a.m.Get(a.w.d.ctx, a.ref)
		if err != nil {
			return err
		}
		if found == nil {
			if err := a.w.identity.confirm(a.m); err != nil {
				return err
			}
			// What is made now has another UID, and whether we learn of it or
			// not, the one that we knew is no more.
			if err := a.w.intendAgain(a.ref.ID(), a.want.APIVersion); err != nil {
				return err
			}
		}
		return a.onto(found, entry.UID)
	}
	if errors.Is(err, member.Foreign) {
		// Another fleet made it its own.
		found, err := a.m.Get(a.w.d.ctx, a.ref)
		if err != nil {
			return err
		}
		return a.onto(found, "")
	}
	if err != nil {
		return err
	}
	return a.acknowledge(applied)
}

// application is one object on its way to a member.
type application struct {
	w        *worker
	m        member.Member
	fleet    Fleet
	ref      member.Ref
	want     Desire
	manifest map[string]any
	adopted  bool // it was somebody else's
	formerly bool // it was ours, and was left running
}

func (a *application) put(manifest map[string]any, opt member.ApplyOptions) (member.Applied, error) {
	opt.Marker = a.fleet.Marker()
	opt.Namespace = func() map[string]any { return a.fleet.Namespace(a.w.cluster, a.ref.Namespace) }
	return a.m.Apply(a.w.d.ctx, manifest, opt)
}

// update is the manifest for an object that is there: an autoscaler's number
// of replicas is sent back to the member as it is. What the autoscaler does
// between the read and the apply is undone, and done again by it.
func (a *application) update() (map[string]any, error) {
	if !a.want.RetainReplicas {
		return a.manifest, nil
	}
	replicas, ok, err := a.m.Replicas(a.w.d.ctx, a.ref)
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

// onto applies to what was found at the object's place, of which the inventory has
// had the UID known.
func (a *application) onto(found *member.Found, known types.UID) error {
	if found == nil {
		return a.create()
	}

	ours := found.Whose(a.fleet.Marker(), known != "" && known == found.UID) == object.Ours
	switch {
	case ours && found.Deleting:
		return &member.Error{Reason: member.Conflict, Err: errDeleting}
	case ours && found.Digest() == a.want.Digest:
		// It was sent before, and the acknowledgement was lost.
		return a.acknowledge(member.Applied{UID: found.UID})
	case ours && a.w.d.behind(found) != nil:
		return a.w.d.behind(found)
	case ours:
		return a.send(member.ApplyOptions{Force: true, UID: found.UID})
	case a.want.Overwrite:
		return a.overwrite()
	}

	former, err := a.isFormer(found)
	switch {
	case err != nil:
		return err
	case former:
		a.formerly = true
		return a.overwrite()
	}
	return member.NotOurs(found.Labels)
}

// isFormer reports whether an object is the copy that we left running, and nobody else
// has made it theirs since. What somebody made in its place has another UID.
func (a *application) isFormer(found *member.Found) (bool, error) {
	a.w.mu.Lock()
	left := a.w.holdings.left[a.ref.ID()]
	a.w.mu.Unlock()
	if left == "" || left != found.UID {
		return false, nil
	}

	// What was listed does not have the marks of others.
	live, err := a.m.Get(a.w.d.ctx, a.ref)
	if err != nil || live == nil {
		return false, err
	}
	return live.UID == left && !live.Deleting && len(object.KeepersOf(live.Labels, live.Annotations)) == 0, nil
}

// create applies without force to a place that is believed to be empty: an
// object that came in between must not be taken.
func (a *application) create() error {
	if a.w.d.closed() {
		return errEnded
	}
	if err := a.w.namespaces.ensure(a.m, a.fleet, a.ref.Namespace); err != nil {
		return err
	}
	applied, err := a.put(a.manifest, member.ApplyOptions{})
	if errors.Is(err, member.NoNamespace) {
		a.w.namespaces.miss(a.ref.Namespace)
		if err := a.w.namespaces.ensure(a.m, a.fleet, a.ref.Namespace); err != nil {
			return err
		}
		applied, err = a.put(a.manifest, member.ApplyOptions{})
	}
	taken := err == nil && others(applied)
	if !taken && !errors.Is(err, member.Foreign) {
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
		if _, err := a.m.Apply(a.w.d.ctx, member.Identity(a.ref), member.ApplyOptions{UID: applied.UID}); err != nil && !errors.Is(err, member.Gone) {
			return err
		}
		return member.NotOurs(nil)
	}
	return a.foreign()
}

// foreign is the error for what came in between, with whose it is.
func (a *application) foreign() error {
	found, err := a.m.Get(a.w.d.ctx, a.ref)
	if err != nil || found == nil {
		return member.NotOurs(nil)
	}
	return member.NotOurs(found.Labels)
}

// overwrite makes an object ours that is not. What was never tracked gets its
// managers only by the first apply, hence the second round.
func (a *application) overwrite() error {
	for range 2 {
		if a.w.d.closed() {
			return errEnded
		}
		if err := a.m.Adopt(a.w.d.ctx, a.ref); err != nil {
			return err
		}
		update, err := a.update()
		if err != nil {
			return err
		}
		applied, err := a.put(update, member.ApplyOptions{Force: true})
		if err != nil {
			return err
		}
		if !others(applied) {
			a.adopted = true
			return a.acknowledge(applied)
		}
	}
	return &member.Error{Reason: member.Conflict, Err: errors.New("someone else keeps writing to it")}
}

// others reports whether someone else wrote the object from the outside.
func others(a member.Applied) bool {
	for _, m := range a.Managers {
		if object.IsClientSide(m) {
			return true
		}
	}
	return false
}

func (a *application) send(opt member.ApplyOptions) error {
	update, err := a.update()
	if err != nil {
		return err
	}
	applied, err := a.put(update, opt)
	if errors.Is(err, member.Gone) {
		return &member.Error{Reason: member.Conflict, Err: err}
	}
	if err != nil {
		return err
	}
	return a.acknowledge(applied)
}

func (a *application) acknowledge(applied member.Applied) error {
	if applied.Deleting {
		return &member.Error{Reason: member.Conflict, Err: errDeleting}
	}
	a.w.acknowledge(a.ref.ID(), &Entry{APIVersion: a.want.APIVersion, UID: applied.UID, Digest: a.want.Digest, Fields: applied.Fields, Version: applied.Version})
	if object.IsNamespace(a.ref.ID()) {
		a.w.namespaces.add(a.ref.Name)
	}
	return nil
}
