// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/edit"
	"github.com/fairlead/fairlead/propagate"
)

type adoptFlags struct {
	editFlags
	members            memberFlags
	namespace, cluster string
	into               string
	policy             bool
	policyName         string
	dependencies       bool
	includeSecrets     bool
	output             string
}

func newAdopt() *cobra.Command {
	var f adoptFlags
	cmd := &cobra.Command{
		Use:   "adopt KIND NAME -c CLUSTER",
		Short: "Write a template from what a cluster runs, so that the fleet takes it over as it is",
		Long: `Reads an object from a cluster, by the context of --kubeconfig that bears its
name, and writes it as a template: without what servers and controllers fill in.
Beside it stands a policy that sends it to this cluster, takes over what is there
(conflictResolution: Overwrite) and, should the template be removed again, leaves
it running (preserveResourcesOnDeletion: true).

Prints the plan of that, and writes the file in the work tree; --commit commits
it, --push commits it on a branch of the remote. The cluster is only read: it is
run that takes the object over, once the commit is there. Its pods stay.`,
		Example: `  fairlead adopt deployment web -n shop -c eu-1 --kubeconfig members.yaml
  fairlead adopt deploy/shop/web -c eu-1 -d --commit
  fairlead adopt clusterrole reader -c eu-1 --into rbac --push`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.adopt(cmd, args) },
	}
	f.bind(cmd)
	f.members.bind(cmd.Flags())
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "the object's namespace (default: the context's)")
	cmd.Flags().StringVarP(&f.cluster, "cluster", "c", "", "the cluster that runs it (required)")
	cmd.Flags().StringVar(&f.into, "into", "", "directory of the fleet for the file, or the file (default: adopted/NAMESPACE)")
	cmd.Flags().BoolVar(&f.policy, "policy", true, "write a policy too")
	cmd.Flags().StringVar(&f.policyName, "policy-name", "", "name of the policy (default: NAME-KIND)")
	cmd.Flags().BoolVarP(&f.dependencies, "dependencies", "d", false, "the policy also sends what the object references (propagateDeps)")
	cmd.Flags().BoolVar(&f.includeSecrets, "include-secrets", false, "write a Secret, in plain text")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "yaml: print what would be written, and nothing else")
	return cmd
}

func (f *adoptFlags) check() error {
	switch {
	case f.cluster == "":
		return usagef("from which cluster? -c NAME")
	case !f.policy && f.policyName != "":
		return usagef("--policy=false writes no policy that --policy-name could name")
	case !f.policy && f.dependencies:
		return usagef("--policy=false writes no policy that could send dependencies")
	case f.output != "" && f.output != "yaml":
		return usagef("-o %s: there is only yaml", f.output)
	}
	return nil
}

func (f *adoptFlags) adopt(cmd *cobra.Command, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	asked, err := parseResource(args, f.namespace)
	if err != nil {
		return err
	}
	d, err := f.open(cmd.Context(), "adopt-"+asked.kind+"-"+asked.name)
	if err != nil {
		return err
	}
	live, err := f.read(cmd.Context(), d, asked)
	if err != nil {
		return err
	}
	a := &adoption{id: idOf(live), cluster: f.cluster, live: live}
	if t, ok := d.in.Snapshot.Templates.Get(a.id.Key()); ok {
		fmt.Fprintf(cmd.OutOrStdout(), "%s is a template already: %s; nothing is written\n", a.id, t.Origin)
		return nil
	}
	if err := f.refuse(a); err != nil {
		return err
	}
	text, err := f.write(d, a)
	if err != nil {
		return err
	}
	if f.output == "yaml" {
		_, err := cmd.OutOrStdout().Write(text)
		return err
	}
	if err := d.create(a.file, text); err != nil {
		return err
	}
	for _, keeper := range dispatch.Keepers(live) {
		d.note("%s keeps it too: take it away there, or both will write it", keeper)
	}
	if scaler := dispatch.ScalerOf(live); scaler != "" && !f.scaled(d, a) {
		d.note("%s scales %s: adopt its HorizontalPodAutoscaler first, or label the template resourcetemplate.karmada.io/retain-replicas: \"true\", or both will set the replicas", scaler, a.id)
	}
	said := fmt.Sprintf("%s: %s as %s runs it", d.inRepository(a.file), a.id, a.cluster)
	if a.policy != nil {
		said += fmt.Sprintf(", and %s", *a.policy)
	}
	c := change{adopts: a, subject: fmt.Sprintf("fleet: adopt %s from %s", a.id, a.cluster), said: []string{said}}
	return d.finish(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), c)
}

// scaled is whether an autoscaler of the fleet scales the object.
func (f *adoptFlags) scaled(d *desk, a *adoption) bool {
	for t := range d.in.Snapshot.Templates.Values() {
		if t.Kind != "HorizontalPodAutoscaler" || t.Group != "autoscaling" || t.Namespace != a.id.Namespace {
			continue
		}
		kind, _, _ := unstructured.NestedString(t.Object, "spec", "scaleTargetRef", "kind")
		name, _, _ := unstructured.NestedString(t.Object, "spec", "scaleTargetRef", "name")
		if kind == a.id.Kind && name == a.id.Name {
			return true
		}
	}
	return false
}

