// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/ordered"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
)

type eventsFlags struct {
	lookFlags
	output, namespace, of, state string
	clusters                     []string
	git, watch                   bool
}

func newEvents() *cobra.Command {
	var f eventsFlags
	cmd := &cobra.Command{
		Use:   "events [--for KIND/NAME]",
		Short: "Show what each commit decided, and what run did about it",
		Long: `Folds the history and prints, the oldest first, what every commit did: whether it
was accepted, refused or held, and what it created, updated, held, released,
deferred, deleted or left running, with the place in git that decided it. That
needs git alone.

Where 'fairlead run' with the same repository, ref and path keeps its state on
this machine, or in --state, its own record comes with it: what it applied,
adopted, deleted and released, and what failed. With -w both go on as they
happen.`,
		Example: `  fairlead events --since HEAD~5
  fairlead events --for deploy/shop/web -c us-1
  fairlead events --state /var/lib/fairlead -w`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.events(cmd) },
	}
	f.bind(cmd.Flags())
	bindObject(cmd, &f.output, &f.namespace, &f.clusters, "text, json")
	flags := cmd.Flags()
	flags.Lookup("since").Usage = "only what happened after this commit; the fold begins where it always does"
	flags.StringVar(&f.of, "for", "", "only what is about this object, as KIND/NAME")
	flags.StringVar(&f.state, "state", "", "state directory of a run whose record is wanted (default: that of a run on this machine, if there is one)")
	flags.BoolVar(&f.git, "git", false, "only what git says, without the record of a run")
	flags.BoolVarP(&f.watch, "watch", "w", false, "go on with the record of a run as it is written")
	return cmd
}

func (f *eventsFlags) events(cmd *cobra.Command) error {
	if err := checkOutput(f.output, "text", "json"); err != nil {
		return err
	}
	if f.git && (f.watch || f.state != "") {
		return usagef("--git leaves the record of a run out, and --watch and --state are about it")
	}
	asked, err := optionalResource(f.of, f.namespace)
	if err != nil {
		return err
	}
	dir, err := f.recordDir()
	if err != nil {
		return err
	}
	var after string
	after, f.since = f.since, "" // the fold is the whole one
	l, err := f.open(cmd.Context())
	if err != nil {
		return err
	}
	n := newNarration(l, asked, f.clusters)
	if after != "" {
		if n.after, err = l.repo.Resolve(after); err != nil {
			return err
		}
	}
	head, err := l.resolve(f.ref)
	if err != nil {
		return err
	}
	if err := n.fold(head); err != nil {
		return err
	}
	if asked != nil && len(n.objects) == 0 {
		return fmt.Errorf("%s is no template of the fleet, and was none; 'fairlead get templates' lists them", asked)
	}
	n.out = newEventsPrinter(cmd.OutOrStdout(), f.output)
	if dir == "" {
		return n.tell()
	}
	record := reconcile.OpenEvents(dir)
	defer record.Close()
	acts, err := record.Next()
	if err != nil {
		return err
	}
	n.did(acts)
	if err := n.tell(); err != nil || !f.watch {
		return err
	}
	return n.follow(cmd.Context(), record)
}

// recordDir is where a run keeps its record, "" when there is none to show.
func (f *eventsFlags) recordDir() (string, error) {
	if f.git {
		return "", nil
	}
	if f.state != "" {
		if _, err := os.Stat(f.state); err != nil {
			return "", fmt.Errorf("--state: %w", err)
		}
		return f.state, nil
	}
	repo, err := absolute(f.repo)
	if err != nil {
		return "", err
	}
	dir, err := reconcile.DefaultStateDir(reconcile.Origin{Repo: repo, Ref: f.ref, Path: f.path})
	if err != nil {
		return "", nil // no home, so no run can have kept anything there
	}
	if _, err := os.Stat(filepath.Join(dir, "checkpoint.db")); errors.Is(err, fs.ErrNotExist) && !f.watch {
		return "", nil
	}
	return dir, nil
}

// narration is what happened, commit by commit, as far as it was asked for.
type narration struct {
	*trail
	l        *look
	filter   *resource
	clusters []string
	after    string // only what comes after this commit
	state    propagate.State
	accounts []*account        // those that were not told yet
	early    []reconcile.Event // before the first commit that is known
	known    map[string]*account
	silent   bool // still before the commit that it begins after
	out      eventsPrinter
}

// account is of one commit, and what a run did while the fleet was at it.
type account struct {
	commit   *source.Commit
	verdict  string // accepted, refused, held
	problems []propagate.Problem
	happened []propagate.Happening
	released map[propagate.ID]map[string][]string
	joined   []string // clusters
	acts     []reconcile.Event
	plain    bool // nothing under the fleet's path changed
	skipped  bool // it was not asked for
}

