// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/propagate/interpret"
	"github.com/fairlead/fairlead/propagate/override"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// works turns targets into works (fold rule 17): what each cluster is to run,
// and whether it may have it now.
func (st *step) works(b, old *Binding, on map[string]attachment) {
	completions := b.completions()
	r := newRendering(&st.next.index, b.Active.Template)
	targets := b.withAttached(on)
	b.Works = make([]Work, len(targets))
	for i, target := range targets {
		s := share{target.Count, -1}
		if n, divided := completions[target.Name]; divided {
			s.completions = n
		}
		w := Work{Cluster: target.Name, Held: b.holds(target.Name, on), Preserve: b.Brakes.Keeps()}
		was := st.before(b.ID, old, target.Name)
		w.Want, w.Blocked = st.content(b, target.Name, s, was, r)
		switch {
		case !w.Held && w.Blocked == "":
			w.Released = w.Want
		case was != nil:
			w.Released = was.Released
		}
		b.Works[i] = w
	}
	if evicted := st.evicted(b, old, on); len(evicted) > 0 {
		b.Works = append(b.Works, evicted...)
		slices.SortFunc(b.Works, func(x, y Work) int { return strings.Compare(x.Cluster, y.Cluster) })
	}
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

// holds is whether a work is held: by every one that wants it there, its own
// policy and its owners (decision 16). While a copy is purged directly, nothing
// is sent before it is gone (digest §5.8).
func (b *Binding) holds(cluster string, on map[string]attachment) bool {
	if b.blocked() {
		return true
	}
	a, needed := on[cluster]
	if !needed {
		return b.Brakes.Hold(cluster)
	}
	return a.held && (!b.targets(cluster) || b.Brakes.Hold(cluster))
}

// share is what tells the contents of one template on two clusters apart,
// besides their overrides.
type share struct {
	replicas, completions int64
}

// before is the template's work on cluster before this step. A cluster that
// comes back into the fleet runs what it ran when it left (fold rule 15), also
// of a template that had no binding meanwhile.
func (st *step) before(id ID, old *Binding, cluster string) *Work {
	if old != nil && old.Work(cluster) != nil {
		return old.Work(cluster)
	}
	if left := st.prev.Left.At(id.Key()).on(cluster); left != nil {
		return &Work{Cluster: cluster, Want: left.Released, Released: left.Released}
	}
	return nil
}

// content is b's content for a cluster, or why there is none. It keeps the
// version that the cluster had when nothing in it changed, and with it the
// revision that it bears.
func (st *step) content(b *Binding, cluster string, s share, was *Work, r *rendering) (want *Content, blocked string) {
	t := b.Active.Template
	var had *Content
	if was != nil {
		had = was.Want
	}
	key, rules, err := r.render(t, s, st.next.Snapshot.Clusters.At(cluster))
	if err != nil {
		if was != nil && was.Blocked == err.Error() && had.share() == s {
			return had, was.Blocked
		}
		return &Content{Replicas: s.replicas, Completions: s.completions, APIVersion: t.APIVersion, TemplateCommit: b.Active.TemplateCommit, Revision: st.commit.Hash}, err.Error()
	}
	if was != nil && was.Blocked != "" {
		had = was.Released // it wanted nothing; what it runs has the revision
	}
	if had != nil && had.share() == s && had.Template == t && had.reviser.id() == r.reviser.id() && sameRules(had.Rules, rules) {
		return had.requiring(b.Requires), ""
	}
	c, ok := r.made[key]
	if !ok {
		object := cleaned(r.memo[key].object)
		c = &Content{
			Digest:         digestJSON(object),
			Replicas:       s.replicas,
			Completions:    s.completions,
			APIVersion:     t.APIVersion,
			Template:       t,
			TemplateCommit: b.Active.TemplateCommit,
			Rules:          rules,
			reviser:        r.reviser,
			Requires:       b.Requires,
			Conflict:       conflictOf(object),
			Revision:       st.commit.Hash,
		}
		r.made[key] = c
	}
	if had == nil || had.Digest != c.Digest || had.share() != s {
		return c, ""
	}
	// It is made in another way and comes to the same, or a restored state knows
	// it by its digest alone. The commits that it is of make it still.
	kept := *c
	kept.Revision, kept.TemplateCommit = had.Revision, had.TemplateCommit
	return &kept, ""
}

// requiring is c with what it takes along now.
func (c *Content) requiring(ids []ID) *Content {
	if slices.Equal(c.Requires, ids) {
		return c
	}
	kept := *c
	kept.Requires = ids
	return &kept
}

func (c *Content) share() share { return share{c.Replicas, c.Completions} }

// rendering makes the contents of one binding, each of them once.
type rendering struct {
	index   *index
	reviser *script             // of the template's kind
	memo    map[string]rendered // by share and rules
	made    map[string]*Content // by the same
}

func newRendering(ix *index, t *Template) *rendering {
	return &rendering{ix, ix.script(t, interpret.ReviseReplica), map[string]rendered{}, map[string]*Content{}}
}

// completions shares a divided Job's completions in proportion to its
// parallelism (digest §5.4); nil when there is nothing to share.
func (b *Binding) completions() map[string]int64 {
	if b.GroupKind() != job || !b.Active.Policy.placement.Divided() {
		return nil
	}
	spec, _ := b.Active.Template.Object["spec"].(map[string]any)
	total, ok := spec["completions"].(int64)
	if !ok {
		return nil
	}
	shares := map[string]int64{}
	for _, s := range schedule.Webster(b.Targets, total) {
		shares[s.Name] = s.Count
	}
	return shares
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
	return cleaned(object)
}

// shared is the template with a cluster's share of its replicas. It shares
// with the template what it leaves as it is.
func shared(t *Template, s share, reviser *script) (map[string]any, error) {
	if reviser != nil && s.replicas > 0 {
		return reviser.revised(t, s.replicas)
	}
	object := maps.Clone(t.Object)
	if _, workload := t.asks.wanted(); workload && reviser == nil {
		if field := replicaField(t.GroupKind()); field != "" {
			setSpec(object, field, s.replicas)
		}
	}
	if s.completions >= 0 {
		setSpec(object, "completions", s.completions)
	}
	return object, nil
}

// cleaned is an object without the keys that stay out of the members.
func cleaned(object map[string]any) map[string]any {
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	object = maps.Clone(object)
	object["metadata"] = maps.Clone(meta)
	removeKeys(object, "labels", isKarmadas)
	removeKeys(object, "annotations", isKarmadas)
	return object
}

// setSpec writes over a field of the spec that is there.
func setSpec(object map[string]any, field string, value int64) {
	spec, _ := object["spec"].(map[string]any)
	if spec[field] == nil {
		return
	}
	spec = maps.Clone(spec)
	spec[field] = value
	object["spec"] = spec
}

// isKarmadas is whether Karmada keeps its own books under this key. They stay
// out of the members, so that both can share a cluster (decision 27); so do
// keys in our domain, which only we write there.
func isKarmadas(key string) bool {
	return karmadasKeys[key] || isOurs(key)
}

var karmadasKeys = map[string]bool{
	"karmada.io/managed": true,
	"karmada.io/system":  true,

	"propagationpolicy.karmada.io/name":                true,
	"propagationpolicy.karmada.io/namespace":           true,
	"propagationpolicy.karmada.io/permanent-id":        true,
	"clusterpropagationpolicy.karmada.io/name":         true,
	"clusterpropagationpolicy.karmada.io/permanent-id": true,

	"resourcebinding.karmada.io/name":                true,
	"resourcebinding.karmada.io/namespace":           true,
	"resourcebinding.karmada.io/permanent-id":        true,
	"clusterresourcebinding.karmada.io/name":         true,
	"clusterresourcebinding.karmada.io/permanent-id": true,

	"work.karmada.io/name":         true,
	"work.karmada.io/namespace":    true,
	"work.karmada.io/permanent-id": true,

	"resourcetemplate.karmada.io/uid":                 true,
	"resourcetemplate.karmada.io/generation":          true,
	"resourcetemplate.karmada.io/managed-labels":      true,
	"resourcetemplate.karmada.io/managed-annotations": true,
}

// Overwrites is whether an object that is not ours is adopted (digest §5.7):
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
