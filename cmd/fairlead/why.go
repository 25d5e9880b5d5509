// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/propagate"
)

// objectFlags are of commands that are about one object.
type objectFlags struct {
	lookFlags
	output, namespace string
	clusters          []string
}

func newWhy() *cobra.Command {
	var f objectFlags
	cmd := &cobra.Command{
		Use:   "why KIND/NAME [-c CLUSTER]",
		Short: "Say why a template is on a cluster, held, or not there",
		Long: `Prints the chain that leads from a template to its clusters: who claims it, what
places it there, its share of the replicas, what edits it, what it goes along
with, and what holds it; each with its file and line and the commit that changed
it last. Then what waits, and what to do about it. It reads git alone.

The object is named as for kubectl: deploy/web, deployments.apps/web, or with a
namespace deploy/shop/web. Without -c every cluster has a line, and those that
the template does not go to say why.`,
		Example: `  fairlead why deploy/shop/web
  fairlead why deploy/shop/web -c us-1
  fairlead why cm/web-config -n shop -o json`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.why(cmd, args) },
	}
	f.bindObject(cmd)
	return cmd
}

func (f *objectFlags) bindObject(cmd *cobra.Command) {
	f.bind(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text, json")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of the object (default: any that has it)")
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "c", nil, "only these clusters")
}

// followed is the trail of the one object that was asked for, up to head.
func (f *objectFlags) followed(cmd *cobra.Command, args []string) (t *trail, state propagate.State, id propagate.ID, head string, err error) {
	if err = checkOutput(f.output, "text", "json"); err != nil {
		return
	}
	asked, err := parseResource(args, f.namespace)
	if err != nil {
		return
	}
	l, err := f.open(cmd.Context())
	if err != nil {
		return
	}
	if head, err = l.resolve(f.ref); err != nil {
		return
	}
	if t, state, err = l.follow(head, asked); err != nil {
		return
	}
	warn(cmd.ErrOrStderr(), &state)
	if id, err = t.found(&state); err != nil {
		return
	}
	err = t.checkClusters(f.clusters)
	return
}

func (f *objectFlags) why(cmd *cobra.Command, args []string) error {
	t, state, id, head, err := f.followed(cmd, args)
	if err != nil {
		return err
	}
	if err := t.mustBeThere(&state, id); err != nil {
		return err
	}
	r := newWhyReport(t, &state, id, head, f.clusters)
	if f.output == "json" {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	return r.text(cmd.OutOrStdout(), len(f.clusters) > 0)
}

// mustBeThere is for questions about the fleet as it is.
func (t *trail) mustBeThere(s *propagate.State, id propagate.ID) error {
	if s.Snapshot.Templates.At(id.Key()) != nil || s.Bindings.At(id.Key()) != nil {
		return nil
	}
	return fmt.Errorf("%s is not in the fleet any more since %s; 'fairlead history %s' tells what became of it", id, t.commit(t.edited[id]), argument(id))
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
