// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/propagate"
)

// text prints the answer first, then the chain that leads to it, then what to
// do. With named the clusters that were asked about are told in full.
func (r *whyReport) text(out io.Writer, named bool) error {
	b := bufio.NewWriter(out)
	if !named {
		fmt.Fprintf(b, "%s\n", r.Object.text())
		r.links(b, r.whole())
		r.waiting(b)
		r.table(b)
		for _, n := range r.Next {
			fmt.Fprintf(b, "%s\n", n)
		}
		return b.Flush()
	}
	for i, c := range r.Clusters {
		if i > 0 {
			fmt.Fprintln(b)
		}
		fmt.Fprintf(b, "%s\n", r.answer(c))
		r.links(b, append(r.whole(), c.Chain...))
		for i, behind := range c.Behind {
			label := ""
			if i == 0 {
				label = "waits"
			}
			fmt.Fprintf(b, "  %-10s %s\n", label, behind.String())
		}
		r.waiting(b)
		for _, n := range append(c.Next, r.Next...) {
			fmt.Fprintf(b, "  %s\n", n)
		}
	}
	return b.Flush()
}

// answer is the sentence that somebody came for.
func (r *whyReport) answer(c whyCluster) string {
	var s strings.Builder
	s.WriteString(r.Object.text())
	switch {
	case c.State == whyAbsent && len(c.Chain) > 0:
		return fmt.Sprintf("%s is not sent to %s: %s.", r.Object.text(), c.Cluster, c.last().Text)
	case c.State == whyAbsent:
		return fmt.Sprintf("%s is not sent to %s.", r.Object.text(), c.Cluster)
	case c.Runs == nil:
		fmt.Fprintf(&s, " has never reached %s", c.Cluster)
	default:
		fmt.Fprintf(&s, " runs on %s at %s", c.Cluster, short(c.Runs.Commit))
	}
	if c.Runs != nil && c.Replicas != nil {
		s.WriteString(", " + count(int(c.Replicas.After), "replica"))
	}
	if n := len(c.Behind); n > 0 {
		fmt.Fprintf(&s, ", %s behind", count(n, "commit"))
	}
	s.WriteString(".")
	if c.State != whyCurrent {
		fmt.Fprintf(&s, " It is %s.", strings.ToUpper(c.State))
	}
	return s.String()
}

// links prints a chain. The commit of a document is told at its first link.
func (r *whyReport) links(w io.Writer, chain []whyLink) {
	width := 0
	for _, l := range chain {
		width = max(width, len(l.where()))
	}
	told := map[string]bool{}
	for _, l := range chain {
		var lines []string
		if text := l.sentence(); text != "" {
			lines = append(lines, text)
		}
		if l.Note != nil {
			lines = append(lines, noteText(l.Note))
		}
		if l.Changed != nil && !told[l.File+l.Changed.Commit] {
			told[l.File+l.Changed.Commit] = true
			lines = append(lines, "changed in "+l.Changed.String())
		}
		if l.Step == propagate.LinkHold && l.Note == nil && l.File != "" {
			lines = append(lines, "nobody noted why")
		}
		for i, line := range append(lines, "")[:max(len(lines), 1)] {
			if i == 0 {
				fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-10s %-*s  %s", l.Step, width, l.where(), line), " "))
				continue
			}
			fmt.Fprintf(w, "  %-10s %-*s  %s\n", "", width, "", line)
		}
	}
}

func (l whyLink) sentence() string {
	if l.Since != nil {
		return fmt.Sprintf("%s, since %s", l.Text, l.Since)
	}
	return l.Text
}

// where reads "policies/web.yaml:7", with the commit when it is not the head.
func (l whyLink) where() string {
	if l.File == "" {
		return ""
	}
	text := propagate.Origin{File: l.File, Line: l.Line}.String()
	if l.At != nil {
		text += " at " + short(l.At.Commit)
	}
	return text
}

// noteText reads: mara: "wait for eu-1 soak", CHG-1188, no end date.
func noteText(h *fleetv1alpha1.Hold) string {
	var parts []string
	if h.Reason != "" {
		parts = append(parts, fmt.Sprintf("%q", h.Reason))
	}
	if h.Ticket != "" {
		parts = append(parts, h.Ticket)
	}
	switch {
	case h.Until == "":
		parts = append(parts, "no end date")
	case h.Until < today():
		parts = append(parts, "until "+h.Until+", which is past")
	default:
		parts = append(parts, "until "+h.Until)
	}
	text := strings.Join(parts, ", ")
	if h.By != "" {
		text = nameOf(h.By) + ": " + text
	}
	return text
}

// whole is the chain of the object as such, with who comes closest to it.
func (r *whyReport) whole() []whyLink {
	links := slices.Clone(r.Chain)
	for _, n := range r.Closest {
		links = append(links, whyLink{Step: "closest", Text: n.Policy + ": " + strings.Join(n.Misses, "; "), File: n.File, Line: n.Line})
	}
	return links
}

func (r *whyReport) waiting(w io.Writer) {
	for i, c := range r.Waiting {
		label := ""
		if i == 0 {
			label = "would"
		}
		replicas := ""
		if n := c.Replicas; n != nil && n.Before != n.After {
			replicas = fmt.Sprintf(", replicas %d -> %d", n.Before, n.After)
		}
		fmt.Fprintf(w, "  %-10s %s %s on %s%s\n", label, glyphs[c.Action], c.Action, c.Cluster, replicas)
	}
}

func (n whyNext) String() string {
	if n.Command == "" {
		return "to " + n.To
	}
	return fmt.Sprintf("to %s: %s", n.To, n.Command)
}

// table has a line for each cluster, with the last word of its chain.
func (r *whyReport) table(out io.Writer) {
	if len(r.Clusters) == 0 {
		return
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLUSTER\tSTATE\tRUNS\tBEHIND\tREPLICAS\tWHERE\tWHY")
	for _, c := range r.Clusters {
		runs, replicas := "-", "-"
		if c.Runs != nil {
			runs = short(c.Runs.Commit)
		}
		if n := c.Replicas; n != nil {
			replicas = fmt.Sprint(n.After)
			if n.Asked != n.After {
				replicas = fmt.Sprintf("%d (asked %d)", n.After, n.Asked)
			}
		}
		last := c.last()
		why := last.sentence()
		if first := c.Chain; c.State == whyAbsent && len(first) > 1 && first[0].Step == propagate.LinkDeparted {
			why += "; " + first[0].Text
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Cluster, c.State, runs, dash(len(c.Behind)), replicas, cmp.Or(last.where(), "-"), why)
	}
	w.Flush()
}

// last is the link that says most: what holds the cluster, or else what places
// it there or does not.
func (c whyCluster) last() whyLink {
	var said whyLink
	rank := map[propagate.LinkStep]int{propagate.LinkDeparted: 1, propagate.LinkOwner: 2, propagate.LinkPlacement: 3, propagate.LinkHold: 4, propagate.LinkEviction: 5, propagate.LinkBlocked: 6}
	for _, l := range c.Chain {
		if rank[l.Step] > rank[said.Step] {
			said = l
		}
	}
	return said
}
