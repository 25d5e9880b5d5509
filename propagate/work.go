// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/interpret"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate/override"
	"github.com/fairlead/fairlead/schedule"
)

// work turns targets into works (fold rule 17): what each cluster is to run,
// and whether it may have it now.
func (d *decision) work() {
	b := d.b
	shares := b.shares()
	r := newRendering(&d.after.index, b.Active.Template)
	r.cost = d.cost
	targets := b.withAttached(d.needed.on)

	b.Works = make([]Work, len(targets))
	for i, target := range targets {
		s := shares(target)
		w := Work{Cluster: target.Name, Held: b.holds(target.Name, d.needed.on), Preserve: b.inForce().Keeps()}
		was := d.workBefore(target.Name)
		w.Want, w.Blocked = d.content(target.Name, s, was, r)
		switch {
		case !w.Held && w.Blocked == "":
			w.Released = w.Want
		case was != nil:
			w.Released = was.Released
		}
		b.Works[i] = w
	}
	b.shift(d.old)

	if evicted := d.evictedWorks(); len(evicted) > 0 {
		b.Works = append(b.Works, evicted...)
		slices.SortFunc(b.Works, func(x, y Work) int { return strings.Compare(x.Cluster, y.Cluster) })
	}
}

// evictedWorks are the works on clusters that the binding is being evicted
// from. They are neither changed nor removed while that lasts.
func (d *decision) evictedWorks() []Work {
	var works []Work
	for _, e := range d.b.Evictions {
		was := d.workBefore(e.Cluster)
		_, needed := d.needed.on[e.Cluster]
		if e.Purge == policyv1alpha1.PurgeDirectly || needed || was == nil || was.Released == nil {
			continue
		}
		works = append(works, Work{Cluster: e.Cluster, Want: was.Released, Released: was.Released, Held: true, Preserve: d.b.inForce().Keeps()})
	}
	return works
}

// withAttached are the binding's targets and the clusters where its owners
// need it, by name.
func (b *Binding) withAttached(on map[string]attachment) []schedule.Share {
	if len(on) == 0 {
		return b.Targets
	}
	targets := slices.Clone(b.Targets)
	for cluster := range on {
		if !b.targets(cluster) {
			targets = append(targets, schedule.Share{Name: cluster})
		}
	}

	slices.SortFunc(targets, func(x, y schedule.Share) int { return strings.Compare(x.Name, y.Name) })
	return targets
}

func (b *Binding) targets(cluster string) bool {
	return slices.ContainsFunc(b.Targets, func(t schedule.Share) bool { return t.Name == cluster })
}

// holds reports whether a work is held: by its own annotation (decision 51), or by
// every one that wants it there, its own policy and its owners (decision 16). While a copy is purged directly, nothing
// is sent before it is removed (digest §5.8).
func (b *Binding) holds(cluster string, on map[string]attachment) bool {
	if b.blocked() || b.Own.Hold(cluster) {
		return true
	}

	a, needed := on[cluster]
	if !needed {
		return b.inForce().Hold(cluster)
	}
	return a.held && (!b.targets(cluster) || b.inForce().Hold(cluster))
}

// workBefore is the template's work on a cluster before this step. A cluster
// that comes back into the fleet runs what it ran when it left (fold rule 15),
// also of a template that had no binding meanwhile.
func (d *decision) workBefore(cluster string) *Work {
	if d.old != nil && d.old.Work(cluster) != nil {
		return d.old.Work(cluster)
	}
	return detachedWork(d.before, d.template.ID, cluster)
}

// detachedWork is what a cluster that is not in the fleet runs of a template,
// as a work; nil when nothing is known.
func detachedWork(s *State, id object.ID, cluster string) *Work {
	left := s.Detached.At(id.Key()).on(cluster)
	if left == nil {
		return nil
	}
	return &Work{Cluster: cluster, Want: left.Released, Released: left.Released}
}

