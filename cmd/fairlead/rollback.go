// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/change"
)

func newRollback() *cobra.Command {
	var f editFlags
	var c change.Rollback
	cmd := &cobra.Command{
		Use:   "rollback POLICY [--to COMMIT]",
		Short: "Restore the templates of a policy",
		Long: `Restores the templates of a policy as they were before the last commit that changed
one of them, or as --to has them. Holds and everything else stay as they are, also
where one commit brought an image and its hold together. A template that has come
since goes where a kustomization no longer lists it, and stays where it has a file of
its own. Rolling back twice returns to where it began.

An edit is refused that would change a template of another policy.`,
		Example: `  fairlead rollback shop-web
  fairlead rollback shop-web --to v1.4.2 --push`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Policy = args[0]
			return f.edit(cmd, &c)
		},
	}
	f.bind(cmd)
	cmd.Flags().StringVarP(&c.Namespace, "namespace", "n", "", "the policy's namespace")
	cmd.Flags().StringVar(&c.To, "to", "", "the `commit` to restore them from (default: the one before the last change)")
	return cmd
}
