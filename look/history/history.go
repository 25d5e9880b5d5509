// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/render"
	"github.com/fairlead/fairlead/source"
)

// TrailerBegin marks the commit that the fold begins at (fold rule 1).
const TrailerBegin = "Fairlead-Begin"

// History folds the commits of a repository, for the fleet in one directory.
type History struct {
	repo     *source.Repo
	path     string
	renderer *render.Renderer

	// Gates are feature gates that override the fleet's own.
	Gates map[string]bool
	// Renders counts the units that were rendered.
	Renders int
	// Progress shows how far a fold is; nil shows nothing.
	Progress *Progress
	// Stop is asked before each commit; its error ends the fold. Nil never does.
	Stop func() error
	// Observe takes in what was observed of the members after a commit, before the next one
	// is folded. Nil takes in nothing.
	Observe func(propagate.State) propagate.State

	accepted reading // of the last state's accepted commit
	last     reading // the last one, on top of accepted
	like     *Known  // see Like
}

// reading is the result of rendering one tree.
type reading struct {
	tree     *source.Tree // nil before the first
	build    *render.Build
	snapshot *fleet.Snapshot // the build's, with History.Gates
	problems []fleet.Problem
	on       *render.Build // that it was read on top of
	tried    *render.Tried // what the next one on top of the same continues from, or nil
	spent    int           // at most, to compare it with the tree of on
}

