// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/render"
	"github.com/fairlead/fairlead/source"
)

// TrailerBegin marks the commit that the fold begins at (fold rule 1).
const TrailerBegin = "Fairlead-Begin"

// History folds the commits of a repository that concern one directory of it.
type History struct {
	repo     *source.Repo
	path     string
	renderer *render.Renderer

	// Gates are feature gates that a look command sets over the fleet's own.
	Gates map[string]bool
	// Renders counts the units that were rendered.
	Renders int

	last reading // of the commit that was read last
	gate struct{ plain, gated *propagate.Snapshot }
	good reading // the last one that could be rendered: the next builds on it
}

// reading is what became of one tree.
type reading struct {
	hash     string // of the tree; "" before the first
	tree     *source.Tree
	build    *render.Build
	problems []propagate.Problem
}

// NewHistory reads repo under path; "." is all of it.
func NewHistory(repo *source.Repo, path string) *History {
	return &History{repo: repo, path: path, renderer: render.New()}
}

// Commits lists the commits to fold up to head, oldest first: those after
// since, or without one from the oldest that carries the trailer
// Fairlead-Begin: true, else from the root.
func (h *History) Commits(since, head string) ([]*source.Commit, error) {
	commits, err := h.repo.History(since, head)
	if err != nil || since != "" {
		return commits, err
	}
	begin := slices.IndexFunc(commits, begins)
	return commits[max(begin, 0):], nil
}

// Begins is whether one of the commits says that the fold begins at it.
func Begins(commits []*source.Commit) bool { return slices.ContainsFunc(commits, begins) }

func begins(c *source.Commit) bool {
	return slices.Contains(c.Trailers, source.Trailer{Key: TrailerBegin, Value: "true"})
}

// Fold folds commits onto state, and calls each (if any) after every step.
func (h *History) Fold(state propagate.State, commits []*source.Commit, each func(*source.Commit, propagate.State) error) (propagate.State, error) {
	for _, c := range commits {
		in, err := h.Read(c, &state)
		if err != nil {
			return state, err
		}
		state = propagate.Step(state, in)
		if each == nil {
			continue
		}
		if err := each(c, state); err != nil {
			return state, err
		}
	}
	return state, nil
}

// At folds the whole history up to head.
func (h *History) At(head string) (propagate.State, error) {
	commits, err := h.Commits("", head)
	if err != nil {
		return propagate.State{}, err
	}
	return h.Fold(propagate.State{}, commits, nil)
}

// Read makes a step's input of a commit that is folded onto a state. What is
// wrong with the commit's content is in the Commit, as it is wrong whoever
// reads it; an error is only of this machine, and nothing may be concluded
// from it.
func (h *History) Read(c *source.Commit, _ *propagate.State) (propagate.Commit, error) {
	in := propagate.Commit{Hash: c.Hash, Trailers: convert(c.Trailers)}
	tree, err := c.Tree(h.path)
	if errors.Is(err, source.ErrNoPath) {
		h.last = reading{}
		in.Problems = []propagate.Problem{{Message: err.Error()}}
		return in, nil
	}
	if err != nil {
		return in, err
	}
	if h.last.hash != tree.Hash() {
		if err := h.render(c, tree); err != nil {
			return in, err
		}
	}
	if h.last.problems != nil {
		in.Problems = h.last.problems
		return in, nil
	}
	in.Snapshot = h.gated(h.last.build.Snapshot)
	return in, nil
}

// Edited makes a step's input of a commit, as Read does, as if files that it
// has, by their paths in the fleet's directory, had other contents.
func (h *History) Edited(c *source.Commit, onto *propagate.State, files map[string][]byte) (propagate.Commit, error) {
	in, err := h.Read(c, onto)
	if err != nil || in.Snapshot == nil || len(files) == 0 {
		return in, err
	}
	build, err := h.renderer.Next(h.last.build, h.last.tree.With(files), slices.Sorted(maps.Keys(files)))
	var problems render.Problems
	switch lost := h.last.tree.Err(); {
	case lost != nil:
		return in, fmt.Errorf("edit of %s: %w", short(c.Hash), lost)
	case errors.As(err, &problems):
		in.Snapshot, in.Problems = nil, problems
	case err != nil:
		return in, fmt.Errorf("edit of %s: %w", short(c.Hash), err)
	default:
		in.Snapshot = h.gated(build.Snapshot)
	}
	return in, nil
}

// gated is a snapshot with the gates of a look command; the same for the same.
func (h *History) gated(s *propagate.Snapshot) *propagate.Snapshot {
	if len(h.Gates) == 0 {
		return s
	}
	if h.gate.plain != s {
		h.gate.plain, h.gate.gated = s, s.WithGates(h.Gates)
	}
	return h.gate.gated
}

// render reads a tree that is not the last one again, on top of the last good
// one, so that only what differs is rendered.
func (h *History) render(c *source.Commit, tree *source.Tree) error {
	build, err := h.build(tree)
	var problems render.Problems
	switch lost := tree.Err(); {
	case lost != nil:
		// What is wrong is this machine's, whatever rendering made of it.
		return fmt.Errorf("commit %s: %w", short(c.Hash), lost)
	case errors.As(err, &problems):
		h.last = reading{hash: tree.Hash(), problems: problems}
		return nil
	case err != nil:
		return fmt.Errorf("commit %s: %w", short(c.Hash), err)
	}
	h.Renders += build.Renders
	h.last = reading{hash: tree.Hash(), tree: tree, build: build}
	h.good = h.last
	return nil
}

func (h *History) build(tree *source.Tree) (*render.Build, error) {
	if h.good.hash == tree.Hash() {
		return h.good.build, nil
	}
	if h.good.build == nil {
		return h.renderer.Render(tree)
	}
	changed, err := source.Changed(h.good.tree, tree)
	if err != nil {
		return nil, err
	}
	return h.renderer.Next(h.good.build, tree, changed)
}

// Snapshot reads one commit by its hash, apart from the line of commits that
// are folded. It must have been accepted once.
func (h *History) Snapshot(hash string) (*propagate.Snapshot, error) {
	c, err := h.repo.Commit(hash)
	if err != nil {
		return nil, err
	}
	in, err := h.Read(c, &propagate.State{})
	if err != nil {
		return nil, err
	}
	if in.Snapshot == nil {
		return nil, fmt.Errorf("commit %s cannot be rendered any more: %w", short(hash), in.Problems[0])
	}
	return in.Snapshot, nil
}

func convert(trailers []source.Trailer) []propagate.Trailer {
	converted := make([]propagate.Trailer, len(trailers))
	for i, t := range trailers {
		converted[i] = propagate.Trailer(t)
	}
	return converted
}

// short is a commit's hash as people write it.
func short(hash string) string { return hash[:min(len(hash), 7)] }
