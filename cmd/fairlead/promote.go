// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/change"
)

func newPromote() *cobra.Command {
	var f editFlags
	var c change.Promote
	cmd := &cobra.Command{
		Use:   "promote [POLICY] --next | --to WAVE",
		Short: "Resume the next wave of clusters",
		Long: `Resumes the first wave of a policy that still has a suspended cluster, or all
waves up to one. spec.waves of fairlead.yaml defines the waves of the fleet, each
with a name and its clusters; a policy may have its own in the annotation
fairlead.dev/waves, a list of lists of cluster names: "[[eu-1], [us-1, us-2]]".
Without waves, --next resumes the first cluster of the suspension's list.

Without POLICY, one edit promotes every policy that has suspended clusters in that
wave.`,
		Example: `  fairlead promote shop-web --next
  fairlead promote --to canary --push`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Policy = strings.Join(args, "")
			return f.edit(cmd, &c)
		},
	}
	f.bind(cmd)
	cmd.Flags().StringVarP(&c.Namespace, "namespace", "n", "", "the policy's namespace")
	cmd.Flags().BoolVar(&c.Next, "next", false, "resume the first wave that has a suspended cluster")
	cmd.Flags().StringVar(&c.To, "to", "", "resume every wave up to this `wave`: a number, counted from 1, or a name")
	return cmd
}
