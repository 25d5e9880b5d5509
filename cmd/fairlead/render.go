// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

func newRender() *cobra.Command {
	var f lookFlags
	var output string
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Print the rendered manifests of one revision",
		Long: `Renders the fleet's directory at --ref and prints its clusters, policies and
templates, with the defaults that the fold applies. It folds nothing: it renders
one tree. The values and annotations of Secrets are shown as ***.`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.render(cmd, output) },
	}
	f.bind(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "yaml, json, name, table, wide")
	return cmd
}

func (f *lookFlags) render(cmd *cobra.Command, output string) error {
	if err := checkOutput(output, outputs...); err != nil {
		return err
	}
	l, err := f.open(cmd.Context())
	if err != nil {
		return err
	}
	head, err := l.Resolve(f.ref)
	if err != nil {
		return err
	}
	c, err := l.Repo.Commit(head)
	if err != nil {
		return err
	}
	in, err := l.History.Read(c, &propagate.State{})
	if err != nil {
		return err
	}

	if in.Snapshot == nil {
		for _, p := range in.Problems {
			fmt.Fprintln(cmd.ErrOrStderr(), p.Error())
		}
		return fmt.Errorf("commit %s does not render: %s", source.Short(head), report.Count(len(in.Problems), "problem"))
	}
	if err := rendered(in.Snapshot).print(cmd.OutOrStdout(), output, false); err != nil || in.Snapshot.Whole() {
		return err
	}

	// Without a fold it is not known what a broken unit falls back to.
	for u := range in.Snapshot.Units.Values() {
		for _, p := range u.Broken {
			fmt.Fprintln(cmd.ErrOrStderr(), p.Error())
		}
	}

	return fmt.Errorf("commit %s renders only in part", source.Short(head))
}

// rendered lists the documents of a snapshot by where they stand.
func rendered(s *fleet.Snapshot) list {
	type placed struct {
		fleet.Origin
		item
	}
	var all []placed
	v := &view{state: &propagate.State{Snapshot: s}}
	for c := range s.Clusters.Values() {
		all = append(all, placed{c.Origin, item{c.Cluster, []any{"", "Cluster", c.Name, c.Origin.String()}}})
	}

	for p := range s.Policies.Values() {
		all = append(all, placed{p.Origin, item{v.policy(p), []any{p.Ref.Namespace, p.Ref.Kind(), p.Ref.Name, p.Origin.String()}}})
	}

	for t := range s.Templates.Values() {
		all = append(all, placed{t.Origin, item{t.Object, []any{t.Namespace, t.Kind, t.Name, t.Origin.String()}}})
	}

	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	found := list{columns: columns("NAMESPACE", "KIND", "NAME", "FILE")}
	for _, p := range all {
		found.items = append(found.items, p.item)
	}

	return found
}
