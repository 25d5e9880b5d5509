// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/propagate"
)

func newHistory() *cobra.Command {
	var f objectFlags
	cmd := &cobra.Command{
		Use:   "history KIND/NAME [-c CLUSTER]",
		Short: "Show what reached the clusters of a template, from which commit",
		Long: `Folds the history and prints, newest first, every commit that changed what a
cluster runs of one object, or what waits for it there: created, updated,
scaled, held, released with the commits that had waited, moved, deleted,
preserved. Clusters to which the same happened share a line, with the replicas
that they run from then on. It reads git alone, and also finds objects that are
not in the fleet any more.`,
		Example: `  fairlead history deploy/shop/web
  fairlead history deploy/shop/web -c us-1 -o json`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.history(cmd, args) },
	}
	f.bindObject(cmd)
	return cmd
}

func (f *objectFlags) history(cmd *cobra.Command, args []string) error {
	t, _, id, head, err := f.followed(cmd, args)
	if err != nil {
		return err
	}
	r := newHistoryReport(t, id, head, f.clusters)
	if len(r.Steps) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "Nothing of %s reached %s.\n", id, strings.Join(append(f.clusters, "any cluster")[:max(len(f.clusters), 1)], ", "))
	}
	if f.output == "json" {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	return r.text(cmd.OutOrStdout())
}

// historyReport is a history as it is printed; its JSON is a contract. Within
// a major of FormatVersion fields are only added.
type historyReport struct {
	APIVersion    string        `json:"apiVersion"`
	Kind          string        `json:"kind"`
	FormatVersion string        `json:"formatVersion"`
	Head          planCommit    `json:"head"`
	Object        planObject    `json:"object"`
	Steps         []historyStep `json:"steps"` // newest first
}

type historyStep struct {
	reportCommit
	Changes []historyChange `json:"changes"`
}

// historyChange is one thing that happened on some clusters, or without any
// to the object as a whole.
type historyChange struct {
	What     propagate.What   `json:"what"`
	Clusters []historyCluster `json:"clusters"`
	Text     string           `json:"text,omitempty"`
	// Released are the commits that had waited for a release, oldest first.
	Released []reportCommit `json:"released,omitempty"`
	Because  []planBecause  `json:"because"`
}

type historyCluster struct {
	Name     string        `json:"name"`
	Replicas *planReplicas `json:"replicas,omitempty"`
}

// ofPolicies are happenings that change nothing that a cluster has.
var ofPolicies = []propagate.What{propagate.WhatClaimed, propagate.WhatUnclaimed}

func newHistoryReport(t *trail, id propagate.ID, head string, only []string) *historyReport {
	r := &historyReport{APIVersion: "fairlead.dev/v1", Kind: "History", FormatVersion: "1.0", Head: planCommit{head},
		Object: planObject{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}, Steps: []historyStep{}}
	for _, m := range slices.Backward(t.objects[id].moments) {
		happened := slices.DeleteFunc(slices.Clone(m.happened), func(h propagate.Happening) bool {
			return slices.Contains(ofPolicies, h.What) || h.Cluster != "" && len(only) > 0 && !slices.Contains(only, h.Cluster)
		})
		if len(happened) == 0 {
			continue
		}
		step := historyStep{reportCommit: *newReportCommit(m.commit)}
		for _, same := range alike(happened, m.released) {
			step.Changes = append(step.Changes, t.change(same, m.released))
		}
		r.Steps = append(r.Steps, step)
	}
	return r
}

func (t *trail) change(same []propagate.Happening, released map[string][]string) historyChange {
	first := same[0]
	c := historyChange{What: first.What, Text: first.Text, Clusters: []historyCluster{}, Because: becauseOf(first)}
	if waited := released[first.Cluster]; first.Cluster != "" && len(waited) > 0 {
		c.Released = t.list(waited)
	}
	for _, h := range same {
		if h.Cluster == "" {
			continue
		}
		cluster := historyCluster{Name: h.Cluster}
		if h.Replicas != nil {
			cluster.Replicas = &planReplicas{Before: h.Replicas.Before, After: h.Replicas.After, Asked: h.Replicas.Asked}
		}
		c.Clusters = append(c.Clusters, cluster)
	}
	return c
}

func becauseOf(h propagate.Happening) []planBecause {
	all := []planBecause{}
	for _, b := range h.Because {
		all = append(all, planBecause{b.Code, b.File, b.Line})
	}
	return all
}

// alike groups what happened to one object in one step: clusters that share
// all but their replicas.
func alike(happened []propagate.Happening, released map[string][]string) [][]propagate.Happening {
	var groups [][]propagate.Happening
	for _, h := range happened {
		i := slices.IndexFunc(groups, func(g []propagate.Happening) bool {
			first := g[0]
			return first.What == h.What && first.Object == h.Object && first.Text == h.Text && (first.Cluster == "") == (h.Cluster == "") &&
				slices.Equal(first.Because, h.Because) && slices.Equal(released[first.Cluster], released[h.Cluster])
		})
		if i < 0 {
			groups = append(groups, []propagate.Happening{h})
			continue
		}
		groups[i] = append(groups[i], h)
	}
	return groups
}

// text prints a line for each change, the newest first as git log does.
func (r *historyReport) text(out io.Writer) error {
	if len(r.Steps) == 0 {
		return nil
	}
	fmt.Fprintf(out, "%s, newest first\n\n", r.Object.text())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COMMIT\tDATE\tWHAT\tCLUSTERS\tSUBJECT\tAUTHOR")
	for _, s := range r.Steps {
		for _, c := range s.Changes {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", short(s.Commit), s.Date.Format(time.DateOnly), c.words(), c.clusters(), s.Subject, nameOf(s.Author))
		}
	}
	return w.Flush()
}

// words are the happening and what it alone does not say.
func (c historyChange) words() string {
	switch {
	case len(c.Released) > 0:
		return fmt.Sprintf("%s after %s", c.What, count(len(c.Released), "commit"))
	case c.What == propagate.WhatMoved:
		return string(c.What) + " " + c.Text
	case c.Text != "":
		return string(c.What) + ": " + c.Text
	}
	return string(c.What)
}

// clusters reads "eu-1:4 us-1:4->2", without numbers where there are none.
func (c historyChange) clusters() string {
	var names []string
	for _, cluster := range c.Clusters {
		text := cluster.Name
		switch n := cluster.Replicas; {
		case n == nil || c.What.Removes():
		case c.What == propagate.WhatHeld && n.Asked != n.After:
			text += fmt.Sprintf(":%d (asked %d)", n.After, n.Asked)
		case c.What == propagate.WhatScaled:
			text += fmt.Sprintf(":%d->%d", n.Before, n.After)
		default:
			text += fmt.Sprintf(":%d", n.After)
		}
		names = append(names, text)
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, " ")
}

// nameOf is the author without the address.
func nameOf(author string) string {
	name, _, _ := strings.Cut(author, " <")
	return name
}
