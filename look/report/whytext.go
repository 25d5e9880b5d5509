// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Text prints the answer, the trace that leads to it, and the next steps. If named
// is set, the clusters are printed in full, else as a table.
func (r *Why) Text(out io.Writer, named bool, screen output.Screen) error {
	b := bufio.NewWriter(screen.Writer(out))
	if !named {
		printable.Fprintf(b, "%s\n", r.Object.Text())
		r.links(b, r.whole())
		r.waiting(b)
		if err := r.table(b, screen); err != nil {
			return err
		}
		for _, n := range r.Next {
			printable.Fprintf(b, "%s\n", n)
		}
		return b.Flush()
	}
	for i, c := range r.Clusters {
		if i > 0 {
			fmt.Fprintln(b)
		}
		fmt.Fprintf(b, "%s\n", r.painted(c, screen))
		r.links(b, append(r.whole(), c.Trace...))
		if c.Failure != "" {
			printable.Fprintf(b, "  %-10s %s\n", "run", c.Failure)
		}
		for i, behind := range c.Behind {
			label := ""
			if i == 0 {
				label = "waits"
			}
			printable.Fprintf(b, "  %-10s %s\n", label, behind.told(r.now))
		}
		r.waiting(b)
		for _, n := range append(c.Next, r.Next...) {
			printable.Fprintf(b, "  %s\n", n)
		}
	}

	return b.Flush()
}

// answer returns the answer for one cluster in one or two sentences.
func (r *Why) answer(c WhyCluster) string {
	var s strings.Builder
	s.WriteString(r.Object.Text())
	switch {
	case c.State == whyAbsent && len(c.Trace) > 0:
		return fmt.Sprintf("%s is not sent to %s: %s.", r.Object.Text(), c.Cluster, c.Decisive().Text)
	case c.State == whyAbsent:
		return fmt.Sprintf("%s is not sent to %s.", r.Object.Text(), c.Cluster)
	case c.Runs == nil:
		printable.Fprintf(&s, " was never released to %s", c.Cluster)
	default:
		printable.Fprintf(&s, " should run on %s at %s", c.Cluster, source.Short(c.Runs.Commit))
	}

	if c.Runs != nil && c.Replicas != nil {
		s.WriteString(", " + Count(int(c.Replicas.After), "replica"))
	}
	if n := len(c.Behind); n > 0 {
		printable.Fprintf(&s, ", %s behind", Count(n, "commit"))
	}
	s.WriteString(".")
	if c.State != whyCurrent {
		printable.Fprintf(&s, " It is %s.", strings.ToUpper(c.State))
	}

	return s.String()
}

// painted is the answer, with the state in its colour.
func (r *Why) painted(c WhyCluster, screen output.Screen) string {
	text, state := printable.Line(r.answer(c)), strings.ToUpper(c.State)
	if before, found := strings.CutSuffix(text, " It is "+state+"."); found {
		return before + " It is " + screen.Paint(output.ColorOf(c.State), state) + "."
	}
	return text
}

// links prints a trace. The commit of a document is printed at its first step.
func (r *Why) links(w io.Writer, chain []WhyStep) {
	width := 0
	for _, l := range chain {
		width = max(width, len(l.Where()))
	}

	told := map[string]bool{}
	for _, l := range chain {
		var lines []string
		if text := l.Sentence(r.now); text != "" {
			lines = append(lines, text)
		}
		if l.Note != nil {
			lines = append(lines, NoteText(l.Note, Today(r.now)))
		}
		if l.Changed != nil && !told[l.File+l.Changed.Commit] {
			told[l.File+l.Changed.Commit] = true
			lines = append(lines, "changed in "+l.Changed.told(r.now))
		}
		if l.Step == propagate.PhaseHold && l.Note == nil && l.File != "" {
			lines = append(lines, "no reason noted")
		}
		for i, line := range append(lines, "")[:max(len(lines), 1)] {
			if i == 0 {
				printable.Fprintf(w, "%s\n", strings.TrimRight(fmt.Sprintf("  %-10s %-*s  %s", l.Step, width, l.Where(), line), " "))
				continue
			}
			printable.Fprintf(w, "  %-10s %-*s  %s\n", "", width, "", line)
		}
	}
}

