// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/look/plan"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema plan",
		Short: "Print the JSON Schema of an output",
		Long: `Prints the JSON Schema (draft 2020-12) of what 'fairlead plan -o json' prints. Within a
major of its formatVersion fields are only added: ignore those that you do not know.`,
		Example:   `  fairlead schema plan > plan.schema.json`,
		ValidArgs: []string{"plan"},
		Args:      arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOneOf("schema", args[0], "plan"); err != nil {
				return err
			}
			_, err := cmd.OutOrStdout().Write(plan.Schema())
			return err
		},
	}
}