// read reads the object that was asked for from its cluster.
func (f *adoptFlags) read(ctx context.Context, d *desk, asked resource) (map[string]any, error) {
	on, ok := d.in.Snapshot.Clusters.Get(f.cluster)
	if !ok {
		return nil, fmt.Errorf("-c: the fleet has no cluster %q", f.cluster)
	}
	ask, err := f.members.open()
	if err != nil {
		return nil, err
	}
	failed := func(err error) error { return fmt.Errorf("%s: %s", f.cluster, cause(err)) }
	r, err := ask.reader(on)
	if err != nil {
		return nil, failed(err)
	}
	ctx, cancel := dispatch.Within(ctx, f.members.timeout)
	defer cancel()
	word := asked.kind
	if asked.group != "" {
		word += "." + asked.group
	}
	res, err := r.Find(ctx, word)
	if err != nil {
		return nil, failed(err)
	}
	ref := dispatch.Ref{GroupVersionKind: res.GroupVersionKind, Name: asked.name}
	where := ""
	if res.Namespaced {
		ref.Namespace = cmp.Or(asked.namespace, ask.contexts.Namespace(f.cluster))
		where = " in namespace " + ref.Namespace
	}
	live, err := r.Read(ctx, ref)
	switch {
	case err != nil:
		return nil, failed(err)
	case live == nil:
		return nil, fmt.Errorf("%s %q not found%s on %s", res, asked.name, where, f.cluster)
	}
	return live, nil
}

func idOf(object map[string]any) propagate.ID {
	u := &unstructured.Unstructured{Object: object}
	gvk := u.GroupVersionKind()
	return propagate.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// refuse names objects that must not become templates.
func (f *adoptFlags) refuse(a *adoption) error {
	owner := dispatch.ControllerOf(a.live)
	switch {
	case owner != "":
		return fmt.Errorf("%s on %s belongs to %s, which makes it: adopt that, or what it belongs to", a.id, a.cluster, owner)
	case (&unstructured.Unstructured{Object: a.live}).GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s on %s is being deleted", a.id, a.cluster)
	case a.id.GroupKind().String() == "Secret" && !f.includeSecrets:
		return fmt.Errorf("%s is not adopted: what it holds would stand in git in plain text; --include-secrets writes it all the same", a.id)
	}
	return nil
}

// write makes the text of the template and its policy, and finds the place for
// it.
func (f *adoptFlags) write(d *desk, a *adoption) ([]byte, error) {
	a.template = dispatch.TemplateOf(a.live)
	documents := []any{a.template}
	base := strings.ToLower(a.id.Kind) + "-" + plainName(a.id.Name)
	if f.policy {
		a.policy = &propagate.PolicyRef{Namespace: a.id.Namespace, Name: cmp.Or(f.policyName, plainName(a.id.Name)+"-"+strings.ToLower(a.id.Kind))}
		if there, ok := d.in.Snapshot.Policies.Get(a.policy.Key()); ok {
			return nil, fmt.Errorf("%s is there already: %s; choose another name with --policy-name, or --policy=false", *a.policy, there.Origin)
		}
		documents = append(documents, f.policyOf(a))
	}
	switch into := path.Clean(f.into); {
	case f.into == "":
		a.file = path.Join("adopted", a.id.Namespace, base+".yaml")
	case path.IsAbs(into) || into == ".." || strings.HasPrefix(into, "../"):
		return nil, usagef("--into %s is not inside the fleet", f.into)
	case path.Ext(into) == ".yaml" || path.Ext(into) == ".yml":
		a.file = into
	default:
		a.file = path.Join(into, base+".yaml")
	}
	text, err := edit.New(documents...)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", a.id, a.cluster, err)
	}
	return text, nil
}

// plainName is a name as files and policies can bear it: those of roles may
// have colons and capitals.
func plainName(name string) string { return strings.ToLower(strings.ReplaceAll(name, ":", ".")) }

func (f *adoptFlags) policyOf(a *adoption) edit.Fields {
	meta := edit.Fields{{Name: "name", Value: a.policy.Name}}
	if a.policy.Namespace != "" {
		meta = append(meta, edit.Field{Name: "namespace", Value: a.policy.Namespace})
	}
	spec := edit.Fields{
		{Name: "resourceSelectors", Value: []any{edit.Fields{
			{Name: "apiVersion", Value: a.template["apiVersion"]}, {Name: "kind", Value: a.id.Kind}, {Name: "name", Value: a.id.Name},
		}}},
		{Name: "placement", Value: edit.Fields{{Name: "clusterAffinity", Value: edit.Fields{{Name: "clusterNames", Value: []any{a.cluster}}}}}},
		{Name: "conflictResolution", Value: string(policyv1alpha1.ConflictOverwrite)},
		{Name: "preserveResourcesOnDeletion", Value: true},
	}
	if f.dependencies {
		spec = append(spec, edit.Field{Name: "propagateDeps", Value: true})
	}
	return edit.Fields{
		{Name: "apiVersion", Value: policyv1alpha1.GroupVersion.String()},
		{Name: "kind", Value: a.policy.Kind()},
		{Name: "metadata", Value: meta},
		{Name: "spec", Value: spec},
	}
}
