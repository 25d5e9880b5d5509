// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

type suspendFlags struct {
	editFlags
	namespace             string
	clusters              []string
	all                   bool
	reason, until, ticket string
}

func newSuspend() *cobra.Command {
	var f suspendFlags
	cmd := &cobra.Command{
		Use:   "suspend POLICY -c CLUSTER,... --reason TEXT",
		Short: "Hold what a policy sends to clusters, and note who, why and until when",
		Long: `Puts clusters on the policy's list of those that are held, and a note of who,
why and until when beside it. A held cluster gets no create and no update until
it is resumed; deletions reach it.

Prints the plan of that, and writes the file in the work tree; --commit commits
it, --push commits it on a branch of the remote. What the document says besides
stays as it is, comments and layout too.`,
		Example: `  fairlead suspend shop-web -c us-1,us-2 --reason "wait for eu-1" --until 2026-11-28
  fairlead suspend shop-web -c 'us-*' --reason "db migration" --ticket CHG-1201 --push
  fairlead suspend shop-web --all --reason "incident" --commit`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.suspend(cmd, args[0]) },
	}
	f.bind(cmd)
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, in a line (required)")
	cmd.Flags().StringVar(&f.until, "until", "", "the last day of the hold, 2006-01-02; a hold past its day is reported, not lifted")
	cmd.Flags().StringVar(&f.ticket, "ticket", "", "where more about it is written")
	return cmd
}

func newResume() *cobra.Command {
	var f suspendFlags
	cmd := &cobra.Command{
		Use:   "resume POLICY -c CLUSTER,... | --all",
		Short: "Lift a hold, after showing what that releases",
		Long: `Takes clusters off the policy's list of those that are held, with their notes.
With the last one the suspension goes. Of a policy that holds every cluster, the
others that it can reach are named instead.

Prints the plan of what is released, and writes the file in the work tree;
--commit commits it, --push commits it on a branch of the remote.`,
		Example: `  fairlead resume shop-web -c eu-2
  fairlead resume shop-web --all --commit`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.resume(cmd, args[0]) },
	}
	f.bind(cmd)
	return cmd
}

func (f *suspendFlags) bind(cmd *cobra.Command) {
	f.editFlags.bind(cmd)
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "the policy's namespace")
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "c", nil, "clusters: names, globs, or wave=N of the policy's waves")
	cmd.Flags().BoolVar(&f.all, "all", false, "every cluster")
}

func (f *suspendFlags) check() error {
	switch {
	case f.all && len(f.clusters) > 0:
		return usagef("--all and -c are two ways; choose one")
	case !f.all && len(f.clusters) == 0:
		return usagef("which clusters? -c NAME,... or --all")
	}
	return nil
}

func (f *suspendFlags) checkNote() error {
	for _, text := range []*string{&f.reason, &f.ticket} {
		*text = strings.Join(strings.Fields(*text), " ")
		if strings.ContainsFunc(*text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return usagef("%q holds control characters", *text)
		}
	}
	if f.reason == "" {
		return usagef("why? --reason TEXT")
	}
	if f.until == "" {
		return nil
	}
	if _, err := time.Parse(time.DateOnly, f.until); err != nil {
		return usagef("--until %q is no day such as 2026-11-28", f.until)
	}
	if f.until < today() {
		return usagef("--until %s is over: today is %s", f.until, today())
	}
	return nil
}

func (f *suspendFlags) suspend(cmd *cobra.Command, called string) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := f.checkNote(); err != nil {
		return err
	}
	d, err := f.open(cmd.Context(), "suspend-"+path.Base(called))
	if err != nil {
		return err
	}
	p, err := d.policy(f.namespace, called)
	if err != nil {
		return err
	}
	who, err := findAuthor(f.author, d.repo)
	if err != nil {
		return err
	}
	hold := fleetv1alpha1.Hold{By: who.String(), Reason: f.reason, Until: f.until, Ticket: f.ticket}
	c, err := f.hold(d, p, hold)
	if err != nil {
		return err
	}
	c.notes = append(c.notes, "deletions still reach suspended clusters")
	if f.until != "" {
		c.notes = append(c.notes, "a hold past its day is reported, not lifted")
	}
	return d.finish(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), c)
}

