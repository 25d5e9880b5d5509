// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/change"
)

func newActivate() *cobra.Command {
	var f editFlags
	var c change.Activate
	cmd := &cobra.Command{
		Use:   "activate POLICY",
		Short: "Activate deferred changes of a policy",
		Long: `Sets the policy's annotation fairlead.dev/activate to a new value, by default the
commit that the edit goes on top of. That counts as an update of every template
that the policy claims, so the changes that a lazy or static policy deferred take
effect.

Prints the plan of the edit and writes the file to the work tree. --commit commits
it, and --push pushes the commit to a branch of the remote.`,
		Example: `  fairlead activate default-apps
  fairlead activate default-apps --value 2026-11-28 --commit`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Policy = args[0]
			return f.edit(cmd, &c)
		},
	}
	f.bind(cmd)
	cmd.Flags().StringVarP(&c.Namespace, "namespace", "n", "", "the policy's namespace")
	cmd.Flags().StringVar(&c.Value, "value", "", "value of the annotation (default: the short hash of the parent commit)")
	return cmd
}
