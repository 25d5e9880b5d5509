// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// History is the history of one object on its clusters; its JSON is a contract.
// Within a major of FormatVersion fields are only added.
type History struct {
	APIVersion    string        `json:"apiVersion"`
	Kind          string        `json:"kind"`
	FormatVersion string        `json:"formatVersion"`
	Head          Commit        `json:"head"`
	Object        Object        `json:"object"`
	Steps         []HistoryStep `json:"steps"` // newest first
}

// HistoryStep is a commit that changed something.
type HistoryStep struct {
	CommitInfo
	Changes []HistoryChange `json:"changes"`
}

// HistoryChange is one change on some clusters, or without any to the object as a
// whole.
type HistoryChange struct {
	What     propagate.ChangeType `json:"what"`
	Clusters []HistoryCluster     `json:"clusters"`
	Text     string               `json:"text,omitempty"`
	// Released are the commits that were held until then, oldest first.
	Released []CommitInfo `json:"released,omitempty"`
	Because  []Because    `json:"because"`
}

// HistoryCluster is a cluster with the replicas of its copy.
type HistoryCluster struct {
	Name     string    `json:"name"`
	Replicas *Replicas `json:"replicas,omitempty"`
}

// ofPolicies are changes that do not affect what a cluster has.
var ofPolicies = []propagate.ChangeType{propagate.ChangeClaimed, propagate.ChangeUnclaimed}

// NewHistory returns the history of an object on the clusters in only, or on all if
// only is empty.
func NewHistory(t *history.Timeline, id object.ID, head string, only []string) *History {
	r := &History{APIVersion: APIVersion, Kind: "History", FormatVersion: "1.0", Head: Commit{head},
		Object: Object{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}, Steps: []HistoryStep{}}
	for _, m := range slices.Backward(t.Objects[id].Entries) {
		happened := slices.DeleteFunc(slices.Clone(m.Happened), func(h propagate.Change) bool {
			return slices.Contains(ofPolicies, h.Type) || h.Cluster != "" && len(only) > 0 && !slices.Contains(only, h.Cluster)
		})
		if len(happened) == 0 {
			continue
		}
		step := HistoryStep{CommitInfo: *NewCommitInfo(m.Commit)}
		for _, same := range alike(happened, m.Released) {
			step.Changes = append(step.Changes, newChange(t, same, m.Released))
		}
		r.Steps = append(r.Steps, step)
	}

	return r
}

func newChange(t *history.Timeline, same []propagate.Change, released map[string][]string) HistoryChange {
	first := same[0]
	c := HistoryChange{What: first.Type, Text: first.Text, Clusters: []HistoryCluster{}, Because: becauseOf(first)}
	if waited := released[first.Cluster]; first.Cluster != "" && len(waited) > 0 {
		c.Released = commitInfos(t, waited)
	}
	for _, h := range same {
		if h.Cluster == "" {
			continue
		}
		cluster := HistoryCluster{Name: h.Cluster}
		if h.Replicas != nil {
			cluster.Replicas = &Replicas{Before: h.Replicas.Before, After: h.Replicas.After, Asked: h.Replicas.Asked}
		}
		c.Clusters = append(c.Clusters, cluster)
	}

	return c
}

func becauseOf(h propagate.Change) []Because {
	all := []Because{}
	for _, b := range h.Because {
		all = append(all, Because{Code: b.Code, File: b.File, Line: b.Line})
	}
	return all
}

// alike groups the changes of one object in one step: those that differ in nothing
// but cluster and replicas.
func alike(happened []propagate.Change, released map[string][]string) [][]propagate.Change {
	var groups [][]propagate.Change
	for _, h := range happened {
		i := slices.IndexFunc(groups, func(g []propagate.Change) bool {
			first := g[0]
			return first.Type == h.Type && first.Object == h.Object && first.Text == h.Text && (first.Cluster == "") == (h.Cluster == "") &&
				slices.Equal(first.Because, h.Because) && slices.Equal(released[first.Cluster], released[h.Cluster])
		})
		if i < 0 {
			groups = append(groups, []propagate.Change{h})
			continue
		}
		groups[i] = append(groups[i], h)
	}

	return groups
}

// Text prints a line for each change, the newest first as git log does.
func (r *History) Text(out io.Writer, screen output.Screen) error {
	if len(r.Steps) == 0 {
		return nil
	}

	printable.Fprintf(out, "%s, newest first\n\n", r.Object.Text())
	t := output.Table{Columns: output.NewColumns("COMMIT", "DATE", "WHAT", "CLUSTERS", "SUBJECT", "AUTHOR").
		Text("WHAT", "SUBJECT", "AUTHOR").Yield("SUBJECT", "AUTHOR", "CLUSTERS").States("WHAT").
		Least(leastWhat, "WHAT").Least(leastNames, "CLUSTERS").Least(1, "SUBJECT", "AUTHOR")}
	for _, s := range r.Steps {
		for _, c := range s.Changes {
			t.Rows = append(t.Rows, []any{source.Short(s.Commit), s.Date.UTC().Format(output.Minute), c.Words(), c.clusters(), s.Subject, NameOf(s.Author)})
		}
	}

	return t.Text(out, screen)
}

// What happened is what a line is about, and 80 columns have room for it: before it is cut,
// a subject and an author may be as short as their headers.
const (
	leastWhat  = 20
	leastNames = 13 // "m001 +11 more"
)

// Words describes the change, with its text if it has one.
func (c HistoryChange) Words() string {
	what := decided(c.What)
	switch {
	case len(c.Released) > 0:
		return fmt.Sprintf("%s after %s", what, Count(len(c.Released), "commit"))
	case c.What == propagate.ChangeMoved:
		return what + " " + c.Text
	case c.Text != "":
		return what + ": " + c.Text
	}

	return what
}

// decided is a change in words of what git decided. Whether a cluster did it, only the
// cluster knows: something foreign may have been in the way (decision 41).
func decided(what propagate.ChangeType) string {
	switch what {
	case propagate.ChangeCreated:
		return "create"
	case propagate.ChangeUpdated:
		return "update"
	case propagate.ChangeScaled:
		return "scale"
	case propagate.ChangeDeleted:
		return "delete"
	case propagate.ChangeLeftRunning:
		return "leave running"
	}
	return string(what)
}

// clusters reads "eu-1:4 us-1:4->2", without numbers where there are none.
func (c HistoryChange) clusters() output.Names {
	return output.Names{All: c.ClusterTexts(), Sep: " "}
}

// ClusterTexts are the clusters, each with its replicas: "us-1:4->2".
func (c HistoryChange) ClusterTexts() (names []string) {
	for _, cluster := range c.Clusters {
		text := cluster.Name
		switch n := cluster.Replicas; {
		case n == nil || c.What.Removes():
		case c.What == propagate.ChangeHeld && n.Asked != n.After:
			text += fmt.Sprintf(":%d (asked %d)", n.After, n.Asked)
		case c.What == propagate.ChangeScaled:
			text += fmt.Sprintf(":%d->%d", n.Before, n.After)
		default:
			text += fmt.Sprintf(":%d", n.After)
		}
		names = append(names, text)
	}

	return names
}

// NameOf returns an author's name without the address.
func NameOf(author string) string {
	name, _, _ := strings.Cut(author, " <")
	return name
}