// hold suspends clusters and notes why.
func (f *suspendFlags) hold(d *desk, p *policy, hold fleetv1alpha1.Hold) (change, error) {
	c := change{policies: []*policy{p}, trailers: []string{"Reason: " + hold.Reason}}
	until := ""
	if hold.Until != "" {
		until, c.trailers = " until "+hold.Until, append(c.trailers, "Until: "+hold.Until)
	}
	if hold.Ticket != "" {
		until, c.trailers = until+" ("+hold.Ticket+")", append(c.trailers, "Ticket: "+hold.Ticket)
	}
	everywhere, held := p.now.Suspended()
	if f.all {
		c.subject = fmt.Sprintf("fleet: suspend %s everywhere", p.title)
		c.tell(p, "suspended everywhere%s", until)
		if everywhere {
			c.said = nil
			c.tell(p, "suspended everywhere already")
			return c, p.note(hold, fleetv1alpha1.AllClusters)
		}
		if err := p.doc.SuspendAll(); err != nil {
			return c, err
		}
		return c, p.note(hold, fleetv1alpha1.AllClusters)
	}
	clusters, err := d.expand(p, f.clusters)
	if err != nil {
		return c, err
	}
	if everywhere {
		c.said = append(c.said, fmt.Sprintf("%s: suspended everywhere already", d.inRepository(p.now.At("spec.suspension").String())))
		return c, nil
	}
	c.subject = c.on("fleet: suspend "+p.title, clusters)
	already, added := split(clusters, held)
	if len(added) > 0 {
		c.tell(p, "suspended %s%s", strings.Join(added, " "), until)
	}
	if len(already) > 0 {
		c.tell(p, "suspended already: %s", strings.Join(already, " "))
	}
	if _, unreached := split(clusters, d.state.Reaches(p.now)); len(unreached) > 0 {
		d.note("%s sends nothing to %s", p.title, strings.Join(unreached, ", "))
	}
	if err := p.doc.Suspend(clusters...); err != nil {
		return c, err
	}
	return c, p.note(hold, clusters...)
}

// note writes the same note about clusters, where it is not there yet.
func (p *policy) note(hold fleetv1alpha1.Hold, clusters ...string) error {
	others := slices.DeleteFunc(slices.Clone(clusters), func(name string) bool { return p.now.Holds[name] == hold })
	return p.doc.Note(hold, others...)
}

func (f *suspendFlags) resume(cmd *cobra.Command, called string) error {
	if err := f.check(); err != nil {
		return err
	}
	d, err := f.open(cmd.Context(), "resume-"+path.Base(called))
	if err != nil {
		return err
	}
	p, err := d.policy(f.namespace, called)
	if err != nil {
		return err
	}
	c := change{policies: []*policy{p}}
	everywhere, held := p.now.Suspended()
	switch {
	case !everywhere && len(held) == 0:
		c.tell(p, "%s suspends nothing", p.title)
	case f.all:
		c.subject = "fleet: resume " + p.title + " everywhere"
		what := strings.Join(held, " ")
		if everywhere {
			what = "everywhere"
		}
		c.tell(p, "resumed %s", what)
		err = errors.Join(p.doc.ResumeAll(), p.doc.ForgetAll())
	default:
		err = f.resumeSome(d, p, &c)
	}
	if err != nil {
		return err
	}
	return d.finish(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), c)
}

func (f *suspendFlags) resumeSome(d *desk, p *policy, c *change) error {
	clusters, err := d.expand(p, f.clusters)
	if err != nil {
		return err
	}
	everywhere, held := p.now.Suspended()
	if everywhere {
		held = clusters
	}
	resumed, others := split(clusters, held)
	if len(others) > 0 {
		c.tell(p, "%s does not suspend %s", p.title, strings.Join(others, " "))
	}
	if len(resumed) == 0 {
		return nil
	}
	c.subject = c.on("fleet: resume "+p.title, resumed)
	c.tell(p, "resumed %s", strings.Join(resumed, " "))
	return d.lift(p, resumed)
}

