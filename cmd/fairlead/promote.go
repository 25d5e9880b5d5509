// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/propagate"
)

type promoteFlags struct {
	editFlags
	namespace string
	next      bool
	to        int
}

func newPromote() *cobra.Command {
	var f promoteFlags
	cmd := &cobra.Command{
		Use:   "promote [POLICY] --next | --to WAVE",
		Short: "Resume the next wave of clusters",
		Long: `Resumes the first wave of a policy that still has a suspended cluster, or all
waves up to one. The waves stand in the policy's annotation
fairlead.dev/waves: a list of lists of cluster names, "[[eu-1], [us-1, us-2]]".
Without it, --next resumes the first cluster of the suspension's list.

Without a POLICY, every policy with waves that has something to promote in that
wave is promoted, in one edit.`,
		Example: `  fairlead promote shop-web --next
  fairlead promote --to 2 --push`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.promote(cmd, args) },
	}
	f.bind(cmd)
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "the policy's namespace")
	cmd.Flags().BoolVar(&f.next, "next", false, "the first wave that has a suspended cluster")
	cmd.Flags().IntVar(&f.to, "to", 0, "every wave up to this one, counted from 1")
	return cmd
}

func (f *promoteFlags) promote(cmd *cobra.Command, args []string) error {
	switch {
	case f.next == (f.to != 0):
		return usagef("how far? --next or --to WAVE")
	case f.to < 0:
		return usagef("--to %d: waves are counted from 1", f.to)
	}
	name := "promote-next"
	if f.to > 0 {
		name = fmt.Sprintf("promote-to-wave-%d", f.to)
	}
	if len(args) == 1 {
		name = "promote-" + path.Base(args[0])
	}
	d, err := f.open(cmd.Context(), name)
	if err != nil {
		return err
	}
	var c change
	if len(args) == 1 {
		err = f.one(d, args[0], &c)
	} else {
		err = f.every(d, &c)
	}
	if err != nil {
		return err
	}
	return d.finish(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), c)
}

// one promotes the policy that is named.
func (f *promoteFlags) one(d *desk, called string, c *change) error {
	p, err := d.policy(f.namespace, called)
	if err != nil {
		return err
	}
	everywhere, held := p.now.Suspended()
	switch {
	case f.to > 0:
		if _, err := p.wave(fmt.Sprint(f.to)); err != nil {
			return err
		}
	case len(p.now.Waves) == 0 && everywhere:
		return fmt.Errorf("%s is suspended everywhere and has no waves, so there is no next cluster: name one with fairlead resume, or list the waves in the annotation %s", p.title, fleetv1alpha1.AnnotationWaves)
	case len(p.now.Waves) == 0 && len(held) > 0:
		c.subject = "fleet: promote " + p.title + " to " + held[0]
		return d.release(p, held[:1], "", c)
	}
	wave := f.to
	if f.next {
		wave = next(p.now)
	}
	clusters := suspendedIn(p.now, wave)
	if len(clusters) == 0 {
		c.tell(p, "%s", nothingLeft(p, f.to))
		return nil
	}
	c.subject = c.on(fmt.Sprintf("fleet: promote %s to wave %d", p.title, wave), clusters)
	return d.release(p, clusters, fmt.Sprintf(" (wave %d of %d)", wave, len(p.now.Waves)), c)
}

// every promotes all policies that have something to promote in a wave: the
// earliest one that any of them waits in, or the one that is asked for.
func (f *promoteFlags) every(d *desk, c *change) error {
	wave := f.to
	names := map[string]int{}
	var refs []propagate.PolicyRef
	for p := range d.in.Snapshot.Policies.Values() {
		names[p.Ref.Name]++
		if f.namespace != "" && p.Ref.Namespace != f.namespace {
			continue
		}
		refs = append(refs, p.Ref)
		if n := next(p); f.next && n > 0 && (wave == 0 || n < wave) {
			wave = n
		}
	}
	without := 0
	var clusters []string
	for _, ref := range refs {
		p := d.in.Snapshot.Policies.At(ref.Key())
		if len(p.Waves) == 0 && len(held(p)) > 0 {
			without++
		}
		if wave == 0 || len(suspendedIn(p, wave)) == 0 {
			continue
		}
		found, err := d.policyOf(ref, titleOf(ref, names[ref.Name] == 1))
		if err != nil {
			return err
		}
		released := suspendedIn(found.now, wave)
		if err := d.release(found, released, fmt.Sprintf(" (wave %d of %d of %s)", min(wave, len(found.now.Waves)), len(found.now.Waves), found.title), c); err != nil {
			return err
		}
		_, more := split(released, clusters)
		clusters = append(clusters, more...)
	}
	if without > 0 {
		d.note("%s with a suspension and without waves: left as it is", count(without, "polic"))
	}
	if len(c.policies) == 0 {
		c.said = append(c.said, "no policy has a suspended cluster in "+upTo(wave))
		return nil
	}
	slices.Sort(clusters)
	c.subject = c.on(fmt.Sprintf("fleet: promote to wave %d", wave), clusters)
	return nil
}

func upTo(wave int) string {
	if wave == 0 {
		return "its waves"
	}
	return fmt.Sprintf("waves 1 to %d", wave)
}

// release lifts what a promotion lifts.
func (d *desk) release(p *policy, clusters []string, wave string, c *change) error {
	c.policies = append(c.policies, p)
	c.tell(p, "resumed %s%s", strings.Join(clusters, " "), wave)
	return d.lift(p, clusters)
}

// next is the first wave that has a suspended cluster, or 0.
func next(p *propagate.Policy) int {
	for i := range p.Waves {
		if len(suspendedIn(p, i+1)) > 0 {
			return i + 1
		}
	}
	return 0
}

// suspendedIn lists the suspended clusters of the waves up to one.
func suspendedIn(p *propagate.Policy, wave int) (clusters []string) {
	everywhere, names := p.Suspended()
	for _, of := range p.Waves[:min(wave, len(p.Waves))] {
		for _, name := range of {
			if everywhere || slices.Contains(names, name) {
				clusters = append(clusters, name)
			}
		}
	}
	return clusters
}

// nothingLeft says why there is nothing to promote.
func nothingLeft(p *policy, to int) string {
	_, names := p.now.Suspended()
	text := fmt.Sprintf("%s suspends no cluster of %s", p.title, upTo(to))
	if len(names) == 0 {
		return p.title + " suspends nothing"
	}
	var waves []string
	for _, wave := range p.now.Waves {
		waves = append(waves, wave...)
	}
	if _, others := split(names, waves); len(others) > 0 {
		text += "; in none of its waves, and suspended: " + strings.Join(others, " ")
	}
	return text
}
