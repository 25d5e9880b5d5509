// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

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
		Long: `Folds base..head as one step, as a merge would, and prints what that does: one
cell for each object on each cluster that changes or is held, and what a
reviewer should look at. It reads git alone.

With -o markdown it is the body of a comment on a pull request: it stays below
60,000 bytes, and what comes from the repository can neither break out of it nor
notify anybody.`,
		Example: `  fairlead plan
  fairlead plan --base origin/main -o markdown > comment.md
  fairlead plan --base origin/main --head my-branch -o json`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.plan(cmd) },
	}
	f.bind(cmd.Flags())
	cmd.Flags().StringVar(&f.base, "base", "", "what the change is compared with (default: the default branch)")
	cmd.Flags().StringVar(&f.head, "head", "HEAD", "the change")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text, markdown, json")
	cmd.Flags().BoolVar(&f.each, "each", false, "fold every commit of the change on its own, as a rebase would")
	cmd.Flags().BoolVar(&f.detailedExitcode, "detailed-exitcode", false, "exit 2 when something changes on a cluster")
	return cmd
}

func (f *planFlags) plan(cmd *cobra.Command) error {
	if err := checkOutput(f.output, "text", "markdown", "json"); err != nil {
		return err
	}
	l, err := f.open(cmd.Context())
	if err != nil {
		return err
	}
	if f.base == "" {
		f.base = f.ref
	}
	r, err := l.compare(f)
	if err != nil {
		return err
	}
	switch f.output {
	case "json":
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		err = enc.Encode(r)
	case "markdown":
		err = r.markdown(cmd.OutOrStdout())
	default:
		err = r.text(cmd.OutOrStdout())
	}
	switch {
	case err != nil:
		return err
	case !r.Complete:
		return &exitError{exitFailed}
	case f.detailedExitcode && r.changes():
		return &exitError{exitDifferences}
	}
	return nil
}

// compare folds the base's history and the change on top of it.
func (l *look) compare(f *planFlags) (*planReport, error) {
	base, err := l.resolve(f.base)
	if err != nil {
		return nil, err
	}
	head, err := l.repo.Resolve(f.head)
	if err != nil {
		return nil, err
	}
	from, err := l.repo.MergeBase(base, head)
	if err != nil {
		return nil, err
	}
	before, err := l.at(from)
	if err != nil {
		return nil, err
	}
	after, guard, err := l.preview(before, from, head, f.each)
	if err != nil {
		return nil, err
	}
	plan := propagate.Compare(&before, &after, guard)
	plan.Findings = append(plan.Findings, holdFindings(&before, &after, today())...)
	if from != base {
		plan.Findings = append(plan.Findings, propagate.Finding{
			Code: propagate.FindingBaseMoved, Level: propagate.LevelCaution,
			Message: f.baseName() + " has moved on since the change branched off: planned from " + short(from) + "; merge or rebase to plan on " + short(base),
		})
	}
	return newPlanReport(plan, from, head, &after), nil
}

func (f *planFlags) baseName() string {
	if f.base == "" {
		return "the default branch"
	}
	return f.base
}

// preview is what a merge of head would lead to.
func (l *look) preview(before propagate.State, from, head string, each bool) (propagate.State, *propagate.Guard, error) {
	if from == head {
		return before, nil, nil
	}
	if each {
		commits, err := l.repo.History(from, head)
		if err != nil {
			return before, nil, err
		}
		return l.previewEach(before, commits)
	}
	c, err := l.repo.Commit(head)
	if err != nil {
		return before, nil, err
	}
	if c.Trailers, err = l.repo.TrailersIn(from, head); err != nil {
		return before, nil, err
	}
	return l.previewEach(before, []*source.Commit{c})
}

func (l *look) previewEach(state propagate.State, commits []*source.Commit) (after propagate.State, held *propagate.Guard, err error) {
	for _, c := range commits {
		in, err := l.history.Read(c, &state)
		if err != nil {
			return state, nil, err
		}
		next, guard := propagate.Preview(state, in)
		if guard != nil {
			held = guard
		}
		state = next
	}
	return state, held, nil
}
