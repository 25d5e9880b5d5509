// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/render"
	"github.com/fairlead/fairlead/source"
)

func newValidate() *cobra.Command {
	var f lookFlags
	var suggest, all bool
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the fleet at a revision and report all problems at once",
		Long: `Folds the history up to --ref as the loop would and prints, as file:line: message,
every reason why its commit is refused or awaits confirmation, or else its findings.
It exits 1 if the commit is refused or awaits confirmation, a unit of it is frozen,
or an override or script fails for a template on each of its clusters.`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.validate(cmd, suggest, all) },
	}
	f.bind(cmd.Flags())
	cmd.Flags().BoolVar(&suggest, "suggest-ignore", false, "print only the lines for .fairleadignore that leave out what is no manifest")
	cmd.Flags().BoolVar(&all, "all", false, "print every finding, also where many are alike")
	return cmd
}

// suggestIgnore prints the lines for .fairleadignore that the problems of a commit
// propose, without those that another one covers.
func suggestIgnore(w io.Writer, state *propagate.State) {
	lines := map[string]bool{}
	note := func(problems []fleet.Problem) {
		for _, p := range problems {
			if line := render.IgnoreLine(p); line != "" {
				lines[line] = true
			}
		}
	}

	if state.Refusal != nil {
		note(state.Refusal.Problems)
	}
	for u := range state.Snapshot.Units.Values() {
		note(u.Broken)
	}

	for _, line := range slices.Sorted(maps.Keys(lines)) {
		covered := false
		for dir := range lines {
			covered = covered || dir != line && strings.HasSuffix(dir, "/") && strings.HasPrefix(line, dir)
		}
		if !covered {
			printable.Fprintf(w, "%s\n", line)
		}
	}
}

func (f *lookFlags) validate(cmd *cobra.Command, suggest, all bool) error {
	head, state, err := f.folded(cmd.Context())
	if err != nil {
		return err
	}

	out, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if suggest {
		suggestIgnore(out, &state)
		return nil
	}
	if r := state.Refusal; r != nil {
		for _, p := range r.Problems {
			fmt.Fprintln(out, p.Error())
		}
		if r.Guard != nil {
			for _, d := range r.Guard.Deletions {
				printable.Fprintf(out, "  would be deleted: %s on %s\n", d.ID, d.Cluster)
			}
			printable.Fprintf(stderr, "fairlead: commit %s awaits confirmation; to confirm it, add to a commit message:\n%s\n", source.Short(r.Commit), r.Guard.Trailer())
			return &exitError{exitFailed}
		}
		printable.Fprintf(stderr, "fairlead: commit %s is refused: %s\n", source.Short(r.Commit), report.Count(len(r.Problems), "problem"))
		return &exitError{exitFailed}
	}
	findings := append(state.Findings(), report.HoldFindings(&state, &state, time.Now())...)
	failures, nowhere := state.OverrideFailures()
	findings = append(findings, failures...)
	unlisted, err := f.unlisted(cmd.Context(), head)
	if err != nil {
		return err
	}
	findings = append(findings, unlisted...)
	most := report.MostAlike
	if all {
		most = len(findings)
	}
	for finding, more := range report.Abridge(findings, most, report.KindOf) {
		printable.Fprintf(out, "%s [%s %s]\n", finding, finding.Severity, finding.Code)
		if more > 0 {
			printable.Fprintf(out, "and %d more [%s %s]; --all prints them\n", more, finding.Severity, finding.Code)
		}
	}

	if frozen := state.FrozenUnits(); len(frozen) > 0 {
		printable.Fprintf(stderr, "fairlead: commit %s is accepted, but %s: %s\n", source.Short(head), frozenUnits(frozen), strings.Join(frozen, ", "))
		return &exitError{exitFailed}
	}

	if nowhere > 0 {
		printable.Fprintf(stderr, "fairlead: commit %s is accepted, but %s can be sent to no cluster\n", source.Short(head), report.Count(nowhere, "template"))
		return &exitError{exitFailed}
	}

	s := state.Snapshot
	printable.Fprintf(stderr, "commit %s is valid: %s, %s, %s, %s%s\n", source.Short(head), report.Count(s.Clusters.Len(), "cluster"),
		report.Count(s.Policies.Len(), "polic"), report.Count(s.Templates.Len(), "template"), report.Count(len(findings), "finding"), f.besides(cmd.Context(), head))

	return nil
}

// unlisted are the clusters and policies that no kustomization takes up.
func (f *lookFlags) unlisted(ctx context.Context, head string) ([]fleet.Finding, error) {
	repo, err := f.fleetFlags.open(ctx)
	if err != nil {
		return nil, err
	}
	c, err := repo.Commit(head)
	if err != nil {
		return nil, err
	}
	tree, err := c.Tree(f.path)
	if err != nil {
		return nil, err
	}
	return render.Unlisted(tree), nil
}

// besides points out that the validated commit is not the one checked out: its
// verdict is easily mistaken for that of a working branch.
func (f *lookFlags) besides(ctx context.Context, head string) string {
	if f.ref != "" || isURL(f.repo) {
		return ""
	}
	repo, err := f.fleetFlags.open(ctx)
	if err != nil {
		return ""
	}
	checkedOut, err := repo.Resolve("HEAD")
	if err != nil || checkedOut == head {
		return ""
	}
	branch, err := repo.DefaultBranch()
	if err != nil {
		return ""
	}

	return fmt.Sprintf("; it is that of %s, and %s is checked out: --ref HEAD", branch, source.Short(checkedOut))
}

// frozenUnits reads "1 unit of it is frozen".
func frozenUnits(paths []string) string {
	if len(paths) == 1 {
		return "1 unit of it is frozen"
	}
	return report.Count(len(paths), "unit") + " of it are frozen"
}
