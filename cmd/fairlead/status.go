// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/source"
)

type statusFlags struct {
	lookFlags
	members       memberFlags
	record        recordFlags
	output        string
	namespace     string
	allNamespaces bool
	selector      string
	clusters      []string
	only          []string
	wave          int
	watch         bool
}

func newStatus() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of every template on every cluster",
		Long: `Compares what git wants on every cluster with what the clusters have. The marks on
their objects tell which commit's content they run, and the objects' status how it
is doing. No other process is involved.

` + report.Legend + `

A number after a symbol is how many replicas the cluster should run, and during a
rollout how many of them are available. -o json and -o yaml print each template's
ResourceBinding with the status collected from its clusters, and the template with
the aggregated status.

A cluster that does not answer is shown as '?' and reported on stderr.

If 'fairlead run' with the same repository, ref and path keeps its state on this
machine, or in --state, its record tells why an object is missing or outdated.`,
		Example: `  fairlead status --kubeconfig members.yaml
  fairlead status --only outdated,held,failed
  fairlead status -n shop --wave 2 -w`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.show(cmd) },
	}
	f.bind(cmd.Flags())
	f.members.bind(cmd.Flags())
	f.record.bind(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "table", strings.Join(statusForms, ", "))
	flags.StringVarP(&f.namespace, "namespace", "n", "", "only this namespace (default: all)")
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "all namespaces")
	flags.StringVarP(&f.selector, "selector", "l", "", "label selector for templates, as for kubectl")
	flags.StringSliceVarP(&f.clusters, "cluster", "c", nil, "only these clusters: names, globs, or wave=N")
	flags.StringSliceVar(&f.only, "only", nil, "only templates that are, on some cluster: "+strings.Join(report.Words, ", "))
	flags.IntVar(&f.wave, "wave", 0, "only the clusters of this wave of the templates' policies")
	flags.BoolVarP(&f.watch, "watch", "w", false, "print again whenever something has changed")
	return cmd
}

var statusForms = []string{output.FormTable, output.FormWide, output.FormJSON, output.FormYAML, output.FormName}

func (f *statusFlags) show(cmd *cobra.Command) error {
	if err := checkOutput(f.output, statusForms...); err != nil {
		return err
	}

	for _, word := range f.only {
		if !slices.Contains(report.Words, word) {
			return usagef("--only %q must be one of %s", word, strings.Join(report.Words, ", "))
		}
	}

	if f.wave < 0 {
		return usagef("--wave: waves are numbered from 1")
	}
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return usagef("-l: %w", err)
	}
	record, err := f.record.open(&f.fleetFlags)
	if err != nil {
		return err
	}
	defer record.Close()
	seen, err := f.status(cmd.Context(), &f.members, f.asks())
	if err != nil {
		return err
	}
	if f.wave > 0 && len(status.InWave(&seen.State, f.wave)) == 0 {
		return fmt.Errorf("--wave: no policy has a wave %d", f.wave)
	}

	namespace := f.namespace
	if f.allNamespaces {
		namespace = ""
	}
	show := &statusView{Fleet: seen, screen: screenOf(cmd), flags: f, record: record, query: report.MatrixQuery{Only: f.only, Wave: f.wave}}
	show.query.Template = func(id object.ID, set map[string]string) bool {
		return (namespace == "" || namespace == id.Namespace) && selector.Matches(labels.Set(set))
	}
	if f.watch {
		return show.again(cmd)
	}
	text, beside, err := show.look(cmd.Context())
	if err != nil {
		return err
	}

	_, err = show.screen.Writer(cmd.OutOrStdout()).Write(text)
	_, noteErr := cmd.ErrOrStderr().Write(beside)
	return errors.Join(err, noteErr)
}

// asks returns the clusters to inspect. Whether something is applied everywhere
// takes all of them.
func (f *statusFlags) asks() []string {
	if f.output == output.FormJSON || f.output == output.FormYAML {
		return nil
	}
	return f.clusters
}

