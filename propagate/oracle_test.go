// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/oracle"
)

// Two accounts of the fold, this one and a slow one written from the rules
// alone, agree on every commit of random histories. A history on which they do
// not shrinks and is printed as a story for testdata, with both states.
func TestOracle(t *testing.T) {
	moreChecks(t, 2000)
	var model oracle.Reader
	rapid.Check(t, func(t *rapid.T) {
		h := &wildHistory{t: t, docs: map[string]wildDoc{}, emptied: map[string]bool{}}
		h.grow()
		var s, kept propagate.State
		restarts := h.chance("restarts", 15)
		snapshots := map[string]*fleet.Snapshot{}
		remember := !h.chance("fresh documents", 10)
		m := &oracle.State{}
		var allow []propagate.Trailer // what the last held commit asked for
		var allows []string
		var previous propagate.Commit
		now := int64(0)
		var previousFiles map[string]string
		for n := range rapid.SampledFrom([]int{4, 5, 6, 7, 8, 9, 10, 11, 12}).Draw(t, "commits") {
			now += h.minutes() * 60
			c := propagate.Commit{Hash: fmt.Sprintf("c%d", n+1), Time: now}
			var files map[string]string
			switch h.commitKind(n) {
			case "broken":
				c.Problems = []fleet.Problem{{Message: "broken"}}
			case "README only":
				c.Snapshot, c.Problems = previous.Snapshot, previous.Problems
				files = previousFiles
			default:
				for range rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3, 5}).Draw(t, "edits") {
					h.edit()
				}
				files = h.tree()
				c.Snapshot, c.Problems = snapshot(files, remember)
			}
			var modelAllows []string
			if allow != nil && h.chance("trailer", 60) {
				c.Trailers, modelAllows = allow, allows
			}
			next := propagate.Step(s, c)
			nextModel := model.Step(m, oracle.Commit{Hash: c.Hash, Time: c.Time, Files: files, Allows: modelAllows})
			if next.Refusal != nil && next.Refusal.Guard != nil {
				allow = []propagate.Trailer{trailerOf(next.Refusal.Guard)}
				allows = []string{nextModel.Deletes}
				if h.chance("with its trailer", 50) {
					c.Trailers, modelAllows = allow, allows
					next = propagate.Step(s, c)
					nextModel = model.Step(m, oracle.Commit{Hash: c.Hash, Time: c.Time, Files: files, Allows: modelAllows})
				}
			}
			h.tell(&c, files)
			if got, want := engineView(&next), modelView(nextModel); got != want {
				t.Fatalf("%s: the engine and the oracle disagree\n%s\n--- engine\n%s--- oracle\n%s--- difference\n%s", c.Hash, h.story(), got, want, differing(got, want))
			}
			if restarts {
				snapshots[c.Hash] = c.Snapshot
				kept = propagate.Step(kept, c)
				if a, b := restorable(&kept), restorable(&next); a != b {
					t.Fatalf("%s: a restored state goes on in another way\n%s\n--- restored\n%s--- kept\n%s", c.Hash, h.story(), a, b)
				}
				kept = restore(h, &kept, snapshots)
				saved := save(h, &next)
				saved.Rehydrated = true
				revealed := load(h, saved, &next, snapshots)
				if a, b := engineView(&revealed), engineView(&next); a != b {
					t.Fatalf("%s: what is made again is something else\n%s\n--- made again\n%s--- kept\n%s", c.Hash, h.story(), a, b)
				}
			}
			s, m, previous, previousFiles = next, nextModel, c, files
		}
	})
}

// restorable is a state without the rules that made what held works run, which
// no checkpoint has.
func restorable(s *propagate.State) string {
	var b strings.Builder
	for line := range strings.Lines(print(s, nil)) {
		if strings.Contains(line, ", held") {
			line = madeBy.ReplaceAllString(line, "")
		}
		b.WriteString(line)
	}
	return b.String()
}

var madeBy = regexp.MustCompile(`, (Cluster)?OverridePolicy [a-z/]+`)

// moreChecks runs a check more often than rapid does by itself, unless a flag
// says how often.
func moreChecks(t *testing.T, n int) {
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if testing.Short() {
		n /= 10
	}
	was := f.Value.String()
	if err := f.Value.Set(fmt.Sprint(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(was) })
}

func (h *wildHistory) commitKind(n int) string {
	if n == 0 {
		return "edits"
	}
	return h.pick("commit", []string{"edits", "edits", "edits", "edits", "edits", "edits", "edits", "edits", "edits", "edits", "edits", "edits", "broken", "README only"})
}

func trailerOf(g *propagate.Guard) propagate.Trailer {
	key, value, _ := strings.Cut(g.Trailer(), ": ")
	return propagate.Trailer{Key: key, Value: value}
}