// content is what the binding has for a cluster, or why there is none. It keeps
// the version that the cluster had when nothing in it changed, and with it the
// revision that it has.
func (d *decision) content(cluster string, s share, was *Work, r *rendering) (want *Content, blocked string) {
	active := d.b.Active
	var had *Content
	if was != nil {
		had = was.Want
	}

	obj, key, rules, err := r.render(active.Template, s, d.after.snapshot().Clusters.At(cluster))
	if err != nil {
		if was != nil && was.Blocked == err.Error() && had.share() == s {
			return had, was.Blocked
		}
		return &Content{Replicas: s.replicas, Completions: s.completions, Bare: s.bare, APIVersion: active.Template.APIVersion, TemplateCommit: active.TemplateCommit, Revision: d.commit}, err.Error()
	}

	if was != nil && was.Blocked != "" {
		had = was.Released // it wanted nothing; what it runs has the revision
	}
	if had != nil && had.share() == s && had.Template == active.Template && had.reviser.Digest() == r.reviser.Digest() && sameRules(had.Rules, rules) {
		return had.requiring(d.b.Requires), ""
	}

	c, ok := r.made[key]
	if !ok {
		c = d.newContent(cleaned(obj), s, rules, r.reviser)
		r.made[key] = c
	}
	if had == nil || had.Digest != c.Digest || had.Replicas != c.Replicas || had.Completions != c.Completions {
		return c, ""
	}

	// It is made in another way with the same result, or a restored state has only
	// its digest. The commits that made it before still make it.
	kept := *c
	kept.Revision, kept.TemplateCommit, kept.Bare = had.Revision, had.TemplateCommit, had.Bare && c.Bare
	return &kept, ""
}

// newContent is a content of the active template that this step changes.
func (d *decision) newContent(obj map[string]any, s share, rules []*fleet.Rule, reviser *fleet.Script) *Content {
	return &Content{
		Digest:         object.DigestJSON(obj),
		Replicas:       s.replicas,
		Completions:    s.completions,
		Bare:           s.bare,
		APIVersion:     d.b.Active.Template.APIVersion,
		Template:       d.b.Active.Template,
		TemplateCommit: d.b.Active.TemplateCommit,
		Rules:          rules,
		reviser:        reviser,
		Requires:       d.b.Requires,
		Conflict:       conflictOf(obj),
		Revision:       d.commit,
	}
}

// digest is that of the content; zero for nil.
func (c *Content) digest() object.Digest {
	if c == nil {
		return object.Digest{}
	}
	return c.Digest
}

// requiring is c with what it requires now.
func (c *Content) requiring(ids []object.ID) *Content {
	if slices.Equal(c.Requires, ids) {
		return c
	}
	kept := *c
	kept.Requires = ids
	return &kept
}

// rendering makes the contents of one binding, each of them once.
type rendering struct {
	index   *index
	reviser *fleet.Script       // of the template's kind
	memo    map[string]rendered // by share and rules
	kept    int                 // bytes of memo
	made    map[string]*Content // by the same
	cost    *cost               // of the step
}

func newRendering(ix *index, t *fleet.Template) *rendering {
	return &rendering{index: ix, reviser: ix.script(t, interpret.ReviseReplica), memo: map[string]rendered{}, made: map[string]*Content{}, cost: &cost{}}
}

// object is the content as it is applied, without the marks that tell it is
// ours.
func (c *Content) object() map[string]any {
	object, err := shared(c.Template, c.share(), c.reviser)
	if err != nil {
		// The step that made this content has run the same script.
		panic(fmt.Sprintf("propagate: the share of %s cannot be written any more: %v", c.Template.ID, err))
	}

	for _, r := range c.Rules {
		next, err := override.Apply(object, r.Overriders)
		if err != nil {
			// The step that made this content has applied the same rule.
			panic(fmt.Sprintf("propagate: %s does not apply any more: %v", r.Override, err))
		}
		object = next
	}
	return cleaned(sent(c.Template, c.share(), c.Rules, object))
}

// Object is the content as it is applied, without the marks that tell it is ours. It is
// nil where the content is not at hand: see Template. The caller must not write to it.
func (c *Content) Object() map[string]any {
	if c == nil || c.Template == nil {
		return nil
	}
	return c.object()
}

// cleaned is an object without the keys that stay out of the members.
func cleaned(obj map[string]any) map[string]any {
	meta, ok := obj["metadata"].(map[string]any)
	if !ok {
		return obj
	}

	obj = maps.Clone(obj)
	obj["metadata"] = maps.Clone(meta)
	object.RemoveKeys(obj, "labels", object.IsReserved)
	object.RemoveKeys(obj, "annotations", object.IsReserved)
	return obj
}

// Overwrites reports whether an object that is not ours is adopted (digest §5.7):
// the object's own annotation decides, then the policy.
func (b *Binding) Overwrites(c *Content) bool {
	switch c.Conflict {
	case "overwrite":
		return true
	case "abort":
		return false
	}
	return b.Active.Policy.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite
}

func conflictOf(object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	switch value, _ := annotations["work.karmada.io/conflict-resolution"].(string); value {
	case "overwrite", "abort":
		return value
	}
	return ""
}
