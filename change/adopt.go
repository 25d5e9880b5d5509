// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"strings"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/change/yamledit"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// Adopt writes a template from a live object, so that the fleet adopts the object
// unchanged.
type Adopt struct {
	Asked          object.Reference
	Cluster        string // that runs it
	Into           string // directory of the fleet, or the file in it, to write to
	Policy         bool   // write a policy, too
	PolicyName     string
	Dependencies   bool // the policy also sends what the object references
	IncludeSecrets bool

	// Live is the object as the cluster has it. The caller reads it once the session
	// is open, and before Edit.
	Live map[string]any
}

// Name returns the name from which a branch name is derived.
func (f *Adopt) Name() string { return "adopt-" + f.Asked.Kind + "-" + f.Asked.Name }

// Check refuses options that contradict each other.
func (f *Adopt) Check() error {
	switch {
	case f.Cluster == "":
		return optionf("-c NAME is required: the cluster to adopt from")
	case !f.Policy && f.PolicyName != "":
		return optionf("--policy-name cannot be used with --policy=false")
	case !f.Policy && f.Dependencies:
		return optionf("--dependencies cannot be used with --policy=false")
	}

	return nil
}

// Take notes what a cluster answered about an object. Which object that is the question
// says, and not the answer: who asked for a ConfigMap gets no template of a role binding.
func (f *Adopt) Take(live map[string]any, kind schema.GroupVersionKind, namespace, name string) {
	live = maps.Clone(live)
	meta, _ := live["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], meta["namespace"] = name, namespace
	if namespace == "" {
		delete(meta, "namespace")
	}
	live["apiVersion"], live["kind"] = kind.ToAPIVersionAndKind()
	live["metadata"] = meta
	f.Live = live
}

// Adopted returns the template that the object already has, nil without one.
func (f *Adopt) Adopted(s *Session) *fleet.Template {
	t, _ := s.Template(idOf(f.Live))
	return t
}

// Document returns the text that Edit writes, and its file in the fleet.
func (f *Adopt) Document(s *Session) (file string, text []byte, err error) {
	a, text, err := f.prepare(s)
	if err != nil {
		return "", nil, err
	}
	return a.file, text, nil
}

func (f *Adopt) prepare(s *Session) (*adoption, []byte, error) {
	a := &adoption{id: idOf(f.Live), cluster: f.Cluster, live: f.Live}
	if err := f.refuse(a); err != nil {
		return nil, nil, err
	}
	text, err := f.write(s, a)
	return a, text, err
}

// Edit adds the file, and notes who else manages the object.
func (f *Adopt) Edit(s *Session) (Edit, error) {
	a, text, err := f.prepare(s)
	if err != nil {
		return Edit{}, err
	}
	if err := s.create(a.file, text); err != nil {
		return Edit{}, err
	}

	for _, keeper := range object.Keepers(f.Live) {
		s.note("%s manages it too: remove it there, or both will write it", keeper)
	}

	if scaler := object.ScalerOf(f.Live); scaler != "" && !f.scaled(s, a) {
		s.note("%s scales %s: adopt its HorizontalPodAutoscaler first, or label the template resourcetemplate.karmada.io/retain-replicas: \"true\", or both will set the replicas", scaler, a.id)
	}
	said := fmt.Sprintf("%s: %s as %s runs it", s.inRepository(a.file), a.id, a.cluster)
	if a.policy != nil {
		said += fmt.Sprintf(", and %s", *a.policy)
	}

	return Edit{adopts: a, subject: fmt.Sprintf("fleet: adopt %s from %s", a.id, a.cluster), Said: []string{said}}, nil
}

// scaled reports whether an autoscaler of the fleet scales the object.
func (f *Adopt) scaled(s *Session, a *adoption) bool {
	for t := range s.in.Snapshot.Templates.Values() {
		if t.Kind != "HorizontalPodAutoscaler" || t.Group != "autoscaling" || t.Namespace != a.id.Namespace {
			continue
		}
		kind, _, _ := unstructured.NestedString(t.Object(), "spec", "scaleTargetRef", "kind")
		name, _, _ := unstructured.NestedString(t.Object(), "spec", "scaleTargetRef", "name")
		if kind == a.id.Kind && name == a.id.Name {
			return true
		}
	}

	return false
}

func idOf(obj map[string]any) object.ID {
	u := &unstructured.Unstructured{Object: obj}
	gvk := u.GroupVersionKind()
	return object.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// refuse returns an error for objects that must not become templates.
func (f *Adopt) refuse(a *adoption) error {
	owner := object.ControllerOf(a.live)
	switch {
	case owner != "":
		return fmt.Errorf("%s on %s is owned by %s, which creates it: adopt the owner instead", a.id, a.cluster, owner)
	case (&unstructured.Unstructured{Object: a.live}).GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s on %s is being deleted", a.id, a.cluster)
	case a.id.GroupKind().String() == "Secret" && !f.IncludeSecrets:
		return fmt.Errorf("%s is not adopted: its content would be in git in plain text; use --include-secrets to adopt it anyway", a.id)
	}

	return nil
}

// write returns the text of the template and its policy, and chooses the file.
func (f *Adopt) write(s *Session, a *adoption) ([]byte, error) {
	a.template = object.TemplateOf(a.live)
	documents := []any{a.template}
	base := strings.ToLower(a.id.Kind) + "-" + plainName(a.id.Name)
	if f.Policy {
		a.policy = &fleet.PolicyRef{Namespace: a.id.Namespace, Name: cmp.Or(f.PolicyName, plainName(a.id.Name)+"-"+strings.ToLower(a.id.Kind))}
		if there, ok := s.in.Snapshot.Policies.Get(a.policy.Key()); ok {
			return nil, fmt.Errorf("%s already exists: %s; choose another name with --policy-name, or use --policy=false", *a.policy, there.Origin)
		}
		documents = append(documents, f.policyFor(a))
	}
	switch into := path.Clean(f.Into); {
	case f.Into == "":
		a.file = path.Join("adopted", a.id.Namespace, base+".yaml")
	case path.IsAbs(into) || into == ".." || strings.HasPrefix(into, "../"):
		return nil, optionf("--into %s is not inside the fleet", f.Into)
	case path.Ext(into) == ".yaml" || path.Ext(into) == ".yml":
		a.file = into
	default:
		a.file = path.Join(into, base+".yaml")
	}

	text, err := yamledit.New(documents...)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", a.id, a.cluster, err)
	}

	return text, nil
}

// plainName returns a name that is valid for files and policies: those of roles
// may have colons and capitals.
func plainName(name string) string { return strings.ToLower(strings.ReplaceAll(name, ":", ".")) }

func (f *Adopt) policyFor(a *adoption) yamledit.Fields {
	meta := yamledit.Fields{{Name: "name", Value: a.policy.Name}}
	if a.policy.Namespace != "" {
		meta = append(meta, yamledit.Field{Name: "namespace", Value: a.policy.Namespace})
	}
	spec := yamledit.Fields{
		{Name: "resourceSelectors", Value: []any{yamledit.Fields{
			{Name: "apiVersion", Value: a.template["apiVersion"]}, {Name: "kind", Value: a.id.Kind}, {Name: "name", Value: a.id.Name},
		}}},
		{Name: "placement", Value: yamledit.Fields{{Name: "clusterAffinity", Value: yamledit.Fields{{Name: "clusterNames", Value: []any{a.cluster}}}}}},
		{Name: "conflictResolution", Value: string(policyv1alpha1.ConflictOverwrite)},
		{Name: "preserveResourcesOnDeletion", Value: true},
	}
	if f.Dependencies {
		spec = append(spec, yamledit.Field{Name: "propagateDeps", Value: true})
	}

	return yamledit.Fields{
		{Name: "apiVersion", Value: policyv1alpha1.GroupVersion.String()},
		{Name: "kind", Value: a.policy.Kind()},
		{Name: "metadata", Value: meta},
		{Name: "spec", Value: spec},
	}
}
