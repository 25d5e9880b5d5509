// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/reconcile"
)

type statusFlags struct {
	lookFlags
	members       memberFlags
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
		Short: "Show how far every cluster is with every template",
		Long: `Compares what git decides for every cluster with what the clusters have: the
marks on their own objects tell which commit's content they run, and their
status how it does. No other process is asked.

` + legend + `

Behind a symbol stands how many replicas the cluster is told to run, and while
they roll out how many of them are available. With -o json and -o yaml it is
each template's ResourceBinding with the status collected from its clusters, and
the status that a template's copies add up to.

A cluster that does not answer is '?', and a line on stderr.`,
		Example: `  fairlead status --kubeconfig members.yaml
  fairlead status --only behind,held,failed
  fairlead status -n shop --wave 2 -w`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.status(cmd) },
	}
	f.bind(cmd.Flags())
	f.members.bind(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "table", "table, json, yaml")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "only this namespace (default: all)")
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "all namespaces")
	flags.StringVarP(&f.selector, "selector", "l", "", "only templates that have these labels")
	flags.StringSliceVarP(&f.clusters, "cluster", "c", nil, "only these clusters: names, globs, or wave=N")
	flags.StringSliceVar(&f.only, "only", nil, "only templates that are somewhere: "+strings.Join(onlies, ", "))
	flags.IntVar(&f.wave, "wave", 0, "only the clusters of this wave of the templates' policies")
	flags.BoolVarP(&f.watch, "watch", "w", false, "print it again whenever it has changed")
	return cmd
}

const legend = `= at head   -N commits behind   H held   L deferred   > rolling out
X failed, missing or foreign   ? not answering   . not placed   number: replicas`

// onlies are what --only chooses by.
var onlies = []string{"behind", "held", "deferred", "rolling", "failed", "unknown"}

func (f *statusFlags) status(cmd *cobra.Command) error {
	if err := checkOutput(f.output, "table", "json", "yaml"); err != nil {
		return err
	}
	for _, word := range f.only {
		if !slices.Contains(onlies, word) {
			return usagef("--only %q is none of %s", word, strings.Join(onlies, ", "))
		}
	}
	if f.wave < 0 {
		return usagef("--wave: waves are numbered from 1")
	}
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return usagef("-l: %w", err)
	}
	o, err := f.outlook(cmd.Context(), &f.members, f.asks())
	if err != nil {
		return err
	}
	if f.wave > 0 && len(inWave(&o.state, f.wave)) == 0 {
		return fmt.Errorf("--wave: no policy has a wave %d", f.wave)
	}
	v := &view{selector: selector, namespace: f.namespace}
	if f.allNamespaces {
		v.namespace = ""
	}
	show := &statusView{flags: f, outlook: o, asked: v}
	if f.watch {
		return show.again(cmd)
	}
	text, notes, err := show.look(cmd.Context())
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	_, noteErr := cmd.ErrOrStderr().Write(notes)
	return errors.Join(err, noteErr)
}

// asks are the clusters to ask. Whether something is applied everywhere is not
// known by asking some.
func (f *statusFlags) asks() []string {
	if f.output == "table" {
		return f.clusters
	}
	return nil
}

// statusView is a fleet with what the user asked to see of it.
type statusView struct {
	*outlook
	flags  *statusFlags
	asked  *view
	chosen map[string]bool // clusters
}

// look asks the clusters once. The notes are for stderr.
func (v *statusView) look(ctx context.Context) (text, notes []byte, err error) {
	v.asked.state = &v.state
	chosen, err := chosen(&v.state, v.flags.clusters)
	if err != nil {
		return nil, nil, err
	}
	v.chosen = map[string]bool{}
	for _, c := range chosen {
		v.chosen[c.Name] = true
	}
	if err := v.see(ctx); err != nil {
		return nil, nil, err
	}
	if err := v.lag(); err != nil {
		return nil, nil, err
	}
	var out, stderr bytes.Buffer
	warn(&stderr, &v.state)
	v.silence(&stderr)
	v.unclear(&stderr)
	switch rows := v.rows(); {
	case v.flags.output != "table":
		l := v.collected(rows, &stderr)
		err = l.print(&out, v.flags.output, false)
	case len(rows) == 0:
		fmt.Fprintf(&stderr, "No templates found at %s.\n", v.described())
	default:
		err = v.matrix(rows, &out)
	}
	return out.Bytes(), stderr.Bytes(), err
}

// described is what the user chose templates by.
func (v *statusView) described() string {
	if len(v.flags.only) == 0 {
		return short(v.head)
	}
	return short(v.head) + " that are " + strings.Join(v.flags.only, " or ")
}

// again looks until it is told to end, and prints what has changed. A terminal
// is written over; anything else gets the new text behind the old one.
func (v *statusView) again(cmd *cobra.Command) error {
	ctx, terminal := cmd.Context(), isTerminal(cmd.OutOrStdout())
	var last []byte
	for {
		v.fetch(ctx, cmd.ErrOrStderr())
		if err := v.fold(v.flags.ref, v.flags.asks()); err != nil {
			return err
		}
		text, notes, err := v.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was told to end
		case err != nil:
			return err
		}
		if now := slices.Concat(text, notes); last == nil || !bytes.Equal(now, last) {
			switch {
			case terminal:
				text = slices.Concat([]byte("\x1b[H\x1b[2J"), text)
			case last != nil && v.flags.output == "table":
				text = slices.Concat([]byte("\n"), text)
			case last != nil && v.flags.output == "yaml":
				text = slices.Concat([]byte("---\n"), text)
			}
			last = now
			_, err := cmd.OutOrStdout().Write(text)
			_, noteErr := cmd.ErrOrStderr().Write(notes)
			if err := errors.Join(err, noteErr); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookAgain):
		}
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// unclear tells why the health or the status of what was seen is not known.
func (o *outlook) unclear(stderr io.Writer) {
	for _, c := range o.all() {
		if c.Sight != nil && c.Sight.Unclear != nil {
			fmt.Fprintf(stderr, "fairlead: %s on %s: %s\n", c.Object, c.Cluster, oneLine(c.Sight.Unclear.Error()))
		}
	}
}

// collected are the bindings with the status of their copies, and what the
// copies add up to.
func (v *statusView) collected(rows []statusRow, stderr io.Writer) list {
	var found list
	for _, r := range rows {
		if r.binding == nil {
			continue // a removed template has none
		}
		copies := reconcile.Copies(v.cells[r.id])
		found.items = append(found.items, item{object: v.state.Collected(r.binding, copies)})
		sum, err := v.state.Summed(r.binding, copies)
		switch {
		case err != nil:
			fmt.Fprintf(stderr, "fairlead: status of %s: %v\n", r.id, err)
		case sum != nil:
			found.items = append(found.items, item{object: sum})
		}
	}
	return found
}