// snapshot reads a tree. With a memory documents that do not change are the
// same ones in every commit, as package render has it.
func snapshot(tree map[string]string, remember bool) (*fleet.Snapshot, []fleet.Problem) {
	if !remember {
		return read(tree)
	}
	if len(readFiles) > 10000 {
		clear(readFiles)
	}
	s := &fleet.Snapshot{}
	var problems []fleet.Problem
	for _, file := range slices.Sorted(maps.Keys(tree)) {
		key := [2]string{file, tree[file]}
		part, ok := readFiles[key]
		if !ok {
			part.snapshot, part.problems = read(map[string]string{file: tree[file]})
			readFiles[key] = part
		}
		problems = append(problems, part.problems...)
		if part.snapshot == nil {
			continue
		}
		p := part.snapshot
		if p.Settings != nil {
			s.Settings = p.Settings
		}
		for k, v := range p.Clusters.All() {
			s.Clusters = s.Clusters.With(k, v)
		}
		for k, v := range p.Policies.All() {
			s.Policies = s.Policies.With(k, v)
		}
		for k, v := range p.Overrides.All() {
			s.Overrides = s.Overrides.With(k, v)
		}
		for k, v := range p.Templates.All() {
			s.Templates = s.Templates.With(k, v)
		}
		for k, v := range p.Units.All() {
			s.Units = s.Units.With(k, v)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return s, nil
}

type readFile struct {
	snapshot *fleet.Snapshot
	problems []fleet.Problem
}

var readFiles = map[[2]string]readFile{}

// engineView tells of a state what the rules decide, and nothing of how it is
// kept.
func engineView(s *propagate.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "accepted %q", s.Accepted)
	switch {
	case s.Refusal == nil:
	case s.Refusal.Guard != nil:
		b.WriteString(" held")
	default:
		b.WriteString(" refused")
	}
	b.WriteString("\n")
	for binding := range s.Bindings.Values() {
		engineBinding(&b, s, binding)
	}
	for a := range s.Tombstones.Values() {
		for _, g := range a.Clusters {
			fmt.Fprintf(&b, "%s departed from %s since %s, preserved %v, after %v, used by %v, of %v\n", a.Key(), g.Cluster, g.Commit, g.Preserve, g.Successors, keysOf(g.Users), keysOf(g.Owners))
		}
	}
	for a := range s.Detached.Values() {
		for _, g := range a.Clusters {
			fmt.Fprintf(&b, "%s left with %s since %s, after %v\n", a.Key(), g.Cluster, g.Commit, g.Successors)
		}
	}
	return b.String()
}

func engineBinding(b *strings.Builder, s *propagate.State, binding *propagate.Binding) {
	view := s.ResourceBinding(binding)
	active, own := view.Annotations[propagate.AnnotationActivePolicy]
	if binding.Claim == nil && !own && len(binding.Works) == 0 {
		return
	}
	b.WriteString(binding.Key())
	_, inGit := s.Snapshot.Templates.Get(binding.Key())
	if !inGit {
		b.WriteString(": not in git")
	} else {
		claim := "nobody"
		if binding.Claim != nil {
			claim = binding.Claim.Key()
		}
		fmt.Fprintf(b, ": claimed by %s, template of %s", claim, binding.Active.TemplateCommit)
		if own {
			_, commit, _ := strings.Cut(active, "@")
			fmt.Fprintf(b, ", policy %s of %s", binding.Active.Policy.Ref.Key(), commit)
			var targets []string
			for _, t := range binding.Targets {
				targets = append(targets, fmt.Sprintf("%s=%d", t.Name, t.Count))
			}
			fmt.Fprintf(b, ", targets %v %s", targets, binding.Scheduled.Reason)
		}
		if own || len(binding.Works) == 0 {
			all, on := false, []string{}
			if sus := binding.Immediate.Suspension; sus != nil {
				all = sus.Dispatching != nil && *sus.Dispatching
				if sus.DispatchingOnClusters != nil {
					on = slices.Sorted(slices.Values(sus.DispatchingOnClusters.ClusterNames))
				}
			}
			writeBrakes(b, all, on, binding.Immediate.Preserve != nil && *binding.Immediate.Preserve)
		}
		if p := binding.Pending; p != nil {
			fmt.Fprintf(b, ", %s since %s", p.Reason, p.Since)
		}
	}
	b.WriteString("\n")
	content := func(c *propagate.Content) string {
		if c == nil {
			return "nothing"
		}
		text, err := json.Marshal(unmarked(s.Manifest(binding.ID, c)))
		if err != nil {
			panic(err)
		}
		return c.Revision + " " + string(text)
	}
	for i := range binding.Works {
		w := &binding.Works[i]
		fmt.Fprintf(b, "  %s", w.Cluster)
		if w.Preserve {
			b.WriteString(" preserve")
		}
		if w.Blocked != "" {
			b.WriteString(" blocked")
		} else {
			if inGit && binding.Overwrites(w.Want) {
				b.WriteString(" overwrite")
			}
			fmt.Fprintf(b, " %s", content(w.Want))
		}
		if w.Held {
			b.WriteString(" held")
		}
		if w.Held || w.Blocked != "" {
			fmt.Fprintf(b, ", runs %s", content(w.Released))
		}
		if len(w.After) > 0 {
			fmt.Fprintf(b, ", after %v", w.After)
		}
		b.WriteString("\n")
	}
}

func writeBrakes(b *strings.Builder, all bool, on []string, preserve bool) {
	if all {
		b.WriteString(", suspended")
	} else if len(on) > 0 {
		fmt.Fprintf(b, ", suspended on %v", on)
	}
	if preserve {
		b.WriteString(", preserve")
	}
}

// modelView is the same of the other account.
func modelView(m *oracle.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "accepted %q", m.Accepted)
	if m.Verdict != "" {
		b.WriteString(" " + m.Verdict)
	}
	b.WriteString("\n")
	for _, key := range slices.Sorted(maps.Keys(m.Bindings)) {
		modelBinding(&b, key, m.Bindings[key])
	}
	for _, key := range slices.Sorted(maps.Keys(m.Departed)) {
		for _, c := range slices.Sorted(maps.Keys(m.Departed[key])) {
			g := m.Departed[key][c]
			fmt.Fprintf(&b, "%s departed from %s since %s, preserved %v, after %v, used by %v, of %v\n", key, c, g.Since, g.Preserve, g.Heirs, g.Users, g.Owners)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Left)) {
		for _, c := range slices.Sorted(maps.Keys(m.Left[key])) {
			fmt.Fprintf(&b, "%s left with %s since %s, after %v\n", key, c, m.Left[key][c].Since, m.Left[key][c].Heirs)
		}
	}
	return b.String()
}

