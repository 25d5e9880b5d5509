// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/look/listing"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

func newRender() *cobra.Command {
	var f lookFlags
	var form string
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Print the rendered manifests of one revision",
		Long: `Renders the fleet's directory at --ref and prints its clusters, policies and
templates, with the defaults that the fold applies. It folds nothing: it renders
one tree. The values and annotations of Secrets are shown as ***.`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.render(cmd, form) },
	}
	f.bind(cmd.Flags())
	cmd.Flags().StringVarP(&form, "output", "o", "yaml", strings.Join(output.Described(outputs), ", "))
	return cmd
}

func (f *lookFlags) render(cmd *cobra.Command, text string) error {
	form, err := parseForm(text, outputs...)
	if err != nil {
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
	documents := []output.List{listing.Documents(in.Snapshot)}
	if err := output.Print(cmd.OutOrStdout(), documents, output.Options{Form: form}); err != nil || in.Snapshot.Whole() {
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
