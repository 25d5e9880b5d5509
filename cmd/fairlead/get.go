// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead/fairlead/look/listing"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/source"
)

type getFlags struct {
	lookFlags
	members       memberFlags
	output        string
	namespace     string
	allNamespaces bool
	selector      string
	clusters      []string
	seen          bool
	watch         bool
	sortBy        string
	noHeaders     bool
	showLabels    bool
}

func newGet() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get NOUN [NAME]",
		Short: "Show the fleet as git has it, or any resource as the clusters have it",
		Long: `Folds the history up to --ref and prints the result, from git alone.

  clusters    the members of the fleet; with --live their present condition
  policies    which templates are sent to which clusters
  templates   what can be sent, and the policy that claims it
  holds       what is held on which clusters, by whom, why and until when
  bindings    where each template is scheduled, and why
  works       what each cluster should have, held or not
  objects     what was last released to each cluster

Any other word is a Kubernetes resource, by any name that kubectl accepts, and is
shown live: each cluster of the fleet is queried through the context of
--kubeconfig that has its name. The columns are those of kubectl, with CLUSTER as
the second and ADOPTION, which tells whether fairlead manages the object, as the
last. A cluster that does not answer is reported on stderr. 'all' and every other
category of kubectl works too, and several words stand with commas between them.

jsonpath, go-template and custom-columns also take a file, as in
-o custom-columns-file=FILE.`,
		Example: `  fairlead get bindings
  fairlead get objects -c eu-1 -o yaml
  fairlead get works -l app=web --ref v1.4.0
  fairlead get deployments -n shop --kubeconfig members.yaml
  fairlead get pods -A -o wide --sort-by .status.startTime
  fairlead get deploy,svc -n shop -c 'eu-*'
  fairlead get bindings -w
  fairlead get objects -o custom-columns=NAME:.metadata.name,IMAGE:.spec.template.spec.containers[*].image`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.get(cmd, args) },
	}
	f.bind(cmd.Flags())
	f.members.bind(cmd.Flags())
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", strings.Join(output.Described(outputs), ", "))
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "only this namespace (default: all; for live resources, the context's)")
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "all namespaces")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "label selector, as for kubectl")
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "c", nil, "only these clusters: names, globs, or wave=N")
	cmd.Flags().StringVar(&f.sortBy, "sort-by", "", "sort by the field at this JSONPath, such as .metadata.creationTimestamp")
	cmd.Flags().BoolVar(&f.noHeaders, "no-headers", false, "leave out the headers of tables")
	cmd.Flags().BoolVar(&f.showLabels, "show-labels", false, "show the labels of each object as the last column")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "go on with what changes, in a column EVENT what happened to it")
	cmd.Flags().BoolVar(&f.seen, "live", false, "with clusters: query each for its readiness and the commit that it is at")
	return cmd
}

func (f *getFlags) get(cmd *cobra.Command, args []string) error {
	g, err := f.parse(args)
	if err != nil {
		return err
	}
	if err := g.open(cmd.Context()); err != nil {
		return err
	}
	warn(cmd.ErrOrStderr(), &g.State)
	g.print.Screen = screenOf(cmd)
	if f.watch {
		return g.follow(cmd)
	}

	lists, err := g.look(cmd)
	if err != nil || len(lists) == 0 && g.print.Form.Table() {
		return err
	}
	return output.Print(cmd.OutOrStdout(), lists, g.print)
}

// getter is a parsed command line of get, and the fleet that it is about.
type getter struct {
	*getFlags
	*status.Fleet
	nouns, resources []string // what is asked for: of git, and of the clusters
	name             string
	labels           labels.Selector
	ask              *status.Members // nil from git alone
	print            output.Options

	silent    map[string]error // the clusters that did not answer in full
	following bool             // something has been printed already
}

// parse reads a command line.
func (f *getFlags) parse(args []string) (*getter, error) {
	if kind, name, both := strings.Cut(args[0], "/"); both && len(args) == 1 {
		args = []string{kind, name}
	}
	form, err := parseForm(f.output, outputs...)
	if err != nil {
		return nil, err
	}

	g := &getter{getFlags: f, name: strings.Join(args[1:], "")}
	g.print = output.Options{Form: form, Single: g.name != "", SortBy: f.sortBy, NoHeaders: f.noHeaders, ShowLabels: f.showLabels}
	if err := g.print.Check(); err != nil {
		return nil, &usageError{err}
	}
	if g.labels, err = labels.Parse(f.selector); err != nil {
		return nil, usagef("-l: %w", err)
	}
	for word := range strings.SplitSeq(args[0], ",") {
		switch meant := listing.Meant(word); {
		case listing.IsNoun(word):
			g.nouns = append(g.nouns, word)
		case word == "":
			return nil, usagef("%q names nothing between two commas", args[0])
		case meant != "":
			return nil, usagef("unknown resource %q; did you mean %s?", word, meant)
		default:
			g.resources = append(g.resources, word)
		}
	}

	switch {
	case f.seen && args[0] != "cluster" && args[0] != "clusters":
		return nil, usagef("--live is for clusters; a Kubernetes resource is always shown live")
	case g.resources != nil && g.name != "" && f.selector != "":
		return nil, usagef("a name and -l cannot be used together")
	}
	return g, nil
}

// open folds the fleet. Only what is shown live needs a kubeconfig.
func (g *getter) open(ctx context.Context) error {
	states, err := g.lookFlags.open(ctx)
	if err != nil {
		return err
	}
	if g.resources != nil || g.seen {
		if g.ask, err = g.members.open(); err != nil {
			return err
		}
	}

	g.Fleet = status.Open(states, g.ask, time.Now)
	return g.Fold(g.ref, choosing(g.clusters))
}

