// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newValidate() *cobra.Command {
	var f lookFlags
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the fleet at a revision as the loop would, all problems at once",
		Long: `Folds the history up to --ref and prints every reason why its commit would be
refused or held, as file:line: message, and what is worth knowing otherwise.
It exits 1 when the commit would be refused or held, or a unit of it is frozen.`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.validate(cmd) },
	}
	f.bind(cmd.Flags())
	return cmd
}

func (f *lookFlags) validate(cmd *cobra.Command) error {
	head, state, err := f.folded(cmd.Context())
	if err != nil {
		return err
	}
	out, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if r := state.Refusal; r != nil {
		for _, p := range r.Problems {
			fmt.Fprintln(out, p.Error())
		}
		if r.Guard != nil {
			for _, d := range r.Guard.Deletions {
				fmt.Fprintf(out, "  would be deleted: %s on %s\n", d.ID, d.Cluster)
			}
			fmt.Fprintf(stderr, "fairlead: commit %s is held; to release it, add to a commit message:\n%s\n", short(r.Commit), r.Guard.Trailer())
			return &exitError{exitFailed}
		}
		fmt.Fprintf(stderr, "fairlead: commit %s is refused: %s\n", short(r.Commit), count(len(r.Problems), "problem"))
		return &exitError{exitFailed}
	}
	findings := append(state.Findings(), holdFindings(&state, &state, today())...)
	for _, finding := range findings {
		fmt.Fprintf(out, "%s [%s %s]\n", finding, finding.Level, finding.Code)
	}
	if frozen := state.FrozenUnits(); len(frozen) > 0 {
		fmt.Fprintf(stderr, "fairlead: commit %s is accepted, but %s: %s\n", short(head), frozenUnits(frozen), strings.Join(frozen, ", "))
		return &exitError{exitFailed}
	}
	s := state.Snapshot
	fmt.Fprintf(stderr, "commit %s is valid: %s, %s, %s, %s%s\n", short(head), count(s.Clusters.Len(), "cluster"),
		count(s.Policies.Len(), "polic"), count(s.Templates.Len(), "template"), count(len(findings), "finding"), f.besides(cmd.Context(), head))
	return nil
}

// besides says that another commit is checked out than was looked at: who works
// on a branch may take the verdict for that of the branch.
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
	return fmt.Sprintf("; it is that of %s, and %s is checked out: --ref HEAD", branch, short(checkedOut))
}

// frozenUnits reads "1 unit of it is frozen".
func frozenUnits(paths []string) string {
	if len(paths) == 1 {
		return "1 unit of it is frozen"
	}
	return count(len(paths), "unit") + " of it are frozen"
}

// count reads "1 cluster", "2 clusters", "2 policies".
func count(n int, thing string) string {
	switch {
	case thing == "polic" && n == 1:
		thing = "policy"
	case thing == "polic":
		thing = "policies"
	case n != 1:
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
