// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
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
	noMerge          bool
	show             []string
	detailedExitcode bool
	out              []string
	failOn           []string
	expectDigest     string
	positions        string
}

func newPlan() *cobra.Command {
	f := planFlags{}
	cmd := &cobra.Command{
		Use:   "plan [--base REV] [--head REV]",
		Short: "Show what a change does to every cluster before it is merged",
		Long: `Merges head into base in memory, folds that as one step, and prints the effect: the
images that change, findings for the reviewer, the clusters, the holds and what lifted
ones let out, and each change with what differs and when it arrives. It reads git alone.
Files are merged whole: one that both sides changed is a conflict. If head is a merge
already, such as refs/pull/7/merge, it is planned as it is.

With -o markdown it prints the body of a pull request comment. The body stays
below 60,000 bytes, and text from the repository is escaped: it adds no markup and
mentions nobody. --out writes more forms into files, all of the same plan.

Exit codes, the first that applies: 1 if the change cannot be planned or would be
refused, 4 if it is not the plan of --expect-digest, 3 if a word of --fail-on applies, 2
with --detailed-exitcode if something changes on a cluster. Whatever it is, the plan is
printed.`,
		Example: `  fairlead plan
  fairlead plan --base origin/main -o markdown > comment.md
  fairlead plan --base origin/main --head my-branch -o json
  fairlead plan --out json=plan.json --out markdown=comment.md --fail-on delete,caution`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.plan(cmd) },
	}
	f.bind(cmd.Flags())
	cmd.Flags().StringVar(&f.base, "base", "", "revision to compare with (default: the default branch)")
	cmd.Flags().StringVar(&f.head, "head", "HEAD", "revision with the change")
	cmd.Flags().StringVarP(&f.output, "output", "o", output.FormText, strings.Join(plan.FormNames(), ", "))
	cmd.Flags().BoolVar(&f.noMerge, "no-merge", false, "plan the change on the commit at which it left the base, even if that has moved on")
	cmd.Flags().BoolVar(&f.each, "each", false, "fold every commit of the change on its own, as after a rebase")
	cmd.Flags().BoolVar(&f.all, "all", false, "list what waits as before, too, and every cluster by name")
	cmd.Flags().StringSliceVar(&f.show, "show", nil, "also show: "+strings.Join(planShows, ", "))
	cmd.Flags().StringArrayVar(&f.out, "out", nil, "write the plan into a file as well, `FORM=FILE`, with a form of -o; can be repeated; - is the standard output")
	cmd.Flags().StringVar(&f.positions, "positions", "", "`file or URL` with what 'fairlead status -o json' printed: plan from what clusters run (default: what was released to them)")
	cmd.Flags().StringSliceVar(&f.failOn, "fail-on", nil, "exit 3 if the plan has one of these: delete, move, caution, error, or the code of a finding")
	cmd.Flags().StringVar(&f.expectDigest, "expect-digest", "", "exit 4 if the plan does not have this `digest`, which -o json shows")
	cmd.Flags().BoolVar(&f.detailedExitcode, "detailed-exitcode", false, "exit 2 if something changes on a cluster")
	return cmd
}

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

// view is how the plan is printed.
func (f *planFlags) view(cmd *cobra.Command) plan.View {
	return plan.View{Screen: reportScreen(cmd, f.output), All: f.all || f.output == output.FormWide, Diffs: slices.Contains(f.show, showDiff), Deferred: f.all || slices.Contains(f.show, showDeferred)}
}

// fileView is view for a file, which has no width and no colours.
func (f *planFlags) fileView(cmd *cobra.Command) plan.View {
	view := f.view(cmd)
	view.Screen = output.Screen{}
	return view
}

var digest = regexp.MustCompile("^sha256:[0-9a-f]{64}$")

// check refuses values of flags that no plan can satisfy.
func (f *planFlags) check() error {
	if err := checkOutput(f.output, plan.FormNames()...); err != nil {
		return err
	}
	for _, word := range f.failOn {
		if err := checkOneOf("--fail-on", word, plan.GateWords...); err != nil {
			return err
		}
	}
	if f.expectDigest != "" && !digest.MatchString(f.expectDigest) {
		return usagef("--expect-digest %q must be sha256: and 64 hexadecimal digits, as -o json shows it", f.expectDigest)
	}
	return nil
}

func (f *planFlags) plan(cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	files, err := outFiles(f.out, cmd.Flags().Changed("output"))
	if err != nil {
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
	for _, rev := range []string{f.base, f.head} {
		if err := l.Repo.FetchRef(cmd.Context(), rev); err != nil {
			return err
		}
	}
	reported, err := readPositions(cmd.Context(), f.positions)
	if err != nil {
		return err
	}
	r, err := plan.Make(l, plan.Request{Base: f.base, Head: f.head, NoMerge: f.noMerge, Each: f.each, Noise: slices.Contains(f.show, showNoise), Reported: reported, Now: time.Now()})
	if err != nil {
		return err
	}
	if r.Base.Commit == r.Head.Commit {
		printable.Fprintf(cmd.ErrOrStderr(), "note: base and head are the same commit; name what to compare with, such as --base HEAD~1\n")
	}

	if !slices.ContainsFunc(files, outFile.isStdout) {
		form, _ := plan.FormOf(f.output)
		if err := form.Write(r, cmd.OutOrStdout(), f.view(cmd)); err != nil {
			return err
		}
	}
	if err := writeAll(files, r, cmd.OutOrStdout(), f.fileView(cmd)); err != nil {
		return err
	}
	return f.verdict(cmd, r)
}

// verdict returns the exit code of a plan that was printed.
func (f *planFlags) verdict(cmd *cobra.Command, r *plan.Plan) error {
	if !r.Complete {
		return &exitError{exitFailed}
	}
	if f.expectDigest != "" && r.Digest != f.expectDigest {
		printable.Fprintf(cmd.ErrOrStderr(), "fairlead: this is not the plan that was expected: its digest is %s, --expect-digest is %s\n", r.Digest, f.expectDigest)
		return &exitError{exitOtherPlan}
	}

	reasons := r.Stops(f.failOn)
	for _, reason := range reasons {
		printable.Fprintf(cmd.ErrOrStderr(), "fairlead: --fail-on %s\n", reason)
	}
	switch {
	case len(reasons) > 0:
		return &exitError{exitStopped}
	case f.detailedExitcode && r.HasEffect():
		return &exitError{exitDifferences}
	}
	return nil
}
