// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/propagate/interpret"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// dependencies are the objects that a template references (digest §8.2), in
// its own namespace, sorted. They are read off the template, not off what
// overrides make of it, and are not followed further.
func dependencies(t *Template) []ID {
	found := map[ID]bool{}
	add := func(kind, name string) {
		if name != "" {
			found[ID{Kind: kind, Namespace: t.Namespace, Name: name}] = true
		}
	}
	switch t.GroupKind() {
	case deployment, replicaSet, daemonSet, statefulSet, job, cronJob, pod:
		if spec, ok := podSpec(t); ok {
			referenced(spec, add)
		}
	case serviceImport:
		add("Service", "derived-"+t.Name)
	case ingress:
		tls, _, _ := unstructured.NestedSlice(t.Object, "spec", "tls")
		for _, item := range tls {
			m, _ := item.(map[string]any)
			name, _ := m["secretName"].(string)
			add("Secret", name)
		}
	}
	if t.GroupKind() == statefulSet {
		templates, _, _ := unstructured.NestedSlice(t.Object, "spec", "volumeClaimTemplates")
		for _, item := range templates {
			m, _ := item.(map[string]any)
			name, _, _ := unstructured.NestedString(m, "metadata", "name")
			delete(found, ID{Kind: "PersistentVolumeClaim", Namespace: t.Namespace, Name: name})
		}
	}
	return sortedIDs(found)
}

var (
	daemonSet     = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	cronJob       = schema.GroupKind{Group: "batch", Kind: "CronJob"}
	serviceImport = schema.GroupKind{Group: "multicluster.x-k8s.io", Kind: "ServiceImport"}

	ingress = schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}
)

// hasDependencies is whether a kind can reference others at all.
func hasDependencies(gk schema.GroupKind) bool {
	switch gk {
	case deployment, replicaSet, daemonSet, statefulSet, job, cronJob, pod, ingress, serviceImport:
		return true
	}
	return false
}

func podSpec(t *Template) (*corev1.PodSpec, bool) {
	path := []string{"spec", "template", "spec"}
	switch t.GroupKind() {
	case pod:
		path = []string{"spec"}
	case cronJob:
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	raw, ok, _ := unstructured.NestedMap(t.Object, path...)
	if !ok {
		return nil, false
	}
	spec := &corev1.PodSpec{}
	// The members will say what is wrong with a pod that cannot be read.
	return spec, !immense(raw) && runtime.DefaultUnstructuredConverter.FromUnstructured(raw, spec) == nil
}

// referenced tells what a pod needs in its namespace.
func referenced(spec *corev1.PodSpec, add func(kind, name string)) {
	if spec.ServiceAccountName != "default" {
		add("ServiceAccount", spec.ServiceAccountName)
	}
	for _, s := range spec.ImagePullSecrets {
		add("Secret", s.Name)
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			referencedByContainer(list[i].Env, list[i].EnvFrom, add)
		}
	}
	for i := range spec.EphemeralContainers {
		referencedByContainer(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom, add)
	}
	for i := range spec.Volumes {
		referencedByVolume(&spec.Volumes[i].VolumeSource, add)
	}
}

func referencedByContainer(env []corev1.EnvVar, envFrom []corev1.EnvFromSource, add func(kind, name string)) {
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			add("ConfigMap", r.Name)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			add("Secret", r.Name)
		}
	}
	for _, e := range envFrom {
		if e.ConfigMapRef != nil {
			add("ConfigMap", e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			add("Secret", e.SecretRef.Name)
		}
	}
}

func referencedByVolume(v *corev1.VolumeSource, add func(kind, name string)) {
	if v.ConfigMap != nil {
		add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		add("Secret", v.Secret.SecretName)
	}
	if v.PersistentVolumeClaim != nil {
		add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
	}
	if v.Projected != nil {
		for _, p := range v.Projected.Sources {
			if p.ConfigMap != nil {
				add("ConfigMap", p.ConfigMap.Name)
			}
			if p.Secret != nil {
				add("Secret", p.Secret.Name)
			}
		}
	}
	if v.AzureFile != nil {
		add("Secret", v.AzureFile.SecretName)
	}
	for _, r := range []*corev1.LocalObjectReference{
		csiSecret(v), flexSecret(v), cephSecret(v), rbdSecret(v), scaleIOSecret(v), iscsiSecret(v), storageOSSecret(v),
	} {
		if r != nil {
			add("Secret", r.Name)
		}
	}
}

func csiSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.CSI == nil {
		return nil
	}
	return v.CSI.NodePublishSecretRef
}

func flexSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.FlexVolume == nil {
		return nil
	}
	return v.FlexVolume.SecretRef
}

func cephSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.CephFS == nil {
		return nil
	}
	return v.CephFS.SecretRef
}

func rbdSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.RBD == nil {
		return nil
	}
	return v.RBD.SecretRef
}

func scaleIOSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.ScaleIO == nil {
		return nil
	}
	return v.ScaleIO.SecretRef
}

func iscsiSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.ISCSI == nil {
		return nil
	}
	return v.ISCSI.SecretRef
}

func storageOSSecret(v *corev1.VolumeSource) *corev1.LocalObjectReference {
	if v.StorageOS == nil {
		return nil
	}
	return v.StorageOS.SecretRef
}

