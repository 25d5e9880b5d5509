// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead/fairlead/change"
)

func newTaint() *cobra.Command {
	var f editFlags
	var c change.Taint
	cmd := &cobra.Command{
		Use:   "taint CLUSTER KEY[=VALUE]:EFFECT... | KEY[:EFFECT]-...",
		Short: "Add taints to a cluster, or remove them",
		Long: `Adds taints to the Cluster document, or removes those with a trailing dash. The
effect is NoSchedule or NoExecute. Nothing new that does not tolerate the taint is
scheduled to the cluster; what already runs there stays, unless the effect is
NoExecute and the gate Failover is on.

Prints the plan of the edit and writes the file to the work tree. --commit commits
it, and --push pushes the commit to a branch of the remote.`,
		Example: `  fairlead taint eu-1 maintenance=disks:NoSchedule
  fairlead taint eu-1 maintenance=network:NoSchedule --overwrite
  fairlead taint eu-1 maintenance-`,
		Args: arguments(2, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			// karmadactl's form is accepted, too: taint clusters NAME KEY=VALUE:EFFECT
			if (args[0] == "clusters" || args[0] == "cluster") && len(args) > 2 && len(validation.IsDNS1123Label(args[1])) == 0 {
				args = args[1:]
			}
			c.Cluster, c.Taints = args[0], args[1:]
			return f.edit(cmd, &c)
		},
	}
	f.bind(cmd)
	cmd.Flags().BoolVar(&c.Overwrite, "overwrite", false, "replace the value of an existing taint")
	return cmd
}

func newCordon(verb, short string) *cobra.Command {
	var f editFlags
	cmd := &cobra.Command{
		Use:   verb + " CLUSTER",
		Short: short,
		Long: short + `, with the taint
` + change.Unschedulable.Key + `:` + string(change.Unschedulable.Effect) + `. What already runs there stays.

Prints the plan of the edit and writes the file to the work tree. --commit commits
it, and --push pushes the commit to a branch of the remote.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.edit(cmd, &change.Cordon{Cluster: args[0], Off: verb == "uncordon"})
		},
	}
	f.bind(cmd)
	return cmd
}
