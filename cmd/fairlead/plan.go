// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

type planFlags struct {
	lookFlags
	base, head       string
	output           string
	each             bool
	detailedExitcode bool
}

func newPlan() *cobra.Command {
	f := planFlags{}
	cmd := &cobra.Command{
		Use:   "plan [--base REV] [--head REV]",
		Short: "Show what a change does to every cluster before it is merged",
		Long: `Folds base..head as one step, as a merge would, and prints the effect: one cell
for each object on each cluster that changes or is held, and findings for the
reviewer. It reads git alone.

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
	r, err := f.compare(l)
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

// compare folds the base's history and the change on top of it.
func (f *planFlags) compare(l *history.States) (*report.Plan, error) {
	base, err := l.Resolve(f.base)
	if err != nil {
		return nil, err
	}
	head, err := l.Repo.Resolve(f.head)
	if err != nil {
		return nil, err
	}
	from, err := l.Repo.MergeBase(base, head)
	if err != nil {
		return nil, err
	}
	before, err := l.At(from)
	if err != nil {
		return nil, err
	}
	after, guard, err := l.Preview(before, from, head, f.each)
	if err != nil {
		return nil, err
	}
	commits, err := l.Repo.Ahead(from, head)
	if err != nil {
		return nil, err
	}

	plan := propagate.Compare(&before, &after, guard)
	plan.Findings = append(plan.Findings, report.HoldFindings(&before, &after, time.Now())...)
	plan.Findings = append(plan.Findings, report.TrailerFindings(commits)...)
	if len(commits) > 1 && !f.each {
		each, _, err := l.Preview(before, from, head, true)
		if err != nil && !errors.Is(err, source.ErrNotAncestor) {
			return nil, err
		}
		if err == nil {
			plan.Findings = append(plan.Findings, report.SplitFindings(&after, &each)...)
		}
	}
	stuck, err := report.BaseFindings(l, &before)
	if err != nil {
		return nil, err
	}
	plan.Findings = append(plan.Findings, stuck...)
	if from != base {
		plan.Findings = append(plan.Findings, fleet.Finding{
			Code: fleet.FindingBaseMoved, Severity: fleet.SeverityCaution,
			Message: f.baseName() + " has moved on since the change branched off: planned from " + source.Short(from) + "; merge or rebase to plan on " + source.Short(base),
		})
	}

	return report.NewPlan(plan, from, head, &after), nil
}

func (f *planFlags) baseName() string {
	if f.base == "" {
		return "the default branch"
	}
	return f.base
}
