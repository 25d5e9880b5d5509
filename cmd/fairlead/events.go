// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/source"
)

type eventsFlags struct {
	objectFlags
	record     recordFlags
	of         string
	git, watch bool
}

func newEvents() *cobra.Command {
	var f eventsFlags
	cmd := &cobra.Command{
		Use:   "events [--for KIND/NAME]",
		Short: "Show what each commit decided, and what a run did about it",
		Long: `Folds the history and prints, oldest first, what every commit did: whether it was
accepted, was refused or awaits confirmation, and what it created, updated, held,
released, deferred, deleted or left running, with the place in git that decided it.
That needs git alone.

If 'fairlead run' with the same repository, ref and path keeps its state on this
machine, or in --state, its record is shown as well: what it applied, adopted,
deleted and left running, and what failed. With -w new events are printed as they
happen.`,
		Example: `  fairlead events --since HEAD~5
  fairlead events --for deploy/shop/web -c us-1
  fairlead events --state /var/lib/fairlead -w`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.events(cmd) },
	}
	f.bindObject(cmd)
	flags := cmd.Flags()
	flags.Lookup("since").Usage = "only events after this commit; the fold still begins at its usual commit"
	flags.StringVar(&f.of, "for", "", "only events of this object, as KIND/NAME")
	f.record.bind(flags)
	flags.BoolVar(&f.git, "git", false, "only what git decided, without the record of a run")
	flags.BoolVarP(&f.watch, "watch", "w", false, "keep printing the record of a run as it is written")
	return cmd
}

func (f *eventsFlags) events(cmd *cobra.Command) error {
	if err := checkOutput(f.output, reportForms...); err != nil {
		return err
	}
	if f.git && (f.watch || f.record.state != "") {
		return usagef("--git cannot be used with --watch or --state")
	}
	asked, err := optionalReference(f.of, f.namespace)
	if err != nil {
		return err
	}
	dir := ""
	if !f.git {
		if dir, err = f.record.dir(&f.fleetFlags, f.watch); err != nil {
			return err
		}
	}

	var after string
	after, f.since = f.since, "" // the fold is the whole one
	l, err := f.open(cmd.Context())
	if err != nil {
		return err
	}

	n := report.NewEvents(l, asked, f.clusters, report.NewEventsPrinter(cmd.OutOrStdout(), f.output, f.screen(cmd)))
	if after != "" {
		if n.After, err = l.Repo.Resolve(after); err != nil {
			return err
		}
	}
	head, err := l.Resolve(f.ref)
	if err != nil {
		return err
	}
	if dir == "" && f.watch {
		return errors.New("-w: there is no state directory to watch; specify one with --state")
	}

	record := eventlog.NewReader(dir)
	defer record.Close()
	if dir != "" {
		if n.Record, err = record.Next(); err != nil {
			return err
		}
	}
	if err := n.Fold(head); err != nil {
		return err
	}
	if asked != nil && len(n.Objects) == 0 {
		return fmt.Errorf("%s is not a template of the fleet, and never was; 'fairlead get templates' lists them", asked)
	}
	if _, err := n.ClustersCalled(f.clusters); err != nil || !f.watch {
		return err
	}

	return follow(cmd.Context(), l.Repo, n, record)
}

// watchEvery is how often the record is read.
const watchEvery = 500 * time.Millisecond

// follow prints new events of the record, and the commits that they reach.
func follow(ctx context.Context, repo *source.Repo, n *report.Events, record *eventlog.Reader) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
		acts, err := record.Next()
		if err != nil {
			return err
		}
		for _, e := range acts {
			if err := reach(ctx, repo, n, e.Commit); err != nil {
				return err
			}
			if err := n.Acts([]eventlog.Event{e}); err != nil {
				return err
			}
		}
	}
}

// reach folds up to a commit that the record has reached.
func reach(ctx context.Context, repo *source.Repo, n *report.Events, commit string) error {
	if commit == "" || n.Folded(commit) {
		return nil
	}
	if err := repo.Fetch(ctx); err != nil {
		return err
	}
	if err := n.Fold(commit); err != nil {
		return fmt.Errorf("the run is at %s: %w", source.Short(commit), err)
	}
	return nil
}