// look lists what is asked for, as it is now. That there is nothing is said on stderr,
// or is an error if the user has named it.
func (g *getter) look(cmd *cobra.Command) ([]output.List, error) {
	v := &listing.View{State: &g.State, Selector: g.labels, Name: g.name}
	if !g.allNamespaces {
		v.Namespace = g.namespace
	}
	for _, c := range g.Clusters {
		if len(g.clusters) > 0 {
			v.Clusters = append(v.Clusters, c.Name)
		}
	}
	if g.seen {
		if err := inspected(cmd, g.Fleet); err != nil {
			return nil, err
		}
		v.Live = g.Fleet
	}

	var lists []output.List
	for _, noun := range g.nouns {
		if l := v.List(noun); len(l.Items) > 0 {
			lists = append(lists, l)
		}
	}
	nothing := fmt.Sprintf("no %s found at %s", strings.Join(g.nouns, " or "), source.Short(g.Head))
	if g.name != "" {
		nothing = fmt.Sprintf("%s %q not found at %s", strings.Join(g.nouns, " or "), g.name, source.Short(g.Head))
	}
	if g.resources != nil {
		q, err := g.live(cmd)
		if err != nil {
			return nil, err
		}
		if lists = append(lists, q.Lists()...); len(lists) == 0 {
			nothing = q.Nothing()
		}
	}

	switch {
	case len(lists) > 0, g.following:
	case g.name != "":
		return nil, errors.New(nothing)
	case g.print.Form.Table():
		printable.Fprintf(cmd.ErrOrStderr(), "N%s.\n", strings.TrimPrefix(nothing, "n"))
	}
	return lists, nil
}

// live asks the clusters for resources of Kubernetes.
func (g *getter) live(cmd *cobra.Command) (*listing.Question, error) {
	if len(g.Clusters) == 0 {
		return nil, errors.New("the fleet has no clusters")
	}

	q := &listing.Question{
		Members: g.ask, Clusters: g.Clusters, Marker: g.Marker, Words: g.resources, Name: g.name,
		Namespace: g.namespace, AllNamespaces: g.allNamespaces, Selector: g.selector,
		Whole: g.print.Form.Whole(), Both: g.sortBy != "",
	}
	before := g.silent
	failed := q.Ask(cmd.Context())
	g.silent = failed
	if err := cmd.Context().Err(); err != nil {
		return nil, err
	}
	// An error that is the same everywhere is reported once.
	ours := strings.Join(listing.Nouns[:len(listing.Nouns)-1], ", ") + " and " + listing.Nouns[len(listing.Nouns)-1]
	if err := status.NoneAsked(len(g.Clusters), failed); err != nil {
		return nil, fmt.Errorf("%w; git alone has %s", err, ours)
	}
	if len(q.Answered()) == 0 && listing.OnlyNotServed(failed) {
		return nil, fmt.Errorf("no cluster serves a resource %q, and git has %s", strings.Join(g.resources, ","), ours)
	}

	if !g.following || !maps.EqualFunc(before, failed, func(a, b error) bool { return a.Error() == b.Error() }) {
		silent(cmd.ErrOrStderr(), failed, len(g.Clusters))
	}
	if len(q.Answered()) == 0 && !g.following {
		return nil, &exitError{exitFailed} // every failure has been reported
	}
	return q, nil
}

// follow lists what is asked for, and then what has changed of it, until the command is
// interrupted. What git alone tells changes when the ref moves.
func (g *getter) follow(cmd *cobra.Command) error {
	ctx := cmd.Context()
	var changes listing.Changes
	g.print.Layout, g.print.Single = output.Layout{}, true
	for last := ""; ; {
		if g.Head != last || g.ask != nil {
			last = g.Head
			lists, err := g.look(cmd)
			if err == nil {
				lists, err = changes.Of(lists, g.silent, g.print.Form.Table())
			}
			g.following = true
			if err == nil && len(lists) > 0 {
				err = output.Print(cmd.OutOrStdout(), lists, g.print)
			}
			if ctx.Err() != nil {
				return nil //nolint:nilerr // an interrupt ends the watch
			}
			if err != nil {
				return err
			}
		}

		select {
		case <-ctx.Done():
			return nil
		case <-time.After(inspectInterval):
		}
		if err := g.Fetch(ctx); err != nil {
			notes(cmd.ErrOrStderr(), []string{err.Error()})
		}
		if err := g.Fold(g.ref, choosing(g.clusters)); err != nil {
			return err
		}
	}
}

// inspected queries the clusters of a fleet for their condition.
func inspected(cmd *cobra.Command, live *status.Fleet) error {
	live.AskReady()
	if err := live.Inspect(cmd.Context()); err != nil {
		return err
	}
	if err := live.CountBehind(); err != nil {
		return err
	}

	notes(cmd.ErrOrStderr(), live.Notes())
	return nil
}

// outputs are the forms of a list.
var outputs = []string{
	output.FormTable, output.FormWide, output.FormJSON, output.FormYAML, output.FormName,
	output.FormJSONPath, output.FormGoTemplate, output.FormCustomColumns,
}

// parseForm reads a value of -o that is one of the known forms.
func parseForm(o string, known ...string) (output.Form, error) {
	form, err := output.ParseForm(o, os.ReadFile, known...)
	if err != nil {
		return form, &usageError{err}
	}
	return form, nil
}

func checkOutput(o string, known ...string) error {
	_, err := parseForm(o, known...)
	return err
}
