// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"strings"

	"github.com/fairlead/fairlead/source"
)

// Revision is a commit, and the branch or other ref that it was named by.
type Revision struct {
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit"`
}

// Merge is how the change lands on the base.
type Merge struct {
	// Commit has what was planned: the head, if nothing else is to be merged.
	Commit string `json:"commit,omitempty"`
	// Brings is the tip of the change if Commit is a merge commit, as a forge makes one
	// to test it.
	Brings string `json:"brings,omitempty"`
	// Tree is what was planned if no commit has it: git's hash of the fleet's directory,
	// merged in memory.
	Tree string `json:"tree,omitempty"`
	// Each is set if the commits land one by one, as after a rebase.
	Each bool `json:"each,omitempty"`
}

// result is how the change was planned; nil if it was not, or if there is nothing to
// merge.
func (l *landing) result() *Merge {
	m := l.merge
	switch {
	case l.unplanned != nil || len(m.Commits) == 0:
		return nil
	case l.request.Each:
		return &Merge{Each: true}
	case m.Tree != nil:
		return &Merge{Tree: m.Tree.Hash()}
	case m.Test:
		return &Merge{Commit: m.Head.Hash, Brings: m.Commits[0].Hash}
	}
	return &Merge{Commit: m.Head.Hash}
}

// refOf is the ref that a revision names, "" for a hash or a commit below a ref.
func refOf(repo *source.Repo, rev, commit string) string {
	switch {
	case rev == "":
		rev, _ = repo.DefaultBranch() // it was resolved, so there is one
	case rev == "HEAD" || rev == "@":
		return repo.HeadBranch()
	case strings.ContainsAny(rev, "~^") || strings.HasPrefix(commit, strings.ToLower(rev)):
		return ""
	}
	return rev
}

func (r Revision) name() string { return cmp.Or(r.Ref, source.Short(r.Commit)) }

func (r Revision) text() string {
	if r.Ref == "" {
		return source.Short(r.Commit)
	}
	return r.Ref + " " + source.Short(r.Commit)
}

// title reads "main d1834c5 -> bump d086e73, merged as one commit".
func (r *Plan) title() string {
	title := r.Base.text() + " -> " + r.Head.text()
	switch m := r.Merge; {
	case m == nil:
		return title
	case m.Each:
		return title + ", commit by commit"
	case m.Brings != "":
		return title + ", which merges " + source.Short(m.Brings)
	}
	return title + ", merged as one commit"
}
