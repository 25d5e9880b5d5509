// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/printable"
)

func newHistory() *cobra.Command {
	var f objectFlags
	cmd := &cobra.Command{
		Use:   "history KIND/NAME [-c CLUSTER]",
		Short: "Show which commits changed a template on its clusters",
		Long: `Folds the history and prints, newest first, every commit that changed what a
cluster runs of one object, or what is held there: created, updated, scaled,
held, released (with the commits that were held until then), moved, deleted,
preserved. Clusters with the same change share a line, with the replicas that
they run from then on. It reads git alone, and also finds objects that are no
longer in the fleet.`,
		Example: `  fairlead history deploy/shop/web
  fairlead history deploy/shop/web -c us-1 -o json`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.history(cmd, args) },
	}
	f.bindObject(cmd)
	return cmd
}

func (f *objectFlags) history(cmd *cobra.Command, args []string) error {
	t, _, id, head, err := f.followed(cmd, args, (*history.States).Follow)
	if err != nil {
		return err
	}

	r := report.NewHistory(t, id, head, f.clusters)
	if len(r.Steps) == 0 {
		printable.Fprintf(cmd.ErrOrStderr(), "Nothing of %s reached %s.\n", id, strings.Join(append(f.clusters, "any cluster")[:max(len(f.clusters), 1)], ", "))
	}
	if f.isDocument() {
		return output.Value(cmd.OutOrStdout(), f.output, r)
	}

	return r.Text(cmd.OutOrStdout(), f.screen(cmd))
}
