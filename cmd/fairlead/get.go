// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
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
		Short: "Show the fleet as git has it, or any resource as the clusters have it",
		Long: `Folds the history up to --ref and prints the result, from git alone.

  clusters    the members of the fleet; with --live their present condition
  policies    which templates are sent to which clusters
  templates   what can be sent, and the policy that claims it
  bindings    where each template is scheduled, and why
  works       what each cluster should have, held or not
  objects     what was last released to each cluster

Any other word is a Kubernetes resource, by any name that kubectl accepts, and is
shown live: each cluster of the fleet is queried through the context of
--kubeconfig that has its name. The columns are those of kubectl, with CLUSTER as
the second and ADOPTION, which tells whether fairlead manages the object, as the
last. A cluster that does not answer is reported on stderr.`,
		Example: `  fairlead get bindings
  fairlead get objects -c eu-1 -o yaml
  fairlead get works -l app=web --ref v1.4.0
  fairlead get deployments -n shop --kubeconfig members.yaml
  fairlead get pods -A -o wide`,
		Args:      arguments(1, 2),
		RunE:      func(cmd *cobra.Command, args []string) error { return f.get(cmd, args) },
		ValidArgs: []string{"clusters", "policies", "holds", "templates", "bindings", "works", "objects"},
	}
	f.bind(cmd.Flags())
	f.members.bind(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", strings.Join(outputs, ", "))
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "only this namespace (default: all; for live resources, the context's)")
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "all namespaces")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "label selector, as for kubectl")
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "c", nil, "only these clusters")
	cmd.Flags().BoolVar(&f.seen, "live", false, "with clusters: query each for its readiness and the commit that it is at")
	return cmd
}

// nouns are the kinds of the fleet that get prints, by every accepted name.
var nouns = map[string]func(*view) list{
	"cluster": (*view).clusters, "clusters": (*view).clusters,
	"policy": (*view).policies, "policies": (*view).policies,
	"hold": (*view).holds, "holds": (*view).holds,
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
		return usagef("get shows one resource at a time: %q names several", args[0])
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
		return usagef("--live is for clusters; a Kubernetes resource is always shown live")
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
		if v.live, err = f.inspect(cmd); err != nil {
			return err
		}
		v.state = &v.live.State
	}
	found := noun(v)
	if v.name != "" && len(found.items) == 0 {
		return fmt.Errorf("%s %q not found at %s", args[0], v.name, source.Short(head))
	}
	if len(found.items) == 0 && (f.output == "table" || f.output == "wide") {
		printable.Fprintf(cmd.ErrOrStderr(), "No %s found at %s.\n", args[0], source.Short(head))
		return nil
	}

	return found.print(cmd.OutOrStdout(), f.output, v.name != "")
}

// inspect queries the clusters for their condition.
func (f *getFlags) inspect(cmd *cobra.Command) (*status.Fleet, error) {
	live, err := f.status(cmd.Context(), &f.members, f.clusters)
	if err != nil {
		return nil, err
	}

	live.AskReady()
	if err := live.Inspect(cmd.Context()); err != nil {
		return nil, err
	}
	if err := live.CountBehind(); err != nil {
		return nil, err
	}

	notes(cmd.ErrOrStderr(), live.Notes())
	return live, nil
}

// view is a state with the user's selection from it.
type view struct {
	state        *propagate.State
	namespace    string // "" is all
	name         string // "" is all
	selector     labels.Selector
	onlyClusters []string
	live         *status.Fleet // nil without --live
}

// shows reports whether something of this name is selected.
func (v *view) shows(namespace, name string, set map[string]string) bool {
	return (v.namespace == "" || v.namespace == namespace) && (v.name == "" || v.name == name) && v.selector.Matches(labels.Set(set))
}

func (v *view) showsCluster(name string) bool {
	return len(v.onlyClusters) == 0 || slices.Contains(v.onlyClusters, name)
}
