// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/source"
)

// mostNews is how many images stand in the verdict.
const mostNews = 5

// news are the images that change, as a reader wants to hear of them first: "shop/web
// 1.4.2 -> 1.5.0: now on 1 cluster, held on 23".
func (r *Plan) news() (all []string) {
	for i := range r.Images {
		all = append(all, r.Images[i].text())
	}
	if len(all) > mostNews {
		all = append(all[:mostNews-1], fmt.Sprintf("and %d more images", len(r.Images)-mostNews+1))
	}
	return all
}

func (m *Image) text() string {
	var where []string
	for _, at := range []struct {
		clusters []string
		when     string
	}{{m.Now, "now"}, {m.Released, "released"}, {m.Held, "held"}} {
		if len(at.clusters) > 0 {
			where = append(where, at.when+" on "+onClusters(at.clusters))
		}
	}
	if m.Until != "" {
		where = append(where, "until "+m.Until)
	}
	name := m.Object.Name
	if m.Object.Namespace != "" {
		name = m.Object.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s: %s", name, m.Step(), strings.ReplaceAll(strings.Join(where, ", "), ", until", " until"))
}

// onClusters names one cluster, and counts more of them.
func onClusters(clusters []string) string {
	if len(clusters) == 1 {
		return clusters[0]
	}
	return report.Count(len(clusters), "cluster")
}

// holdLines tells which holds are new, changed and lifted, and what the lifted ones let
// out.
func (r *Plan) holdLines(w io.Writer, screen output.Screen) {
	if len(r.Suspensions) == 0 && len(r.Releases) == 0 {
		return
	}

	fmt.Fprintln(w, "\nHolds")
	for _, s := range r.Suspensions {
		for _, line := range s.lines() {
			printable.Fprintf(w, "  %-7s  %s\n", line.word, screen.Fit(line.text, 11))
		}
	}
	for _, release := range r.alikeReleases() {
		printable.Fprintf(w, "  resume   %s\n", screen.Fit(release.text(), 11))
		for _, c := range release.Commits {
			printable.Fprintf(w, "           %s  %s\n", source.Short(c.Commit), screen.Fit(fmt.Sprintf("%s (%s)", c.Subject, report.NameOf(c.Author)), 20))
		}
	}
}

// holdLine is a hold, and whether it is new, changed or lifted.
type holdLine struct{ word, text string }

// lines has one for each note and what becomes of the clusters that share it.
func (s *Suspension) lines() (all []holdLine) {
	for _, of := range []struct {
		word, verb string
		notes      []HoldNote
	}{{"new", "holds", s.New}, {"changed", "still holds", s.Changed}, {"lifted", "no longer holds", s.Lifted}} {
		for _, n := range alikeNotes(of.notes) {
			on := n.on()
			if n.Cluster == fleetv1alpha1.AllClusters && of.word == "lifted" && len(s.After) > 0 {
				on += ", only " + strings.Join(s.After, " ")
			}
			text := fmt.Sprintf("%s %s %s", s.Holder, of.verb, on)
			if told := n.told(of.word != "lifted"); told != "" {
				text += "  (" + told + ")"
			}
			all = append(all, holdLine{of.word, text})
		}
	}
	return all
}

// notedClusters are the clusters whose holds have one note.
type notedClusters struct {
	HoldNote
	clusters []string
}

func alikeNotes(notes []HoldNote) (all []notedClusters) {
	for _, n := range notes {
		i := slices.IndexFunc(all, func(o notedClusters) bool {
			return o.By == n.By && o.Reason == n.Reason && o.Until == n.Until && o.Ticket == n.Ticket && o.until() == n.until()
		})
		if i < 0 {
			all = append(all, notedClusters{n, []string{n.Cluster}})
			continue
		}
		all[i].clusters = append(all[i].clusters, n.Cluster)
		all[i].Works += n.Works
		all[i].Waiting += n.Waiting
	}
	return all
}

func (n *notedClusters) on() string {
	const most = 4
	switch {
	case n.Cluster == fleetv1alpha1.AllClusters:
		return "every cluster"
	case len(n.clusters) > most:
		return report.Count(len(n.clusters), "cluster")
	}
	return strings.Join(n.clusters, " ")
}

// told is what was noted, and how much is held.
func (n *notedClusters) told(held bool) string {
	var parts []string
	if who := report.NameOf(n.By); who != "" || n.Reason != "" {
		parts = append(parts, strings.Trim(fmt.Sprintf("%s: %q", who, n.Reason), ": "))
	}
	for _, part := range []string{n.until(), n.Ticket} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if held {
		if len(parts) == 0 {
			parts = append(parts, "nobody noted why")
		}
		parts = append(parts, fmt.Sprintf("%s, %d waiting", report.Count(n.Works, "work"), n.Waiting))
		if n.File != "" {
			parts = append(parts, fmt.Sprintf("%s:%d", n.File, n.Line))
		}
	}
	return strings.Join(parts, ", ")
}

// until reads "until 2026-11-30", or "until 2026-11-28 -> 2026-12-24".
func (n *HoldNote) until() string {
	switch {
	case n.Was != nil && n.Was.Until != n.Until:
		return fmt.Sprintf("until %s -> %s", cmp.Or(n.Was.Until, "(open)"), cmp.Or(n.Until, "(open)"))
	case n.Until != "":
		return "until " + n.Until
	}
	return ""
}

// releaseOf are the clusters on which the same is released.
type releaseOf struct {
	Release
	clusters []string
}

// alikeReleases joins the clusters on which a policy releases the same commits.
func (r *Plan) alikeReleases() (all []releaseOf) {
	for _, one := range r.Releases {
		i := slices.IndexFunc(all, func(o releaseOf) bool {
			return o.Policy == one.Policy && o.Unknown == one.Unknown && slices.Equal(o.Objects, one.Objects) && slices.Equal(o.hashes(), one.hashes())
		})
		if i < 0 {
			all = append(all, releaseOf{one, []string{one.Cluster}})
			continue
		}
		all[i].clusters = append(all[i].clusters, one.Cluster)
	}
	return all
}

func (r *Release) hashes() (all []string) {
	for _, c := range r.Commits {
		all = append(all, c.Commit)
	}
	return all
}

// text reads "eu-2 gets 3 commits of policy web at once (1 object), held since
// 3f0c9aa of 2026-11-21".
func (r *releaseOf) text() string {
	const most = 4
	on := strings.Join(r.clusters, " ")
	if len(r.clusters) > most {
		on = "each of " + report.Count(len(r.clusters), "cluster")
	}
	gets := "gets"
	if len(r.clusters) > 1 && len(r.clusters) <= most {
		gets = "get"
	}

	what := fmt.Sprintf("%s of policy %s at once", report.Count(len(r.Commits), "commit"), r.Policy)
	switch {
	case r.Unknown:
		what = fmt.Sprintf("what waits of policy %s; the history here does not reach back to what it runs", r.Policy)
	case len(r.Commits) == 0:
		what = fmt.Sprintf("of policy %s only what this change brings", r.Policy)
	}
	text := fmt.Sprintf("%s %s %s (%s)", on, gets, what, report.Count(len(r.Objects), "object"))
	if r.Since.Date != nil {
		text += fmt.Sprintf(", held since %s of %s", source.Short(r.Since.Commit), r.Since.Date.UTC().Format(time.DateOnly))
	}
	return text
}

// deferredLines tells which policies wait for their templates to change.
func (r *Plan) deferredLines(w io.Writer) {
	if len(r.Deferred) == 0 {
		return
	}

	fmt.Fprintln(w, "\nDeferred")
	for _, d := range r.Deferred {
		if d.Deferred == d.Already {
			continue
		}
		printable.Fprintf(w, "  %s\n", d.text())
	}
}

// text reads "policy default-apps: 1 of 38 templates takes the change now, 37 when they
// next change; to wake them: fairlead activate default-apps".
func (d *Deferral) text() string {
	takes := "take"
	if len(d.Activated) == 1 {
		takes = "takes"
	}
	return fmt.Sprintf("policy %s: %d of %s %s the change now, %d when they next change; to wake them now: fairlead activate %s",
		d.Policy, len(d.Activated), report.Count(d.Matched, "template"), takes, d.Deferred, d.Policy)
}