func modelBinding(b *strings.Builder, key string, binding *oracle.Binding) {
	if binding.Claim == "" && !binding.Own && len(binding.Works) == 0 {
		return
	}
	b.WriteString(key)
	if binding.Removed {
		b.WriteString(": not in git")
	} else {
		claim := "nobody"
		if binding.Claim != "" {
			claim = binding.Claim
		}
		fmt.Fprintf(b, ": claimed by %s, template of %s", claim, binding.TemplateCommit)
		if binding.Own {
			var targets []string
			for _, c := range slices.Sorted(maps.Keys(binding.Targets)) {
				targets = append(targets, fmt.Sprintf("%s=%d", c, binding.Targets[c]))
			}
			fmt.Fprintf(b, ", policy %s of %s, targets %v %s", binding.Policy, binding.PolicyCommit, targets, binding.Scheduled)
		}
		if binding.Own || len(binding.Works) == 0 {
			writeBrakes(b, binding.Brakes.All, binding.Brakes.On, binding.Brakes.Preserve)
		}
		if binding.Reason != "" {
			fmt.Fprintf(b, ", %s since %s", binding.Reason, binding.Since)
		}
	}
	b.WriteString("\n")
	content := func(c *oracle.Content) string {
		if c == nil {
			return "nothing"
		}
		return c.Revision + " " + c.Manifest
	}
	for _, c := range slices.Sorted(maps.Keys(binding.Works)) {
		w := binding.Works[c]
		fmt.Fprintf(b, "  %s", c)
		if w.Preserve {
			b.WriteString(" preserve")
		}
		if w.Blocked {
			b.WriteString(" blocked")
		} else {
			if w.Overwrite && !binding.Removed {
				b.WriteString(" overwrite")
			}
			fmt.Fprintf(b, " %s", content(w.Want))
		}
		if w.Held {
			b.WriteString(" held")
		}
		if w.Held || w.Blocked {
			fmt.Fprintf(b, ", runs %s", content(w.Released))
		}
		if len(w.After) > 0 {
			fmt.Fprintf(b, ", after %v", w.After)
		}
		b.WriteString("\n")
	}
}

// differing are the lines that only one of two texts has.
func differing(got, want string) string {
	var b strings.Builder
	only := func(sign, text, other string) {
		lines := strings.Split(other, "\n")
		for line := range strings.Lines(text) {
			if !slices.Contains(lines, strings.TrimSuffix(line, "\n")) {
				b.WriteString(sign + line)
			}
		}
	}
	only("engine ", got, want)
	only("oracle ", want, got)
	return b.String()
}

func keysOf(ids []object.ID) (keys []string) {
	for _, id := range ids {
		keys = append(keys, id.Key())
	}
	return keys
}
