// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
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
	objectFlags
	of, state  string
	git, watch bool
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
	f.bindObject(cmd)
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
	n.out = newEventsPrinter(cmd.OutOrStdout(), f.output)
	if after != "" {
		if n.after, err = l.repo.Resolve(after); err != nil {
			return err
		}
	}
	head, err := l.resolve(f.ref)
	if err != nil {
		return err
	}
	if dir == "" && f.watch {
		return errors.New("-w: there is no state directory to watch; name one with --state")
	}
	record := reconcile.OpenEvents(dir)
	defer record.Close()
	if dir != "" {
		if n.acts, err = record.Next(); err != nil {
			return err
		}
	}
	if err := n.fold(head); err != nil {
		return err
	}
	if asked != nil && len(n.objects) == 0 {
		return fmt.Errorf("%s is no template of the fleet, and was none; 'fairlead get templates' lists them", asked)
	}
	if err := n.checkClusters(f.clusters); err != nil || !f.watch {
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
		return "", nil //nolint:nilerr // no home, so no run can have kept anything there
	}
	if _, err := os.Stat(filepath.Join(dir, "checkpoint.db")); errors.Is(err, fs.ErrNotExist) && !f.watch {
		return "", nil
	}
	return dir, nil
}

// narration tells what happened, commit by commit, as far as it was asked for.
type narration struct {
	*trail
	l        *look
	filter   *resource
	clusters []string
	after    string            // only what comes after this commit
	acts     []reconcile.Event // of a run, that were not told yet
	state    propagate.State
	known    map[string]bool // the commits that were folded, or will be now
	out      eventsPrinter
}

// account is of one commit, and of what a run did while the fleet was at it.
type account struct {
	commit   *source.Commit
	verdict  string // accepted, refused, held
	problems []propagate.Problem
	happened []propagate.Happening
	released map[propagate.ID]map[string][]string
	joined   []string // clusters
	acts     []reconcile.Event
}

func newNarration(l *look, asked *resource, clusters []string) *narration {
	n := &narration{l: l, filter: asked, clusters: clusters, known: map[string]bool{}, trail: newTrail()}
	if asked != nil {
		n.asked = *asked
	}
	return n
}

// fold goes on to a commit, and tells of each on the way.
func (n *narration) fold(head string) error {
	commits, err := n.l.commits(n.state.Commit, head)
	if err != nil {
		return err
	}
	for _, c := range commits {
		n.known[c.Hash] = true
	}
	silent := n.after != "" && n.state.Commit == ""
	if silent && !n.known[n.after] {
		return fmt.Errorf("--since: commit %s is none of those that were folded to %s", short(n.after), short(head))
	}
	early, acts := n.did()
	if !silent {
		if err := n.tellActs(early); err != nil {
			return err
		}
	}
	_, err = n.l.history.Fold(n.state, commits, func(c *source.Commit, after propagate.State) error {
		n.step(c, &n.state, &after)
		a := n.account(c, &n.state, &after)
		a.acts = slices.DeleteFunc(acts[c.Hash], func(e reconcile.Event) bool { return !n.wants(e) })
		n.state = after
		if silent {
			silent = c.Hash != n.after
			return nil
		}
		return n.tell(a)
	})
	return err
}

// account is of one commit; its verdict is empty where the commit leaves the
// fleet alone.
func (n *narration) account(c *source.Commit, before, after *propagate.State) *account {
	a := &account{commit: c, verdict: "accepted", released: map[propagate.ID]map[string][]string{}}
	if r := after.Refusal; r != nil && r.Commit == c.Hash {
		a.verdict, a.problems = "refused", r.Problems
		if r.Guard != nil {
			a.verdict = "held"
		}
	}
	for _, h := range n.happenings {
		o := n.objects[h.Object]
		if len(o.moments) > 0 {
			a.released[h.Object] = o.moments[len(o.moments)-1].released
			o.moments = nil // nobody asks for it again
		}
		if h.Cluster == "" || n.shows(h.Cluster) {
			a.happened = append(a.happened, h)
		}
	}
	if n.filter == nil && before.Snapshot != after.Snapshot {
		a.joined = n.joined(before, after)
	}
	if before.Snapshot == after.Snapshot && before.Refusal == nil && a.verdict == "accepted" && len(a.happened) == 0 {
		a.verdict = ""
	}
	return a
}

// joined are the clusters that a commit adds to the fleet.
func (n *narration) joined(before, after *propagate.State) (names []string) {
	var was ordered.Map[*propagate.Cluster]
	if before.Snapshot != nil {
		was = before.Snapshot.Clusters
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
func (n *narration) did() (early []reconcile.Event, by map[string][]reconcile.Event) {
	by = map[string][]reconcile.Event{}
	at := ""
	for _, e := range n.acts {
		if n.known[e.Commit] {
			at = e.Commit
		}
		if at == "" {
			early = append(early, e)
			continue
		}
		by[at] = append(by[at], e)
	}
	n.acts = nil
	return early, by
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

// tell prints an account, unless there is nothing in it that was asked for. A
// commit that was refused or held is told to whoever asks about an object that
// there is: it kept everything back.
func (n *narration) tell(a *account) error {
	chosen := n.filter != nil || len(n.clusters) > 0
	empty := len(a.happened)+len(a.acts)+len(a.joined) == 0
	switch {
	case !empty:
	case a.verdict == "", a.verdict == "accepted" && chosen, n.filter != nil && len(n.objects) == 0:
		return nil
	}
	a.verdict = cmp.Or(a.verdict, "accepted")
	return n.out.account(a, n.trail)
}

func (n *narration) tellActs(acts []reconcile.Event) error {
	for _, e := range acts {
		if !n.wants(e) {
			continue
		}
		if err := n.out.act(e); err != nil {
			return err
		}
	}
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
			if err := n.tellActs([]reconcile.Event{e}); err != nil {
				return err
			}
		}
	}
}

// reach folds to a commit that the record has come to.
func (n *narration) reach(ctx context.Context, commit string) error {
	if commit == "" || n.known[commit] {
		return nil
	}
	if err := n.l.repo.Fetch(ctx); err != nil {
		return err
	}
	if err := n.fold(commit); err != nil {
		return fmt.Errorf("the run is at %s: %w", short(commit), err)
	}
	return nil
}