// statusView is a fleet with the user's selection from it.
type statusView struct {
	*status.Fleet
	screen output.Screen
	flags  *statusFlags
	record *eventlog.Reader // nil when there is none
	query  report.MatrixQuery
}

// look inspects the clusters once. beside is for stderr.
func (v *statusView) look(ctx context.Context) (text, beside []byte, err error) {
	v.query.Clusters = nil
	if len(v.flags.clusters) > 0 {
		chosen, err := chosen(&v.State, v.flags.clusters)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range chosen {
			v.query.Clusters = append(v.query.Clusters, c.Name)
		}
	}
	if err := v.Inspect(ctx); err != nil {
		return nil, nil, err
	}
	unread := explain(v.Fleet, v.record)
	if err := v.CountBehind(); err != nil {
		return nil, nil, err
	}

	var out, stderr bytes.Buffer
	warn(&stderr, &v.State)
	notes(&stderr, append(v.Notes(), unread...))
	notes(&stderr, v.Unclear())
	switch rows := v.query.Rows(v.Fleet); {
	case v.flags.output == output.FormName:
		for _, r := range rows {
			printable.Fprintf(&out, "%s\n", object.Argument(r.ID))
		}
	case v.flags.output == output.FormJSON || v.flags.output == output.FormYAML:
		l := v.memberStatus(rows, &stderr)
		err = output.Print(&out, []output.List{l}, output.Options{Form: output.Form{Name: v.flags.output}})
	case len(rows) == 0:
		printable.Fprintf(&stderr, "No templates found at %s.\n", v.described())
	default:
		m := report.NewMatrix(v.Fleet, v.query, rows)
		if m.Refusal, err = report.NewRefusal(v.States, &v.State); err != nil {
			return nil, nil, err
		}
		err = m.Text(&out, v.screen, v.flags.output == output.FormWide)
	}

	return out.Bytes(), stderr.Bytes(), err
}

// described describes the user's selection of templates.
func (v *statusView) described() string {
	if len(v.flags.only) == 0 {
		return source.Short(v.Head)
	}
	return source.Short(v.Head) + " that are " + strings.Join(v.flags.only, " or ")
}

// again inspects the clusters until ctx is done, and prints the text when it has
// changed. A terminal is cleared before; other outputs get it appended.
func (v *statusView) again(cmd *cobra.Command) error {
	ctx, terminal := cmd.Context(), terminalOf(cmd.OutOrStdout()) != nil
	var last []byte
	for {
		if err := v.Fetch(ctx); err != nil {
			notes(cmd.ErrOrStderr(), []string{err.Error()})
		}
		if err := v.Fold(v.flags.ref, choosing(v.flags.asks())); err != nil {
			return err
		}
		text, beside, err := v.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // an interrupt ends the watch
		case err != nil:
			return err
		}
		if now := slices.Concat(text, beside); last == nil || !bytes.Equal(now, last) {
			switch {
			case terminal:
				if _, err := io.WriteString(printable.Raw(cmd.OutOrStdout()), "\x1b[H\x1b[2J"); err != nil {
					return err
				}
			case last != nil && v.flags.output == "table":
				text = slices.Concat([]byte("\n"), text)
			case last != nil && v.flags.output == "yaml":
				text = slices.Concat([]byte("---\n"), text)
			}
			last = now
			_, err := v.screen.Writer(cmd.OutOrStdout()).Write(text)
			_, noteErr := cmd.ErrOrStderr().Write(beside)
			if err := errors.Join(err, noteErr); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(inspectInterval):
		}
	}
}

// memberStatus lists the bindings with the status of their copies, and the
// templates with the aggregated status.
func (v *statusView) memberStatus(rows []report.Row, stderr io.Writer) output.List {
	s := report.NewStatus(v.Fleet, rows)
	notes(stderr, s.Notes)

	var found output.List
	for _, object := range s.Objects {
		found.Items = append(found.Items, output.Item{Object: object})
	}
	return found
}
