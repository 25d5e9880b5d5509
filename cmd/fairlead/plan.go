// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
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
	each, all        bool
	show             []string
	detailedExitcode bool
}

func newPlan() *cobra.Command {
	f := planFlags{}
	cmd := &cobra.Command{
		Use:   "plan [--base REV] [--head REV]",
		Short: "Show what a change does to every cluster before it is merged",
		Long: `Folds base..head as one step, as a merge would, and prints the effect: the images
that change, findings for the reviewer, the clusters, the holds and what lifted ones
let out, and each change with what differs and when it arrives. It reads git alone.

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
	cmd.Flags().BoolVar(&f.each, "each", false, "fold every commit of the change on its own, as after a rebase")
	cmd.Flags().BoolVar(&f.all, "all", false, "list what waits as before, too, and every cluster by name")
	cmd.Flags().StringSliceVar(&f.show, "show", nil, "also show: "+strings.Join(planShows, ", "))
	cmd.Flags().BoolVar(&f.detailedExitcode, "detailed-exitcode", false, "exit 2 if something changes on a cluster")
	return cmd
}

// formMarkdown is the body of a comment on a pull request, and formHTML a page.
const (
	formMarkdown = "markdown"
	formHTML     = "html"
)

var planForms = []string{output.FormText, output.FormWide, formMarkdown, formHTML, output.FormJSON, output.FormYAML}

// What --show adds to a plan: diffs of manifests, changes that are deferred, and fields
// that follow from other changes.
const (
	showDiff     = "diff"
	showDeferred = "deferred"
	showNoise    = "noise"
)

var planShows = []string{showDiff, showDeferred, showNoise}

func checkShows(shows []string) error {
	for _, show := range shows {
		if !slices.Contains(planShows, show) {
			return usagef("--show %s: want %s", show, strings.Join(planShows, ", "))
		}
	}
	return nil
}

func (f *planFlags) shown() plan.TextOptions {
	return plan.TextOptions{All: f.all || f.output == output.FormWide, Diffs: slices.Contains(f.show, showDiff), Deferred: f.all || slices.Contains(f.show, showDeferred)}
}

func (f *planFlags) plan(cmd *cobra.Command) error {
	if err := checkOutput(f.output, planForms...); err != nil {
		return err
	}
	if err := checkShows(f.show); err != nil {
		return err
	}
	l, err := f.open(cmd.Context())
	if err != nil {
		return err
	}

	if f.base == "" {
		f.base = f.ref
	}
	r, err := plan.Make(l, plan.Request{Base: f.base, Head: f.head, Each: f.each, Noise: slices.Contains(f.show, showNoise), Now: time.Now()})
	if err != nil {
		return err
	}
	if r.Base == r.Head {
		printable.Fprintf(cmd.ErrOrStderr(), "note: base and head are the same commit; name what to compare with, such as --base HEAD~1\n")
	}

	switch f.output {
	case output.FormJSON, output.FormYAML:
		err = output.Value(cmd.OutOrStdout(), f.output, r)
	case formMarkdown:
		err = r.Markdown(cmd.OutOrStdout(), plan.GitHubLimit)
	case formHTML:
		err = r.HTML(cmd.OutOrStdout())
	default:
		err = r.Text(cmd.OutOrStdout(), reportScreen(cmd, f.output), f.shown())
	}

	switch {
	case err != nil:
		return err
	case !r.Complete:
		return &exitError{exitFailed}
	case f.detailedExitcode && r.HasEffect():
		return &exitError{exitDifferences}
	}

	return nil
}