// Sentence is what a step decides, and since when.
func (l WhyStep) Sentence(now time.Time) string {
	if l.Since != nil {
		return fmt.Sprintf("%s, since %s", l.Text, l.Since.told(now))
	}
	return l.Text
}

// Where reads "policies/web.yaml:7", with the commit if it is not the head.
func (l WhyStep) Where() string {
	if l.File == "" {
		return ""
	}
	text := fleet.Origin{File: l.File, Line: l.Line}.String()
	if l.At != nil {
		text += " at " + source.Short(l.At.Commit)
	}
	return text
}

// NoteText reads, with the date as [Today] has it: mara: "wait for eu-1 soak", CHG-1188, no end date.
func NoteText(h *fleetv1alpha1.Hold, today string) string {
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
	case h.Until < today:
		parts = append(parts, "until "+h.Until+", which is past")
	default:
		parts = append(parts, "until "+h.Until)
	}

	text := strings.Join(parts, ", ")
	if h.By != "" {
		text = NameOf(h.By) + ": " + text
	}

	return text
}

// whole returns the trace of the object as such, with the nearest misses.
func (r *Why) whole() []WhyStep {
	links := slices.Clone(r.Trace)
	for _, n := range r.NearMisses {
		links = append(links, WhyStep{Step: "closest", Text: n.Policy + ": " + strings.Join(n.Misses, "; "), File: n.File, Line: n.Line})
	}
	return links
}

func (r *Why) waiting(w io.Writer) {
	for i, c := range r.Waiting {
		label := ""
		if i == 0 {
			label = "would"
		}
		replicas := ""
		if n := c.Replicas; n != nil && n.Before != n.After {
			replicas = fmt.Sprintf(", replicas %d -> %d", n.Before, n.After)
		}
		printable.Fprintf(w, "  %-10s %s %s on %s%s\n", label, Glyphs[c.Action], c.Action, c.Cluster, replicas)
	}
}

func (n WhyNext) String() string {
	if n.Command == "" {
		return "to " + n.To
	}
	return fmt.Sprintf("to %s: %s", n.To, n.Command)
}

// table prints a line for each cluster, with the decisive step of its trace.
func (r *Why) table(out io.Writer, screen output.Screen) error {
	if len(r.Clusters) == 0 {
		return nil
	}

	fmt.Fprintln(out)
	t := output.Table{Columns: output.NewColumns("CLUSTER", "STATE", "RELEASED", "BEHIND", "REPLICAS", "WHERE", "WHY").Text("WHY").States("STATE")}
	for _, c := range r.Clusters {
		runs, replicas := "", ""
		if c.Runs != nil {
			runs = source.Short(c.Runs.Commit)
		}
		if n := c.Replicas; n != nil {
			replicas = fmt.Sprint(n.After)
			if n.Asked != n.After {
				replicas = fmt.Sprintf("%d (asked %d)", n.After, n.Asked)
			}
		}
		last := c.Decisive()
		why := last.Sentence(r.now)
		if first := c.Trace; c.State == whyAbsent && len(first) > 1 && first[0].Step == propagate.PhaseRemoved {
			why += "; " + first[0].Text
		}
		t.Rows = append(t.Rows, []any{c.Cluster, c.State, runs, len(c.Behind), replicas, last.Where(), why})
	}

	return t.Text(out, screen)
}

// Decisive returns the decisive step: what holds the cluster, or else what places the
// template there or does not.
func (c WhyCluster) Decisive() WhyStep {
	var said WhyStep
	rank := map[propagate.TracePhase]int{propagate.PhaseRemoved: 1, propagate.PhaseOwner: 2, propagate.PhasePlacement: 3, propagate.PhaseHold: 4, propagate.PhaseEviction: 5, propagate.PhaseBlocked: 6}
	for _, l := range c.Trace {
		if rank[l.Step] > rank[said.Step] {
			said = l
		}
	}
	return said
}
