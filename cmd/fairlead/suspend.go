// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/change"
	"github.com/fairlead/fairlead/look/report"
)

type holdFlags struct {
	editFlags
	change.Hold
}

func newSuspend() *cobra.Command {
	var f holdFlags
	c := change.Suspend{Today: report.Today(time.Now())}
	cmd := &cobra.Command{
		Use:   "suspend POLICY -c CLUSTER,... --reason TEXT",
		Short: "Hold what a policy sends to clusters, with a note of who, why and until when",
		Long: `Adds clusters to the policy's suspension, and a note of who suspended them, why and
until when. A held cluster gets no creates and no updates until it is resumed;
deletions still reach it.

Prints the plan of the edit and writes the file to the work tree. --commit commits
it, and --push pushes the commit to a branch of the remote. The rest of the
document stays as it is, including comments and layout.`,
		Example: `  fairlead suspend shop-web -c us-1,us-2 --reason "wait for eu-1" --until 2026-11-28
  fairlead suspend shop-web -c 'us-*' --reason "db migration" --ticket CHG-1201 --push
  fairlead suspend shop-web --all --reason "incident" --commit`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Hold = f.Hold
			c.Policy = args[0]
			return f.edit(cmd, &c)
		},
	}
	f.bind(cmd)
	cmd.Flags().StringVar(&c.Reason, "reason", "", "reason for the hold, in one line (required)")
	cmd.Flags().StringVar(&c.Until, "until", "", "last day of the hold, as YYYY-MM-DD; an expired hold is reported, not lifted")
	cmd.Flags().StringVar(&c.Ticket, "ticket", "", "ticket or URL with more about the hold")
	return cmd
}

func newResume() *cobra.Command {
	var f holdFlags
	cmd := &cobra.Command{
		Use:   "resume POLICY -c CLUSTER,... | --all",
		Short: "Lift a hold and release what it kept back",
		Long: `Removes clusters and their notes from the policy's suspension, and the suspension
with the last of them. If the policy holds every cluster, the suspension names the
other clusters that it can reach from then on.

Prints the plan of the edit and writes the file to the work tree. --commit commits
it, and --push pushes the commit to a branch of the remote.`,
		Example: `  fairlead resume shop-web -c eu-2
  fairlead resume shop-web --all --commit`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Policy = args[0]
			return f.edit(cmd, &change.Resume{Hold: f.Hold})
		},
	}
	f.bind(cmd)
	return cmd
}

func (f *holdFlags) bind(cmd *cobra.Command) {
	f.editFlags.bind(cmd)
	cmd.Flags().StringVarP(&f.Namespace, "namespace", "n", "", "the policy's namespace")
	cmd.Flags().StringSliceVarP(&f.Clusters, "cluster", "c", nil, "clusters: names, globs, or wave=N of the policy's waves")
	cmd.Flags().BoolVar(&f.All, "all", false, "every cluster")
}