func newNarration(l *look, asked *resource, clusters []string) *narration {
	n := &narration{l: l, filter: asked, clusters: clusters, known: map[string]*account{}, trail: newTrail()}
	if asked != nil {
		n.asked = *asked
	}
	return n
}

// fold goes on to a commit.
func (n *narration) fold(head string) error {
	n.silent = n.after != "" && n.state.Commit == ""
	commits, err := n.l.commits(n.state.Commit, head)
	if err != nil {
		return err
	}
	_, err = n.l.history.Fold(n.state, commits, func(c *source.Commit, after propagate.State) error {
		n.add(c, &n.state, &after)
		n.state = after
		return nil
	})
	return err
}

func (n *narration) add(c *source.Commit, before, after *propagate.State) {
	n.step(c, before, after)
	a := &account{commit: c, verdict: "accepted", plain: before.Snapshot == after.Snapshot, skipped: n.silent, released: map[propagate.ID]map[string][]string{}}
	if r := after.Refusal; r != nil && r.Commit == c.Hash {
		a.verdict, a.problems, a.plain = "refused", r.Problems, false
		if r.Guard != nil {
			a.verdict = "held"
		}
	}
	for _, h := range n.happenings {
		o := n.objects[h.Object]
		a.released[h.Object] = o.moments[len(o.moments)-1].released
		if h.Cluster == "" || n.shows(h.Cluster) {
			a.happened = append(a.happened, h)
		}
	}
	if n.filter == nil {
		a.joined = n.joined(before, after)
	}
	n.accounts, n.known[c.Hash] = append(n.accounts, a), a
	if c.Hash == n.after {
		n.silent = false
	}
}

// joined are the clusters that a commit adds to the fleet.
func (n *narration) joined(before, after *propagate.State) (names []string) {
	var was ordered.Map[*propagate.Cluster]
	if before.Snapshot != nil {
		was = before.Snapshot.Clusters
	}
	if after.Snapshot == nil {
		return nil
	}
	for d := range ordered.Diff(was, after.Snapshot.Clusters) {
		if !d.Had && n.shows(d.Key) {
			names = append(names, d.Key)
		}
	}
	return names
}

func (n *narration) shows(cluster string) bool {
	return len(n.clusters) == 0 || slices.Contains(n.clusters, cluster)
}

// did sorts what a run did under the commits that the fleet was at. What it did
// at a commit that the branch does not have any more stays where it was done.
func (n *narration) did(acts []reconcile.Event) {
	var at *account
	for _, e := range acts {
		if a := n.known[e.Commit]; a != nil {
			at = a
		}
		switch {
		case !n.wants(e):
		case at != nil:
			at.acts = append(at.acts, e)
		case n.after == "":
			n.early = append(n.early, e)
		}
	}
}

// wants is whether an act was asked for.
func (n *narration) wants(e reconcile.Event) bool {
	switch {
	case e.Cluster != "" && !n.shows(e.Cluster), e.Cluster == "" && len(n.clusters) > 0:
		return false
	case n.filter == nil:
		return true
	}
	return e.Object != nil && n.filter.is(e.Object.ID(), n.kinds)
}

// tell prints the accounts that were not told yet.
func (n *narration) tell() error {
	for _, e := range n.early {
		if err := n.out.act(e); err != nil {
			return err
		}
	}
	n.early = nil
	for _, a := range n.accounts {
		if a.skipped {
			continue
		}
		quiet := len(a.happened)+len(a.acts)+len(a.joined) == 0
		if quiet && a.verdict == "accepted" && (a.plain || n.filter != nil || len(n.clusters) > 0) {
			continue
		}
		if err := n.out.account(a, n.trail); err != nil {
			return err
		}
	}
	n.accounts = nil
	return nil
}

// watchEvery is how often the record is looked at.
const watchEvery = 500 * time.Millisecond

// follow goes on with the record, and with the commits that it comes to.
func (n *narration) follow(ctx context.Context, record *reconcile.Events) error {
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
			if err := n.reach(ctx, e.Commit); err != nil {
				return err
			}
			if n.wants(e) {
				if err := n.out.act(e); err != nil {
					return err
				}
			}
		}
	}
}

// reach folds to a commit that the record has come to.
func (n *narration) reach(ctx context.Context, commit string) error {
	if commit == "" || n.known[commit] != nil {
		return nil
	}
	if err := n.l.repo.Fetch(ctx); err != nil {
		return err
	}
	if err := n.fold(commit); err != nil {
		return fmt.Errorf("the run is at %s: %w", short(commit), err)
	}
	return n.tell()
}
