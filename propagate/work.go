// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"maps"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// works turns targets into works (fold rule 17): what each cluster is to run,
// and whether it may have it now.
func (st *step) works(b, old *Binding) {
	completions := b.completions()
	made := map[share]*Content{}
	b.Works = make([]Work, len(b.Targets))
	for i, target := range b.Targets {
		s := share{target.Count, -1}
		if completions != nil {
			s.completions = completions[target.Name]
		}
		w := Work{Cluster: target.Name, Held: b.Brakes.Hold(target.Name), Preserve: b.Brakes.Keeps()}
		was := st.before(old, target.Name)
		w.Want = st.content(b, s, was, made)
		switch {
		case !w.Held:
			w.Released = w.Want
		case was != nil:
			w.Released = was.Released
		}
		b.Works[i] = w
	}
}

// share is what tells the contents of one template on two clusters apart.
type share struct {
	replicas, completions int64
}

// before is the binding's work on cluster before this step. A cluster that
// comes back into the fleet runs what it ran when it left (fold rule 15).
func (st *step) before(old *Binding, cluster string) *Work {
	if old == nil {
		return nil
	}
	if w := old.Work(cluster); w != nil {
		return w
	}
	if left := st.prev.Left.At(old.Key()).on(cluster); left != nil {
		return &Work{Cluster: cluster, Want: left.Released, Released: left.Released}
	}
	return nil
}

// content is b's content for a share. It keeps the version that the cluster
// had when nothing in it changed, and with it the revision that it bears.
func (st *step) content(b *Binding, s share, was *Work, made map[share]*Content) *Content {
	t := b.Active.Template
	var had *Content
	if was != nil {
		had = was.Want
	}
	if had != nil && (share{had.Replicas, had.Completions}) == s && had.Template == t {
		return had
	}
	c, ok := made[s]
	if !ok {
		c = &Content{
			Digest:         digestJSON(contentOf(t, s)),
			Replicas:       s.replicas,
			Completions:    s.completions,
			APIVersion:     t.APIVersion,
			Template:       t,
			TemplateCommit: b.Active.TemplateCommit,
			Revision:       st.commit.Hash,
		}
		made[s] = c
	}
	if had != nil && had.Digest == c.Digest && (share{had.Replicas, had.Completions}) == s {
		return had
	}
	return c
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

// contentOf is the template as a cluster with this share gets it, without the
// marks that tell it is ours. It shares with the template what it leaves as
// it is.
func contentOf(t *Template, s share) map[string]any {
	object := maps.Clone(t.Object)
	if _, workload := replicas(t); workload {
		if field := replicaField(t.GroupKind()); field != "" {
			setSpec(object, field, s.replicas)
		}
	}
	if s.completions >= 0 {
		setSpec(object, "completions", s.completions)
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		object["metadata"] = maps.Clone(meta)
		removeKeys(object, "labels", isKarmadas)
		removeKeys(object, "annotations", isKarmadas)
	}
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
// the template's annotation decides, then the policy.
func (b *Binding) Overwrites() bool {
	switch b.conflictAnnotation() {
	case "overwrite":
		return true
	case "abort":
		return false
	}
	return b.Active.Policy.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite
}

func (b *Binding) conflictAnnotation() string {
	meta, _ := b.Active.Template.Object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	value, _ := annotations["work.karmada.io/conflict-resolution"].(string)
	return value
}
