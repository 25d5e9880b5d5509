// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/printable"
)

type planFlags struct {
	lookFlags
	base, head       string
	output           string
	each, noMerge    bool
	detailedExitcode bool
}

func newPlan() *cobra.Command {
	f := planFlags{}
	cmd := &cobra.Command{
		Use:   "plan [--base REV] [--head REV]",
		Short: "Show what a change does to every cluster before it is merged",
		Long: `Merges head into base in memory, folds that as one step, and prints the effect: one
cell for each object on each cluster that changes or is held, and findings for the
reviewer. It reads git alone. Files are merged whole: one that both sides changed is a
conflict. If head is a merge already, such as refs/pull/7/merge, it is planned as it is.

With -o markdown it prints the body of a pull request comment. The body stays
below 60,000 bytes, and text from the repository is escaped: it adds no markup and
mentions nobody.`,
		Example: `  fairlead plan
  fairlead plan --base origin/main -o markdown > comment.md
  fairlead plan --base origin/main --head my-branch -o json`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.plan(cmd) },
	}
	f.bind(cmd.Flags())
	cmd.Flags().StringVar(&f.base, "base", "", "revision to compare with (default: the default branch)")
	cmd.Flags().StringVar(&f.head, "head", "HEAD", "revision with the change")
	cmd.Flags().StringVarP(&f.output, "output", "o", output.FormText, strings.Join(planForms, ", "))
	cmd.Flags().BoolVar(&f.noMerge, "no-merge", false, "plan the change on the commit at which it left the base, even if that has moved on")
	cmd.Flags().BoolVar(&f.each, "each", false, "fold every commit of the change on its own, as after a rebase")
	cmd.Flags().BoolVar(&f.detailedExitcode, "detailed-exitcode", false, "exit 2 if something changes on a cluster")
	return cmd
}

// formMarkdown is the body of a comment on a pull request.
const formMarkdown = "markdown"

var planForms = []string{output.FormText, output.FormWide, formMarkdown, output.FormJSON, output.FormYAML}

func (f *planFlags) plan(cmd *cobra.Command) error {
	if err := checkOutput(f.output, planForms...); err != nil {
		return err
	}
	l, err := f.open(cmd.Context())
	if err != nil {
		return err
	}

	if f.base == "" {
		f.base = f.ref
	}
	for _, rev := range []string{f.base, f.head} {
		if err := l.Repo.FetchRef(cmd.Context(), rev); err != nil {
			return err
		}
	}
	r, err := plan.Make(l, plan.Request{Base: f.base, Head: f.head, NoMerge: f.noMerge, Each: f.each, Now: time.Now()})
	if err != nil {
		return err
	}
	if r.Base.Commit == r.Head.Commit {
		printable.Fprintf(cmd.ErrOrStderr(), "note: base and head are the same commit; name what to compare with, such as --base HEAD~1\n")
	}

	switch f.output {
	case output.FormJSON, output.FormYAML:
		err = output.Value(cmd.OutOrStdout(), f.output, r)
	case formMarkdown:
		err = r.Markdown(cmd.OutOrStdout())
	default:
		err = r.Text(cmd.OutOrStdout(), reportScreen(cmd, f.output))
	}

	switch {
	case err != nil:
		return err
	case !r.Complete:
		return &exitError{exitFailed}
	case f.detailedExitcode && r.Changes():
		return &exitError{exitDifferences}
	}

	return nil
}