func sortedIDs(set map[ID]bool) []ID {
	return slices.SortedFunc(maps.Keys(set), func(a, b ID) int { return cmp.Compare(a.Key(), b.Key()) })
}

// requires finds what a binding takes along to its clusters.
func (st *step) requires(b, old *Binding) {
	switch {
	case b.Namespace == "" || len(b.Targets) == 0 || !b.Active.Policy.Spec.PropagateDeps:
	case b.answers != nil && b.answers.interprets:
		st.interpretedRequires(b, old)
	default:
		b.Requires = dependencies(b.Active.Template)
	}
}

// selected are the kinds that a binding selects of.
func (b *Binding) selected() []ID {
	if b == nil {
		return nil
	}
	return b.Selects
}

// needsOthers is whether a template can want others beside it, or had them.
func (st *step) needsOthers(id ID) bool {
	if hasDependencies(id.GroupKind()) || len(st.prev.Bindings.At(id.Key()).references()) > 0 {
		return true
	}
	t := st.next.Snapshot.Templates.At(id.Key())
	return t != nil && st.next.index.script(t, interpret.GetDependencies) != nil
}

// references are all objects that must stand beside a binding's works: what
// its template requires, and where it is held also what its released manifest
// does (fold rule 16).
func (b *Binding) references() []ID {
	if b == nil {
		return nil
	}
	all := map[ID]bool{}
	for _, id := range b.Requires {
		all[id] = true
	}
	for i := range b.Works {
		for _, id := range b.Works[i].lingering() {
			all[id] = true
		}
	}
	return sortedIDs(all)
}

// lingering is what a held work's released manifest references.
func (w *Work) lingering() []ID {
	if w.Released == nil || !w.Held && w.Blocked == "" {
		return nil
	}
	return w.Released.Requires
}

// attachment is how a template is needed on a cluster by others.
type attachment struct {
	// held is whether every one that needs it there is held there (decision 16).
	held bool
	// runs is whether one of them is held there and runs with it (fold rule 16).
	runs bool
}

// attachments are the clusters where owners need a template, with what they
// merge to for it: any that preserves does, any that overwrites does
// (decision 17, digest §8.4).
func (st *step) attachments(id ID) (on map[string]attachment, policy *Policy, preserve bool) {
	policy = attachedAbort
	for b := range st.owners(id) {
		direct := slices.Contains(b.Requires, id)
		for i := range b.Works {
			w := &b.Works[i]
			if b.answers != nil && !b.targets(w.Cluster) {
				continue // it is there for others itself, and that is not followed
			}
			runs := slices.Contains(w.lingering(), id)
			if !direct && !runs {
				continue
			}
			if on == nil {
				on = map[string]attachment{}
			}
			was, seen := on[w.Cluster]
			stands := w.Held || w.Blocked != ""
			on[w.Cluster] = attachment{held: stands && (!seen || was.held), runs: runs || was.runs}
		}
		preserve = preserve || b.Brakes.Keeps()
		if b.Active.Policy.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite {
			policy = attachedOverwrite
		}
	}
	return on, policy, preserve
}

// owners yields the templates that need id beside them.
func (ix *index) owners(id ID) func(func(ID) bool) { return under(ix.requires, id.Key()) }

// What is attached to others has no policy of its own; these stand for it.
var (
	attachedAbort     = attachedPolicy(policyv1alpha1.ConflictAbort)
	attachedOverwrite = attachedPolicy(policyv1alpha1.ConflictOverwrite)
)

func attachedPolicy(c policyv1alpha1.ConflictResolution) *Policy {
	p := &Policy{Spec: policyv1alpha1.PropagationSpec{ConflictResolution: c}}
	p.placement = schedule.NewPlacement(&p.Spec.Placement)
	p.Delayed = digestJSON(p.Spec)
	return p
}

// attached is whether a binding exists for its owners alone.
func (b *Binding) attached() bool {
	return b != nil && b.Active.Policy.Ref == PolicyRef{}
}

// attach binds a template that no policy has to where its owners need it. It
// has its current content in every step (fold rule 13).
func (st *step) attach(old *Binding, t *Template, policy *Policy, preserve bool) *Binding {
	b := &Binding{ID: t.ID, Brakes: &Brakes{Preserve: &preserve}}
	b.Active = st.activate(old, t, policy)
	return b
}

// linger keeps a removed template's works where held owners still run a
// manifest that references it. They keep what was released to them.
func (st *step) linger(old *Binding, on map[string]attachment, preserve bool) *Binding {
	b := &Binding{ID: old.ID, Active: old.Active, Brakes: old.Brakes}
	switch t := st.prev.snapshot().Templates.At(old.Key()); {
	case old.attached():
		b.Brakes = &Brakes{Preserve: &preserve}
	case t != nil:
		b.Brakes = st.brakesOfRemoved(old, t)
	}
	for _, w := range old.Works {
		if on[w.Cluster].runs && w.Released != nil {
			b.Works = append(b.Works, Work{Cluster: w.Cluster, Want: w.Released, Released: w.Released, Held: true, Preserve: b.Brakes.Keeps()})
		}
	}
	return b
}