// lift takes clusters off what a policy suspends, and their notes.
func (d *desk) lift(p *policy, clusters []string) error {
	everywhere, held := p.now.Suspended()
	if everywhere {
		return d.name(p, clusters)
	}
	if err := p.doc.Resume(clusters...); err != nil {
		return err
	}
	if _, left := split(held, clusters); len(left) == 0 {
		return p.doc.ForgetAll()
	}
	return p.doc.Forget(clusters...)
}

// name replaces a hold on every cluster by one on those that the policy can
// reach, but for some.
func (d *desk) name(p *policy, but []string) error {
	_, left := split(d.state.Reaches(p.now), but)
	if len(left) == 0 {
		return errors.Join(p.doc.ResumeAll(), p.doc.ForgetAll())
	}
	d.note("%s was suspended everywhere: the other clusters that it can reach are named now; one that joins later is not held", p.title)
	if err := p.doc.HoldOnly(left...); err != nil {
		return err
	}
	if all, ok := p.now.Holds[fleetv1alpha1.AllClusters]; ok {
		others := slices.DeleteFunc(left, func(name string) bool { _, own := p.now.Holds[name]; return own })
		if err := p.doc.Note(all, others...); err != nil {
			return err
		}
	}
	return p.doc.Forget(append(slices.Clone(but), fleetv1alpha1.AllClusters)...)
}

// expand gives the names of clusters that a user asked for: names, globs, and
// wave=N of a policy's waves. What the policy names may have left the fleet.
func (d *desk) expand(p *policy, asked []string) (names []string, err error) {
	_, held := p.now.Suspended()
	for _, word := range asked {
		found, err := d.expandOne(p, word, held)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

func (d *desk) expandOne(p *policy, word string, held []string) (found []string, err error) {
	clusters := d.in.Snapshot.Clusters
	if n, ok := strings.CutPrefix(word, "wave="); ok {
		wave, err := p.wave(n)
		if err != nil {
			return nil, err
		}
		return p.now.Waves[wave-1], nil
	}
	if !strings.ContainsAny(word, "*?[") {
		if _, ok := clusters.Get(word); !ok && !slices.Contains(held, word) {
			return nil, fmt.Errorf("-c: the fleet has no cluster %q", word)
		}
		return []string{word}, nil
	}
	for c := range clusters.Values() {
		ok, err := path.Match(word, c.Name)
		if err != nil {
			return nil, usagef("-c %q: %w", word, err)
		}
		if ok {
			found = append(found, c.Name)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("-c: no cluster of the fleet matches %q", word)
	}
	slices.Sort(found)
	return found, nil
}

// wave is the number of a wave that the policy has.
func (p *policy) wave(n string) (int, error) {
	wave, err := strconv.Atoi(n)
	switch {
	case len(p.now.Waves) == 0:
		return 0, fmt.Errorf("%s has no waves: its annotation %s would list them", p.title, fleetv1alpha1.AnnotationWaves)
	case err != nil || wave < 1 || wave > len(p.now.Waves):
		return 0, fmt.Errorf("%s has waves 1 to %d, and no wave %q", p.title, len(p.now.Waves), n)
	}
	return wave, nil
}

// split divides names into those that are among others and those that are not.
func split(names, among []string) (in, out []string) {
	for _, name := range names {
		if slices.Contains(among, name) {
			in = append(in, name)
		} else {
			out = append(out, name)
		}
	}
	return in, out
}

// tell adds a line about a policy's file to what is said in the end.
func (c *change) tell(p *policy, format string, args ...any) {
	c.said = append(c.said, p.file+": "+fmt.Sprintf(format, args...))
}

// on ends the subject of a message with clusters, which stand below it when
// they are many.
func (c *change) on(subject string, clusters []string) string {
	if len(clusters) <= 4 {
		return subject + " on " + strings.Join(clusters, ", ")
	}
	c.trailers = append(c.trailers, "Clusters: "+strings.Join(clusters, ", "))
	return fmt.Sprintf("%s on %s", subject, count(len(clusters), "cluster"))
}