// New returns the history of the fleet at path in repo; "." is the root.
func New(repo *source.Repo, path string) *History {
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

// Has reports whether a commit is in the repository.
func (h *History) Has(commit string) bool { return h.repo.Has(commit) }

// Begins reports whether one of the commits has the trailer that begins the fold.
func Begins(commits []*source.Commit) bool { return slices.ContainsFunc(commits, begins) }

func begins(c *source.Commit) bool {
	return slices.Contains(c.Trailers, source.Trailer{Key: TrailerBegin, Value: "true"})
}

// Fold folds commits onto state, and calls each, if it is not nil, after every
// step. An error of each ends the fold. Of what later ones of them skip nothing is
// read.
func (h *History) Fold(state propagate.State, commits []*source.Commit, each func(*source.Commit, propagate.State) error) (propagate.State, error) {
	h.Progress.Begin()
	defer h.Progress.End()

	skipped := skipped(commits)
	for i, c := range commits {
		h.Progress.Folded(i, len(commits))
		if h.Stop != nil {
			if err := h.Stop(); err != nil {
				return state, err
			}
		}
		in, err := h.input(c, &state, skipped)
		if err != nil {
			return state, err
		}
		state = h.intern(state, propagate.Step(state, in))
		if h.Observe != nil {
			state = h.Observe(state)
		}
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

// unread is what a commit says without its tree.
func (h *History) unread(c *source.Commit, on *propagate.State) (in propagate.Commit, err error) {
	in = propagate.Commit{Hash: c.Hash, Time: c.When.Unix(), Trailers: Convert(c.Trailers)}
	if on.Commit == "" || begins(c) {
		in.Derived, in.Formerly, err = h.derived(c.Hash)
	}
	return in, err
}

// Read reads a commit as the input of a step on top of a state. Problems of the
// commit's content are in the result, because every reader finds them; an error is
// a problem of this machine and says nothing about the commit.
//
// If fairlead.yaml has FreezeUnit, the result depends on the last accepted commit
// (fold rule 3): on that of the state, whatever was read, or awaited confirmation,
// since.
func (h *History) Read(c *source.Commit, on *propagate.State) (propagate.Commit, error) {
	tree, err := c.Tree(h.path)
	return h.readTree(c, on, tree, err)
}

// readTree is Read of a commit with another tree, or of one that has none.
func (h *History) readTree(c *source.Commit, on *propagate.State, tree *source.Tree, none error) (propagate.Commit, error) {
	in, err := h.unread(c, on)
	if err != nil {
		return in, err
	}

	if none != nil && !source.IsUnavailable(none) {
		in.Problems = []fleet.Problem{{Message: none.Error()}}
		return in, nil
	}
	if none != nil {
		return in, none
	}
	base, err := h.base(on)
	if err != nil {
		return in, err
	}

	if !h.last.of(tree) || h.last.on != base.build {
		if h.last, err = h.read(tree, base); err != nil {
			return in, fmt.Errorf("commit %s: %w", source.Short(c.Hash), err)
		}
	}
	in.Snapshot, in.Problems = h.last.snapshot, h.last.problems
	return in, nil
}

// Edited is Read of a commit with some files replaced or added, by their paths in
// the fleet's directory.
func (h *History) Edited(c *source.Commit, on *propagate.State, files map[string][]byte) (propagate.Commit, error) {
	in, err := h.Read(c, on)
	if err != nil || in.Snapshot == nil || len(files) == 0 {
		return in, err
	}
	base, err := h.base(on)
	if err != nil {
		return in, err
	}
	r, err := h.render(h.last.tree, files, base)
	if err != nil {
		return in, fmt.Errorf("edit of %s: %w", source.Short(c.Hash), err)
	}

	in.Snapshot, in.Problems = r.snapshot, r.problems
	return in, nil
}

func (r *reading) of(tree *source.Tree) bool { return r.tree != nil && r.tree.Hash() == tree.Hash() }

// base returns the reading of a state's accepted commit. That is the last reading
// if the last commit was accepted.
func (h *History) base(on *propagate.State) (reading, error) {
	switch on.Snapshot {
	case nil:
		return reading{}, nil
	case h.last.snapshot:
		h.accepted = h.last
	case h.accepted.snapshot:
	default:
		r, err := h.restore(on.Accepted, on.Frozen)
		if err != nil {
			return r, err
		}
		r.snapshot = on.Snapshot
		h.accepted = r
	}

	return h.accepted, nil
}

// read reads a tree on top of an accepted one.
func (h *History) read(tree *source.Tree, base reading) (reading, error) {
	if base.of(tree) {
		base.on, base.tried = base.build, nil
		return base, nil
	}
	return h.render(tree, nil, base)
}

// render renders a tree, with edits, on top of an accepted one, so that only
// what differs is rendered.
func (h *History) render(tree *source.Tree, edits map[string][]byte, base reading) (reading, error) {
	r := reading{tree: tree, on: base.build}
	err := h.try(&r, edits, base)
	if err == nil {
		r.build, err = r.tried.Result()
	}
	var problems render.Problems
	switch {
	case tree.Err() != nil:
		// The tree could not be read, so the result of rendering is void.
		return reading{}, tree.Err()
	case errors.As(err, &problems):
		r.problems = problems
	case errors.Is(err, source.ErrTooManyChanges):
		r.problems = []fleet.Problem{{Message: err.Error() + " from those of the last accepted commit"}}
	case err != nil && !source.IsUnavailable(err):
		// What is wrong with the tree is found when it is compared, or when it is read.
		r.problems = []fleet.Problem{{Message: err.Error()}}
	case err != nil:
		return reading{}, err
	default:
		r.snapshot = r.build.Snapshot.WithGates(h.Gates)
		h.Renders += r.build.Renders
	}

	return r, nil
}

// try renders a tree, from the last one if that was read on top of the same.
func (h *History) try(r *reading, edits map[string][]byte, base reading) error {
	fsys := r.tree.With(edits)
	if h.further(r, fsys, edits) {
		return nil
	}
	if base.build == nil {
		r.tried = h.renderer.Try(nil, fsys, nil)
		return nil
	}

	changed, spent, err := source.Compare(base.tree, r.tree)
	if err != nil {
		return err
	}
	r.spent = spent
	r.tried = h.renderer.Try(base.build, fsys, slices.AppendSeq(changed, maps.Keys(edits)))
	return nil
}

// further reports whether it could render a tree from the last one, which makes the same
// of it as the accepted one does (R06).
func (h *History) further(r *reading, fsys fs.FS, edits map[string][]byte) bool {
	if h.last.tried == nil || h.last.on != r.on {
		return false
	}
	changed, spent, err := source.Compare(h.last.tree, r.tree)
	if r.spent = h.last.spent + spent; err != nil || r.spent > source.MaxSpent {
		return false // what is wrong is a matter between it and the accepted one
	}
	r.tried = h.renderer.TryAfter(h.last.tried, fsys, slices.AppendSeq(changed, maps.Keys(edits)))
	return r.tried != nil
}

// Accepted reads an accepted commit, with the units that were frozen then (see
// propagate.State), so that the next commit is read on top of it.
func (h *History) Accepted(hash string, frozen map[string]string) (*fleet.Snapshot, error) {
	r, err := h.restore(hash, frozen)
	if err != nil {
		return nil, err
	}
	h.accepted = r
	return r.snapshot, nil
}

// Users returns what tells, of a file of a state's accepted commit, the units that
// are rendered from it.
func (h *History) Users(on *propagate.State) (func(file string) []string, error) {
	r, err := h.base(on)
	if err != nil || r.build == nil {
		return func(string) []string { return nil }, err
	}
	return r.build.Users, nil
}

func (h *History) restore(hash string, frozen map[string]string) (reading, error) {
	trees := map[string]*source.Tree{}
	tree := func(hash string) (*source.Tree, error) {
		if trees[hash] == nil {
			c, err := h.repo.Commit(hash)
			if err != nil {
				return nil, err
			}
			if trees[hash], err = c.Tree(h.path); err != nil {
				return nil, err
			}
		}
		return trees[hash], nil
	}
	earlier := map[string]fs.FS{}
	for name, commit := range frozen {
		if commit == "" {
			continue // the unit never had content
		}
		t, err := tree(commit)
		if err != nil {
			return reading{}, err
		}
		earlier[name] = t
	}

	t, err := tree(hash)
	if err != nil {
		return reading{}, err
	}

	build, err := h.renderer.Restore(t, earlier)
	for _, t := range trees {
		if t.Err() != nil {
			err = t.Err()
		}
	}

	if err != nil {
		return reading{}, fmt.Errorf("commit %s can no longer be rendered: %w", source.Short(hash), err)
	}

	h.Renders += build.Renders
	return reading{tree: t, build: build, snapshot: build.Snapshot.WithGates(h.Gates)}, nil
}

// Snapshot reads an earlier accepted commit, without a fold. Units that were frozen
// then are not in it.
func (h *History) Snapshot(hash string) (*fleet.Snapshot, error) {
	c, err := h.repo.Commit(hash)
	if err != nil {
		return nil, err
	}
	tree, err := c.Tree(h.path)
	if err != nil {
		return nil, err
	}

	r, err := h.read(tree, h.accepted)
	if err == nil && (r.problems != nil || r.build.Frozen()) {
		// On top of a later commit broken units would keep what they have there.
		r, err = h.read(tree, reading{})
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("commit %s: %w", source.Short(hash), err)
	case r.problems != nil:
		return nil, fmt.Errorf("commit %s can no longer be rendered: %w", source.Short(hash), r.problems[0])
	}

	return r.snapshot, nil
}

// Convert returns a commit's trailers as the fold takes them.
func Convert(trailers []source.Trailer) []propagate.Trailer {
	converted := make([]propagate.Trailer, len(trailers))
	for i, t := range trailers {
		converted[i] = propagate.Trailer(t)
	}
	return converted
}
