// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// objectFlags are the flags of commands about one object.
type objectFlags struct {
	lookFlags
	output, namespace string
	clusters          []string
}

type whyFlags struct {
	objectFlags
	record recordFlags
}

func newWhy() *cobra.Command {
	var f whyFlags
	cmd := &cobra.Command{
		Use:   "why KIND/NAME [-c CLUSTER]",
		Short: "Explain why a template is on a cluster, held, or not there",
		Long: `Prints the chain that leads from a template to its clusters: the policy that claims
it, the placement, its share of the replicas, the overrides, the template that it is
a dependency of, and what holds it; each with its file and line and the commit that
last changed it. Then what is held back, and what to do about it. It reads git alone,
and no cluster. What failed there is told with -c if 'fairlead run' with the same
repository, ref and path keeps its state on this machine, or in --state.

The object is named as for kubectl: deploy/web, deployments.apps/web, or with a
namespace deploy/shop/web. Without -c every cluster has a line, also those that the
template is not sent to, with the reason.`,
		Example: `  fairlead why deploy/shop/web
  fairlead why deploy/shop/web -c us-1
  fairlead why cm/web-config -n shop -o json`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.why(cmd, args) },
	}
	f.bindObject(cmd)
	f.record.bind(cmd.Flags())
	return cmd
}

func (f *objectFlags) bindObject(cmd *cobra.Command) {
	f.bind(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", strings.Join(reportForms, ", "))
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of the object (default: any that has it)")
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "c", nil, "only these clusters: names or globs")
}

// walk is how a command learns what happened to an object up to head.
type walk func(l *history.States, head string, asked object.Reference) (*history.Timeline, propagate.State, error)

// followed walks the history of the named object up to head.
func (f *objectFlags) followed(cmd *cobra.Command, args []string, up walk) (t *history.Timeline, state propagate.State, id object.ID, head string, err error) {
	if err = checkOutput(f.output, reportForms...); err != nil {
		return
	}
	asked, err := parseReference(args, f.namespace)
	if err != nil {
		return
	}
	l, err := f.open(cmd.Context())
	if err != nil {
		return
	}
	if head, err = l.Resolve(f.ref); err != nil {
		return
	}
	if t, state, err = up(l, head, asked); err != nil {
		return
	}

	warn(cmd.ErrOrStderr(), &state)
	if id, err = t.Found(&state); err != nil {
		return
	}

	f.clusters, err = t.ClustersCalled(f.clusters)
	return
}

func (f *whyFlags) why(cmd *cobra.Command, args []string) error {
	record, err := f.record.open(&f.fleetFlags)
	if err != nil {
		return err
	}
	defer record.Close()
	t, state, id, _, err := f.followed(cmd, args, standing)
	if err != nil {
		return err
	}
	if err := report.Present(t, &state, id, time.Now()); err != nil {
		return err
	}

	failures := status.Failures{}
	notes(cmd.ErrOrStderr(), readFailures(failures, record))
	r := report.NewWhy(t, &state, id, f.clusters, time.Now())
	if err := t.Err(); err != nil {
		return err
	}
	r.Failed(id, failures)
	if f.isDocument() {
		return output.Value(cmd.OutOrStdout(), f.output, r)
	}

	return r.Text(cmd.OutOrStdout(), len(f.clusters) > 0, f.screen(cmd))
}

// standing goes on from the cache, unless an older document than that of git is in effect:
// in a state that was kept it may be the one of a later commit, which says the same on
// another line.
func standing(l *history.States, head string, asked object.Reference) (*history.Timeline, propagate.State, error) {
	t, state, err := l.Standing(head, asked)
	if err != nil {
		return nil, state, err
	}
	if id, missing := t.Found(&state); missing == nil && state.OlderInEffect(id) {
		return l.Follow(head, asked)
	}
	return t, state, nil
}

// reportForms are the forms of a report. What is wide is the text in full, as a pipe
// gets it.
var reportForms = []string{output.FormText, output.FormWide, output.FormJSON, output.FormYAML}

func (f *objectFlags) isDocument() bool {
	return f.output == output.FormJSON || f.output == output.FormYAML
}

// screen returns what the text of a report is printed on.
func (f *objectFlags) screen(cmd *cobra.Command) output.Screen { return reportScreen(cmd, f.output) }

// reportScreen returns what a report is printed on in a form: wide fits no screen.
func reportScreen(cmd *cobra.Command, form string) output.Screen {
	screen := screenOf(cmd)
	if form == output.FormWide {
		screen.Width = 0
	}
	return screen
}
