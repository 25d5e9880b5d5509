// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// timelinePage is what each commit did, the newest first.
func (s *Server) timelinePage(q *request) error {
	f, err := q.timelineFilter()
	if err != nil {
		return err
	}
	b := &timelineBody{links: q.links, Cluster: f.cluster, Template: f.template, PullRequest: f.number, Chosen: f.chosen(), Whole: q.Page("/timeline")}
	commits := q.line.log.Commits()
	from := q.place
	if f.before >= 0 {
		from = min(from, f.before-1)
	}
	read := 0
	for place := from; place >= 0; place-- {
		if err := q.Context().Err(); err != nil {
			return err
		}
		if len(b.Commits) == commitsPerPage {
			b.Older = q.again("before", commits[place+1].Hash[:12])
			break
		}
		if read++; read > maxCommitsRead {
			b.Older, b.Stopped = q.again("before", commits[place+1].Hash[:12]), read-1
			break
		}
		if e := q.timelineEntry(f, commits[place]); e != nil {
			b.Commits = append(b.Commits, e)
		}
	}
	q.answer(200, "timeline", "Timeline", b)
	return nil
}

const (
	// commitsPerPage is how many commits the timeline has on a page.
	commitsPerPage = 40
	// maxCommitsRead is how many commits are searched for one page.
	maxCommitsRead = 20_000
)

type timelineBody struct {
	links
	Cluster, Template, Whole string
	PullRequest              int
	Chosen                   bool
	Commits                  []*timelineEntry
	Older                    string
	Stopped                  int // how many commits were searched, if not all were
}

// timelineEntry is what one commit did.
type timelineEntry struct {
	*commitText
	Verdict     string
	Problems    []string
	Summary     string
	Changes     []timelineChange
	More        int
	PullRequest string
	Number      int
}

// timelineChange is what a commit did alike on some clusters.
type timelineChange struct {
	What, Class, Name, Address, Text, Because string
	Clusters                                  []string
}

// timelineFilter is what a visitor wants to see of the timeline.
type timelineFilter struct {
	cluster, template string
	number            int // of a pull request; 0 is none
	before            int // the place of a commit; -1 is none
	objects           map[object.ID]bool
}

func (f timelineFilter) chosen() bool { return f.cluster != "" || f.template != "" || f.number > 0 }

func (q *request) timelineFilter() (f timelineFilter, err error) {
	if f.cluster, err = q.one("cluster"); err != nil {
		return f, err
	}
	if f.template, err = q.one("template"); err != nil {
		return f, err
	}
	if f.number, err = q.number("pr", 0, 1_000_000_000); err != nil {
		return f, err
	}
	before, err := q.one("before")
	if err != nil {
		return f, err
	}
	f.before = -1
	if before != "" {
		hash, err := q.commitOf("before", before)
		if err != nil {
			return f, err
		}
		_, place, ok := q.line.log.Commit(hash)
		if !ok {
			return f, unknown("before=%s is not a commit of %s", before, q.line.branch)
		}
		f.before = place
	}
	if f.template == "" {
		return f, nil
	}

	r, err := object.ParseReference([]string{f.template}, "")
	if err != nil {
		return f, malformed("template=%v", err)
	}
	f.objects = map[object.ID]bool{}
	for _, id := range q.find(r, func(id object.ID) bool { return r.Namespace == "" || r.Namespace == id.Namespace }) {
		f.objects[id] = true
	}
	if len(f.objects) == 0 {
		return f, unknown("template=%s is not a template of the fleet, and never was", f.template)
	}
	return f, nil
}

// numbers are the pull requests that subjects name: (#7), or those of a forge's merges.
var numbers = regexp.MustCompile(`\(#(\d{1,9})\)|^Merge pull request #(\d{1,9})|See merge request \S*!(\d{1,9})|\(!(\d{1,9})\)`)

// pullRequestOf is the number of the pull request that a subject names; 0 if none.
func pullRequestOf(subject string) (n int) {
	for _, text := range numbers.FindStringSubmatch(subject) {
		if _, err := fmt.Sscanf(text, "%d", &n); err == nil {
			return n
		}
	}
	return 0
}

// mostChanges is how many changes of a commit the timeline shows.
const mostChanges = 12

// timelineEntry is a commit as the timeline shows it; nil if the filter leaves it out.
func (q *request) timelineEntry(f timelineFilter, c *history.LogCommit) *timelineEntry {
	number := pullRequestOf(c.Subject)
	if f.number > 0 && number != f.number {
		return nil
	}
	e := &timelineEntry{commitText: q.server.commitText(q.links, c), Number: number, PullRequest: q.server.options.Fleet.Forge.PullRequest(number)}
	if c.Verdict != history.Accepted {
		e.Verdict = strings.ReplaceAll(string(c.Verdict), "-", " ")
		for _, p := range c.Problems {
			e.Problems = append(e.Problems, p.Error())
		}
		e.Problems = e.Problems[:min(len(e.Problems), mostAlike)]
	}
	counts := map[propagate.ChangeType]int{}
	for _, change := range q.line.log.Alike(c.Hash) {
		if f.objects != nil && !f.objects[change.Object] || f.cluster != "" && change.Clusters != nil && !change.On(f.cluster) || f.cluster != "" && change.Clusters == nil {
			continue
		}
		counts[change.Type] += max(len(change.Clusters), 1)
		if len(e.Changes) == mostChanges {
			e.More++
			continue
		}
		t := timelineChange{What: string(change.Type), Class: classOf(change.Type), Name: titleOf(change.Object), Address: q.Template(change.Object, ""), Text: change.Text, Clusters: change.Clusters}
		if len(change.Because) > 0 {
			t.Because = change.Because[0].Code + " " + change.Because[0].String()
		}
		e.Changes = append(e.Changes, t)
	}
	if f.cluster == "" && f.objects == nil {
		for _, name := range c.Joined {
			e.Changes = append([]timelineChange{{What: "joined", Name: "Cluster " + name, Address: q.Cluster(name)}}, e.Changes...)
			if len(e.Changes) > mostChanges {
				e.Changes, e.More = e.Changes[:mostChanges], e.More+1
			}
		}
	}
	if f.cluster != "" || f.objects != nil {
		if len(e.Changes) == 0 {
			return nil
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if e.Summary != "" {
			e.Summary += ", "
		}
		e.Summary += fmt.Sprintf("%d %s", counts[what], what)
	}
	return e
}

// classOf is the class of a change in the style sheet.
func classOf(t propagate.ChangeType) string {
	switch t {
	case propagate.ChangeHeld, propagate.ChangeSuspended, propagate.ChangeEvicted:
		return markHeld.Class()
	case propagate.ChangeBlocked, propagate.ChangeDeleted, propagate.ChangeUnscheduled, propagate.ChangeUnmatched:
		return markFailed.Class()
	case propagate.ChangeDeferred:
		return markDeferred.Class()
	}
	return markCurrent.Class()
}
