// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/look/listing"
	"github.com/fairlead/fairlead/look/output"
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
		ValidArgs: listing.Nouns,
	}
	f.bind(cmd.Flags())
	f.members.bind(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", strings.Join(output.Described(outputs), ", "))
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "only this namespace (default: all; for live resources, the context's)")
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "all namespaces")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "label selector, as for kubectl")
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "c", nil, "only these clusters")
	cmd.Flags().BoolVar(&f.seen, "live", false, "with clusters: query each for its readiness and the commit that it is at")
	return cmd
}

func (f *getFlags) get(cmd *cobra.Command, args []string) error {
	if kind, name, both := strings.Cut(args[0], "/"); both && len(args) == 1 {
		args = []string{kind, name}
	}
	if strings.Contains(args[0], ",") {
		return usagef("get shows one resource at a time: %q names several", args[0])
	}
	form, err := parseForm(f.output, outputs...)
	if err != nil {
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
	o := output.Options{Form: form, Single: len(args) == 2}
	if !listing.IsNoun(args[0]) {
		return f.live(cmd, args, &state, o)
	}

	v := &listing.View{State: &state, Selector: selector, Clusters: f.clusters}
	if !f.allNamespaces {
		v.Namespace = f.namespace
	}
	if len(args) == 2 {
		v.Name = args[1]
	}
	for _, name := range f.clusters {
		if _, ok := state.Snapshot.Clusters.Get(name); !ok {
			return fmt.Errorf("-c: the fleet has no cluster %q", name)
		}
	}

	if f.seen {
		if v.Live, err = f.inspect(cmd); err != nil {
			return err
		}
		v.State = &v.Live.State
	}
	found := v.List(args[0])
	if v.Name != "" && len(found.Items) == 0 {
		return fmt.Errorf("%s %q not found at %s", args[0], v.Name, source.Short(head))
	}
	if len(found.Items) == 0 && form.Table() {
		printable.Fprintf(cmd.ErrOrStderr(), "No %s found at %s.\n", args[0], source.Short(head))
		return nil
	}

	return output.Print(cmd.OutOrStdout(), []output.List{found}, o)
}

// live prints a Kubernetes resource as the members have it.
func (f *getFlags) live(cmd *cobra.Command, args []string, state *propagate.State, o output.Options) error {
	clusters, err := chosen(state, f.clusters)
	if err != nil {
		return err
	}
	if len(clusters) == 0 {
		return errors.New("the fleet has no clusters")
	}
	if o.Single && f.allNamespaces {
		return usagef("a name and -A cannot be used together")
	}
	if o.Single && f.selector != "" {
		return usagef("a name and -l cannot be used together")
	}
	ask, err := f.members.open()
	if err != nil {
		return err
	}

	q := &listing.Question{
		Members: ask, Clusters: clusters, Marker: f.marker, Words: args[:1], Name: strings.Join(args[1:], ""),
		Namespace: f.namespace, AllNamespaces: f.allNamespaces, Selector: f.selector, Whole: o.Form.Whole(),
	}
	failed := q.Ask(cmd.Context())
	// An error that is the same everywhere is reported once.
	if err := status.NoneAsked(len(clusters), failed); err != nil {
		return fmt.Errorf("%w; git alone has %s", err, ourNouns)
	}
	if len(q.Answered()) == 0 && listing.OnlyNotServed(failed) {
		return fmt.Errorf("no cluster serves a resource %q, and git has %s", args[0], ourNouns)
	}

	silent(cmd.ErrOrStderr(), failed)
	if len(q.Answered()) == 0 {
		return &exitError{exitFailed} // every failure has been reported
	}

	lists := q.Lists()
	switch {
	case len(lists) == 0 && o.Single:
		return errors.New(q.Nothing())
	case len(lists) == 0 && o.Form.Table():
		printable.Fprintf(cmd.ErrOrStderr(), "N%s.\n", strings.TrimPrefix(q.Nothing(), "n"))
		return nil
	}

	return output.Print(cmd.OutOrStdout(), lists, o)
}

const ourNouns = "clusters, policies, holds, templates, bindings, works and objects"

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

// outputs are the forms of a list.
var outputs = []string{output.FormTable, output.FormWide, output.FormJSON, output.FormYAML, output.FormName}

// parseForm reads a value of -o that is one of the known forms.
func parseForm(o string, known ...string) (output.Form, error) {
	form, err := output.ParseForm(o, os.ReadFile, known...)
	if err != nil {
		return form, &usageError{err}
	}
	return form, nil
}

func checkOutput(o string, known ...string) error {
	_, err := parseForm(o, known...)
	return err
}
