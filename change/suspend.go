// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// Suspend holds what a policy sends to clusters, with a note of who, why and until
// when.
type Suspend struct {
	Hold
	Reason, Until, Ticket string // Until is the last day, as YYYY-MM-DD
	Today                 string // as YYYY-MM-DD; an earlier Until is refused
}

// Hold selects clusters of a policy.
type Hold struct {
	Policy, Namespace string   // as named on the command line
	Clusters          []string // names, globs, or wave=N of the policy's waves
	All               bool
}

func (h Hold) check() error {
	switch {
	case h.All && len(h.Clusters) > 0:
		return optionf("--all and -c cannot be used together")
	case !h.All && len(h.Clusters) == 0:
		return optionf("specify clusters with -c NAME,... or --all")
	}
	return nil
}

// Name returns the name from which a branch name is derived.
func (f *Suspend) Name() string { return "suspend-" + path.Base(f.Policy) }

// Check requires clusters and a reason, and refuses a hold in the past.
func (f *Suspend) Check() error {
	if err := f.check(); err != nil {
		return err
	}

	for _, text := range []*string{&f.Reason, &f.Ticket} {
		*text = strings.Join(strings.Fields(*text), " ")
		if strings.ContainsFunc(*text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return optionf("%q contains control characters", *text)
		}
	}

	if f.Reason == "" {
		return optionf("--reason is required")
	}
	if f.Until == "" {
		return nil
	}
	if _, err := time.Parse(time.DateOnly, f.Until); err != nil {
		return optionf("--until %q is not a date such as 2026-11-28", f.Until)
	}
	if f.Until < f.Today {
		return optionf("--until %s is in the past: today is %s", f.Until, f.Today)
	}

	return nil
}

// Edit adds clusters to the policy's suspension.
func (f *Suspend) Edit(s *Session) (Edit, error) {
	p, err := s.policy(f.Namespace, f.Policy)
	if err != nil {
		return Edit{}, err
	}
	who, err := s.opt.Author()
	if err != nil {
		return Edit{}, err
	}
	e, err := f.hold(s, p, fleetv1alpha1.Hold{By: who.String(), Reason: f.Reason, Until: f.Until, Ticket: f.Ticket})
	if err != nil {
		return Edit{}, err
	}

	e.notes = append(e.notes, "deletions still reach suspended clusters")
	if f.Until != "" {
		e.notes = append(e.notes, "an expired hold is reported, not lifted")
	}

	return e, nil
}

// hold suspends clusters and notes why.
func (f *Suspend) hold(s *Session, p *Policy, hold fleetv1alpha1.Hold) (Edit, error) {
	c := Edit{policies: []*Policy{p}, trailers: []string{"Reason: " + hold.Reason}}
	until := ""
	if hold.Until != "" {
		until, c.trailers = " until "+hold.Until, append(c.trailers, "Until: "+hold.Until)
	}
	if hold.Ticket != "" {
		until, c.trailers = until+" ("+hold.Ticket+")", append(c.trailers, "Ticket: "+hold.Ticket)
	}
	everywhere, held := p.now.Suspended()
	if f.All {
		c.subject = fmt.Sprintf("fleet: suspend %s everywhere", p.title)
		c.tell(p, "suspended everywhere%s", until)
		if everywhere {
			c.Said = nil
			c.tell(p, "suspended everywhere already")
			return c, p.note(hold, fleetv1alpha1.AllClusters)
		}
		if err := p.doc.SuspendAll(); err != nil {
			return c, err
		}
		return c, p.note(hold, fleetv1alpha1.AllClusters)
	}
	clusters, err := s.expand(p, f.Clusters)
	if err != nil {
		return c, err
	}
	if everywhere {
		c.Said = append(c.Said, fmt.Sprintf("%s: suspended everywhere already", s.inRepository(p.now.At("spec.suspension").String())))
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
	if _, unreached := split(clusters, s.state.Reaches(p.now)); len(unreached) > 0 {
		s.note("%s sends nothing to %s", p.title, strings.Join(unreached, ", "))
	}
	if err := p.doc.Suspend(clusters...); err != nil {
		return c, err
	}

	return c, p.note(hold, clusters...)
}

// note writes a note for clusters, unless they have the same one.
func (p *Policy) note(hold fleetv1alpha1.Hold, clusters ...string) error {
	others := slices.DeleteFunc(slices.Clone(clusters), func(name string) bool { return p.now.Holds[name] == hold })
	return p.doc.Note(hold, others...)
}
