// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/change"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/printable"
)

type adoptFlags struct {
	editFlags
	change.Adopt
	members           memberFlags
	namespace, output string
}

func newAdopt() *cobra.Command {
	var f adoptFlags
	cmd := &cobra.Command{
		Use:   "adopt KIND NAME -c CLUSTER",
		Short: "Write a template from an object of a cluster, so that the fleet adopts it unchanged",
		Long: `Reads an object from a cluster, through the context of --kubeconfig that has the
cluster's name, and writes it as a template, without the fields that servers and
controllers set. The same file gets a policy that sends the template to this
cluster, takes over the existing object (conflictResolution: Overwrite) and leaves
it running if the template is removed (preserveResourcesOnDeletion: true).

Prints the plan of the edit and writes the file to the work tree. --commit commits
it, and --push pushes the commit to a branch of the remote. The cluster is
only read: 'fairlead run' adopts the object once it has the commit. Its pods keep
running.`,
		Example: `  fairlead adopt deployment web -n shop -c eu-1 --kubeconfig members.yaml
  fairlead adopt deploy/shop/web -c eu-1 -d --commit
  fairlead adopt clusterrole reader -c eu-1 --into rbac --push`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.adopt(cmd, args) },
	}
	f.bind(cmd)
	f.members.bind(cmd.Flags())
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "the object's namespace (default: the context's)")
	cmd.Flags().StringVarP(&f.Cluster, "cluster", "c", "", "cluster that runs the object (required)")
	cmd.Flags().StringVar(&f.Into, "into", "", "directory of the fleet, or the file in it, to write to (default: adopted/NAMESPACE)")
	cmd.Flags().BoolVar(&f.Policy, "policy", true, "write a policy too")
	cmd.Flags().StringVar(&f.PolicyName, "policy-name", "", "name of the policy (default: NAME-KIND)")
	cmd.Flags().BoolVarP(&f.Dependencies, "dependencies", "d", false, "the policy also sends what the object references (propagateDeps)")
	cmd.Flags().BoolVar(&f.IncludeSecrets, "include-secrets", false, "allow a Secret, which is written in plain text")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "yaml: print what would be written, and write nothing")
	return cmd
}

func (f *adoptFlags) adopt(cmd *cobra.Command, args []string) error {
	if f.output != "" && f.output != "yaml" {
		return usagef("-o %q must be yaml", f.output)
	}
	if err := f.Check(); err != nil {
		return err
	}

	var err error
	if f.Asked, err = parseReference(args, f.namespace); err != nil {
		return err
	}
	s, err := f.session(cmd.Context(), &f.Adopt)
	if err != nil {
		return err
	}
	if err := f.read(cmd.Context(), s); err != nil {
		return err
	}

	if t := f.Adopted(s); t != nil {
		printable.Fprintf(cmd.OutOrStdout(), "%s is a template already: %s; nothing is written\n", t.ID, t.Origin)
		return nil
	}

	if f.output == "yaml" {
		_, text, err := f.Document(s)
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(text)
		return err
	}
	e, err := f.Edit(s)
	if err != nil {
		return err
	}

	return f.finish(cmd, s, e)
}

// read reads the named object from its cluster.
func (f *adoptFlags) read(ctx context.Context, s *change.Session) error {
	on, ok := s.Cluster(f.Cluster)
	if !ok {
		return fmt.Errorf("-c: the fleet has no cluster %q", f.Cluster)
	}
	ask, err := f.members.open()
	if err != nil {
		return err
	}

	failed := func(err error) error { return fmt.Errorf("%s: %s", f.Cluster, status.Cause(err)) }
	r, err := ask.Reader(on)
	if err != nil {
		return failed(err)
	}

	ctx, cancel := push.Within(ctx, f.members.timeout)
	defer cancel()
	word := f.Asked.Kind
	if f.Asked.Group != "" {
		word += "." + f.Asked.Group
	}
	res, err := r.Find(ctx, word)
	if err != nil {
		return failed(err)
	}

	ref := member.Ref{GroupVersionKind: res.GroupVersionKind, Name: f.Asked.Name}
	where := ""
	if res.Namespaced {
		ref.Namespace = cmp.Or(f.Asked.Namespace, ask.Namespace(f.Cluster))
		where = " in namespace " + ref.Namespace
	}
	live, err := r.Read(ctx, ref)
	switch {
	case err != nil:
		return failed(err)
	case live == nil:
		return fmt.Errorf("%s %q not found%s on %s", res, f.Asked.Name, where, f.Cluster)
	}

	f.Take(live, ref.GroupVersionKind, ref.Namespace, ref.Name)
	return nil
}
