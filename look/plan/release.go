// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Release is a hold that a change lifts, and what it lets out on one cluster.
type Release struct {
	Policy  string `json:"policy"`
	Cluster string `json:"cluster"`
	// Since is when the cluster was held, and what was noted of it then.
	Since ReleaseSince `json:"since"`
	// Objects are what is released there.
	Objects []report.Object `json:"objects"`
	// Commits are those that it lets out at once, oldest first. Those of the change
	// itself are not among them.
	Commits []report.CommitInfo `json:"commits"`
	// Unknown is set where the history does not reach back to what the cluster runs,
	// as in a shallow clone.
	Unknown bool `json:"unknown,omitempty"`
}

// ReleaseSince is the beginning of a hold: the commit, if it is known, and the note.
type ReleaseSince struct {
	Commit string     `json:"commit,omitempty"`
	Date   *time.Time `json:"date,omitempty"`
	Days   int        `json:"days"`
	fleetv1alpha1.Hold
}

// lifted is a hold of a policy on a cluster.
type lifted struct {
	policy  fleet.PolicyRef
	cluster string
}

// AddReleases tells what each lifted hold lets out: the history since the commit that its
// cluster runs is folded again for that.
func (r *Plan) AddReleases(states *history.States, base *propagate.State, cells []propagate.Cell, now time.Time) error {
	r.Releases = []Release{}
	var released []*propagate.Cell
	for i := range cells {
		if cells[i].Disposition == propagate.Released {
			released = append(released, &cells[i])
		}
	}
	if released == nil {
		return nil
	}

	back, err := states.Backlog(base, works(released))
	if err != nil {
		return err
	}
	of := map[lifted]*Release{}
	for _, c := range released {
		hold := lifted{c.Policy, c.Cluster}
		if of[hold] == nil {
			of[hold] = &Release{Policy: c.Policy.Name, Cluster: c.Cluster, Since: since(base, hold), Commits: []report.CommitInfo{}, Unknown: back == nil}
		}
		of[hold].add(c, back, now)
		if back != nil && c.Runs != nil && slices.Contains(r.differ[c.Object], c.Cluster) {
			of[hold].carries(back.Missed(c.Object, c.Cluster, c.Runs.Revision))
		}
	}
	for _, release := range of {
		slices.SortStableFunc(release.Commits, func(a, b report.CommitInfo) int { return back.Order(a.Commit) - back.Order(b.Commit) })
		r.Releases = append(r.Releases, *release)
	}
	slices.SortFunc(r.Releases, func(a, b Release) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Cluster, b.Cluster))
	})
	return nil
}

// works are the commits whose content released cells run, by object.
func works(cells []*propagate.Cell) map[object.ID][]string {
	runs := map[object.ID][]string{}
	for _, c := range cells {
		revision := ""
		if c.Runs != nil {
			revision = c.Runs.Revision
		}
		if !slices.Contains(runs[c.Object], revision) {
			runs[c.Object] = append(runs[c.Object], revision)
		}
	}
	return runs
}

// since is what the policy noted of a hold before the change.
func since(base *propagate.State, hold lifted) (s ReleaseSince) {
	if base.Snapshot == nil {
		return s
	}
	if p, ok := base.Snapshot.Policies.Get(hold.policy.Key()); ok {
		s.Hold, _ = p.Note(hold.cluster)
	}
	return s
}

func (r *Release) add(c *propagate.Cell, back *history.Backlog, now time.Time) {
	r.Objects = append(r.Objects, report.Object{APIVersion: c.APIVersion, Kind: c.Object.Kind, Namespace: c.Object.Namespace, Name: c.Object.Name})
	if back == nil {
		return
	}

	waiting, held := back.Of(c.Object, c.Cluster)
	r.carries(waiting)
	if held != nil && (r.Since.Date == nil || held.When.Before(*r.Since.Date)) {
		when := held.When
		r.Since.Commit, r.Since.Date, r.Since.Days = held.Hash, &when, int(now.Sub(when).Hours()/24)
	}
}

// carries adds commits that are let out.
func (r *Release) carries(commits []*source.Commit) {
	for _, commit := range commits {
		if !slices.ContainsFunc(r.Commits, func(known report.CommitInfo) bool { return known.Commit == commit.Hash }) {
			r.Commits = append(r.Commits, *report.NewCommitInfo(commit))
		}
	}
}
