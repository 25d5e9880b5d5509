// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/propagate"
)

type getFlags struct {
	lookFlags
	members       memberFlags
	output        string
	namespace     string
	allNamespaces bool
	selector      string
	clusters      []string
	seen          bool
}

func newGet() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get NOUN [NAME]",
		Short: "Show what git says of the fleet, or any resource as the clusters have it",
		Long: `Folds the history up to --ref and prints what came of it, from git alone.

  clusters    the members of the fleet; with --live as they are now
  policies    who sends what where
  templates   what can be sent, and who claims it
  bindings    where each template goes, and why
  works       what each cluster is meant to have, held or not
  objects     what each cluster runs: what was last released to it

Any other word is a resource of Kubernetes, by any name that kubectl knows it
by, and is shown live: each cluster of the fleet is asked by the context of
--kubeconfig that bears its name. The columns are those of kubectl, with the
cluster behind the first and ADOPTION, whether the object is ours, as the last.
A cluster that does not answer is a line on stderr.`,
		Example: `  fairlead get bindings
  fairlead get objects -c eu-1 -o yaml
  fairlead get works -l app=web --ref v1.4.0
  fairlead get deployments -n shop --kubeconfig members.yaml
  fairlead get pods -A -o wide`,
		Args:      arguments(1, 2),
		RunE:      func(cmd *cobra.Command, args []string) error { return f.get(cmd, args) },
		ValidArgs: []string{"clusters", "policies", "templates", "bindings", "works", "objects"},
	}
	f.bind(cmd.Flags())
	f.members.bind(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", strings.Join(outputs, ", "))
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "only this namespace (default: all; of a resource that is shown live, the context's)")
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "all namespaces")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "only what has these labels")
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "c", nil, "only these clusters")
	cmd.Flags().BoolVar(&f.seen, "live", false, "of clusters: ask each whether it is ready, and how far it is")
	return cmd
}

// nouns are what get knows, under every name that users have for it.
var nouns = map[string]func(*view) list{
	"cluster": (*view).clusters, "clusters": (*view).clusters,
	"policy": (*view).policies, "policies": (*view).policies,
	"template": (*view).templates, "templates": (*view).templates,
	"binding": (*view).bindings, "bindings": (*view).bindings, "rb": (*view).bindings, "crb": (*view).bindings,
	"work": (*view).works, "works": (*view).works, "wk": (*view).works,
	"object": (*view).objects, "objects": (*view).objects,
}

func (f *getFlags) get(cmd *cobra.Command, args []string) error {
	if kind, name, both := strings.Cut(args[0], "/"); both && len(args) == 1 {
		args = []string{kind, name}
	}
	if strings.Contains(args[0], ",") {
		return usagef("get shows one resource at a time, and %q are more", args[0])
	}
	noun, ours := nouns[args[0]]
	if err := checkOutput(f.output, outputs...); err != nil {
		return err
	}
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return usagef("-l: %w", err)
	}
	if f.seen && args[0] != "cluster" && args[0] != "clusters" {
		return usagef("--live is for clusters; a resource of Kubernetes is always shown live")
	}
	head, state, err := f.folded(cmd.Context())
	if err != nil {
		return err
	}
	warn(cmd.ErrOrStderr(), &state)
	if !ours {
		return f.live(cmd, args[0], strings.Join(args[1:], ""), &state)
	}
	v := &view{state: &state, selector: selector, onlyClusters: f.clusters}
	if !f.allNamespaces {
		v.namespace = f.namespace
	}
	if len(args) == 2 {
		v.name = args[1]
	}
	for _, name := range f.clusters {
		if _, ok := state.Snapshot.Clusters.Get(name); !ok {
			return fmt.Errorf("-c: the fleet has no cluster %q", name)
		}
	}
	if f.seen {
		if v.live, err = f.lookAt(cmd); err != nil {
			return err
		}
		v.state = &v.live.state
	}
	found := noun(v)
	if v.name != "" && len(found.items) == 0 {
		return fmt.Errorf("%s %q not found at %s", args[0], v.name, short(head))
	}
	if len(found.items) == 0 && (f.output == "table" || f.output == "wide") {
		fmt.Fprintf(cmd.ErrOrStderr(), "No %s found at %s.\n", args[0], short(head))
		return nil
	}
	return found.print(cmd.OutOrStdout(), f.output, v.name != "")
}

// lookAt asks the clusters how they are.
func (f *getFlags) lookAt(cmd *cobra.Command) (*outlook, error) {
	o, err := f.outlook(cmd.Context(), &f.members, f.clusters)
	if err != nil {
		return nil, err
	}
	o.ready = map[string]bool{}
	if err := o.see(cmd.Context()); err != nil {
		return nil, err
	}
	if err := o.lag(); err != nil {
		return nil, err
	}
	o.silence(cmd.ErrOrStderr())
	return o, nil
}

// view is a state with what the user asked to see of it.
type view struct {
	state        *propagate.State
	namespace    string // "" is all
	name         string // "" is all
	selector     labels.Selector
	onlyClusters []string
	live         *outlook // nil where nobody was asked
}

// shows is whether the user asked for something of this name.
func (v *view) shows(namespace, name string, set map[string]string) bool {
	return (v.namespace == "" || v.namespace == namespace) && (v.name == "" || v.name == name) && v.selector.Matches(labels.Set(set))
}

func (v *view) showsCluster(name string) bool {
	return len(v.onlyClusters) == 0 || slices.Contains(v.onlyClusters, name)
}

// labelsOf a binding are its template's.
func (v *view) labelsOf(b *propagate.Binding) map[string]string {
	if t := v.state.Snapshot.Templates.At(b.Key()); t != nil {
		return t.Labels
	}
	return b.Active.Template.Labels
}
