// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"

	"github.com/fairlead/fairlead/propagate/ordered"
	"github.com/fairlead/fairlead/propagate/schedule"
)

// The records are a State as a checkpoint keeps it: digests and commits, and
// never a manifest, which could hold a secret. Restore puts the contents back
// from snapshots of those commits.

// BindingRecord is a Binding on disk.
type BindingRecord struct {
	Claim          *PolicyRef       `json:"claim,omitempty"`
	Template       Digest           `json:"template"`
	TemplateCommit string           `json:"templateCommit"`
	Policy         PolicyRef        `json:"policy"`
	Delayed        Digest           `json:"delayed"`
	PolicyCommit   string           `json:"policyCommit"`
	Pending        *Pending         `json:"pending,omitempty"`
	Unmatched      bool             `json:"unmatched,omitempty"`
	Brakes         *Brakes          `json:"brakes"`
	Targets        []schedule.Share `json:"targets,omitempty"`
	Requires       []ID             `json:"requires,omitempty"`
	Selects        []ID             `json:"selects,omitempty"`
	AffinityName   string           `json:"affinityName,omitempty"`
	Placed         Digest           `json:"placed,omitzero"`
	Observed       bool             `json:"observed,omitempty"`
	Evictions      []Eviction       `json:"evictions,omitempty"`
	Scheduled      Scheduled        `json:"scheduled"`
	Contents       []ContentRecord  `json:"contents,omitempty"` // shared by the works
	Works          []WorkRecord     `json:"works,omitempty"`
}

// ContentRecord is a Content on disk.
type ContentRecord struct {
	Digest      Digest `json:"digest"`
	Replicas    int64  `json:"replicas,omitempty"`
	Completions int64  `json:"completions"`
	APIVersion  string `json:"apiVersion"`
	Commit      string `json:"commit"`
	Revision    string `json:"revision"`
	Requires    []ID   `json:"requires,omitempty"`
}

// WorkRecord is a Work on disk; Want and Released count into Contents, -1 is
// none.
type WorkRecord struct {
	Cluster  string `json:"cluster"`
	Want     int    `json:"want"`
	Released int    `json:"released"`
	Held     bool   `json:"held,omitempty"`
	Preserve bool   `json:"preserve,omitempty"`
	Blocked  string `json:"blocked,omitempty"`
}

// AbsenceRecord is an Absence on disk.
type AbsenceRecord struct {
	APIVersion string       `json:"apiVersion"`
	Clusters   []GoneRecord `json:"clusters"`
}

// GoneRecord is a Gone on disk.
type GoneRecord struct {
	Cluster  string        `json:"cluster"`
	Preserve bool          `json:"preserve,omitempty"`
	Commit   string        `json:"commit"`
	Released ContentRecord `json:"released"`
}

// Record is b as it is kept.
func (b *Binding) Record() BindingRecord {
	r := BindingRecord{
		Claim:          b.Claim,
		Template:       b.Active.Template.Digest,
		TemplateCommit: b.Active.TemplateCommit,
		Policy:         b.Active.Policy.Ref,
		Delayed:        b.Active.Policy.Delayed,
		PolicyCommit:   b.Active.PolicyCommit,
		Pending:        b.Pending,
		Unmatched:      b.Unmatched,
		Brakes:         b.Brakes,
		Targets:        b.Targets,
		Requires:       b.Requires,
		Selects:        b.Selects,
		AffinityName:   b.AffinityName,
		Placed:         b.Placed,
		Observed:       b.Observed,
		Evictions:      b.Evictions,
		Scheduled:      b.Scheduled,
	}
	at := map[*Content]int{}
	place := func(c *Content) int {
		if c == nil {
			return -1
		}
		i, ok := at[c]
		if !ok {
			i, at[c] = len(r.Contents), len(r.Contents)
			r.Contents = append(r.Contents, c.record())
		}
		return i
	}
	for _, w := range b.Works {
		r.Works = append(r.Works, WorkRecord{w.Cluster, place(w.Want), place(w.Released), w.Held, w.Preserve, w.Blocked})
	}
	return r
}

func (c *Content) record() ContentRecord {
	return ContentRecord{c.Digest, c.Replicas, c.Completions, c.APIVersion, c.TemplateCommit, c.Revision, c.Requires}
}

func (r ContentRecord) content() *Content {
	return &Content{Digest: r.Digest, Replicas: r.Replicas, Completions: r.Completions, APIVersion: r.APIVersion, TemplateCommit: r.Commit, Revision: r.Revision, Requires: r.Requires}
}

// Record is a as it is kept.
func (a *Absence) Record() AbsenceRecord {
	r := AbsenceRecord{APIVersion: a.APIVersion}
	for _, g := range a.Clusters {
		r.Clusters = append(r.Clusters, GoneRecord{g.Cluster, g.Preserve, g.Commit, g.Released.record()})
	}
	return r
}

func (r AbsenceRecord) absence(id ID) *Absence {
	a := &Absence{ID: id, APIVersion: r.APIVersion}
	for _, g := range r.Clusters {
		a.Clusters = append(a.Clusters, Gone{g.Cluster, g.Preserve, g.Commit, g.Released.content()})
	}
	return a
}

// Saved is a whole State as it is kept.
type Saved struct {
	Commit, Accepted string
	Refusal          *Refusal
	Bindings         map[ID]BindingRecord
	Departed, Left   map[ID]AbsenceRecord
	Seen             *Seen
}

// Needs are the commits, other than the accepted one, whose snapshots Restore
// asks for: those that hold what is active but not in git any more.
func (s *Saved) Needs(accepted *Snapshot) []string {
	seen := map[string]bool{s.Accepted: true}
	var commits []string
	need := func(commit string) {
		if !seen[commit] {
			seen[commit] = true
			commits = append(commits, commit)
		}
	}
	for id, r := range s.Bindings {
		if t := accepted.Templates.At(id.Key()); t == nil || t.Digest != r.Template {
			need(r.TemplateCommit)
		}
		if r.Policy == (PolicyRef{}) {
			continue // attached to others
		}
		if p := accepted.Policies.At(r.Policy.Key()); p == nil || p.Delayed != r.Delayed {
			need(r.PolicyCommit)
		}
	}
	return commits
}

// Restore makes the State again. snapshots are those of the accepted commit
// and of what Needs named.
func (s *Saved) Restore(snapshots map[string]*Snapshot) (State, error) {
	state := State{Commit: s.Commit, Accepted: s.Accepted, Refusal: s.Refusal, Snapshot: snapshots[s.Accepted], Seen: s.Seen}
	if state.Snapshot != nil {
		state.index = newIndex(state.Snapshot)
		state.index.clusters = state.candidates()
	}
	for id, r := range s.Bindings {
		b, err := s.restore(id, r, snapshots, &state)
		if err != nil {
			return State{}, fmt.Errorf("%s: %w", id, err)
		}
		state.Bindings = state.Bindings.With(id.Key(), b)
		state.index.binding(nil, b)
		state.Works += len(b.Works)
		state.Evictions += len(b.Evictions)
	}
	for from, to := range map[*map[ID]AbsenceRecord]*ordered.Map[*Absence]{&s.Departed: &state.Departed, &s.Left: &state.Left} {
		for id, r := range *from {
			*to = to.With(id.Key(), r.absence(id))
		}
	}
	return state, nil
}

func (s *Saved) restore(id ID, r BindingRecord, snapshots map[string]*Snapshot, state *State) (*Binding, error) {
	template, err := s.template(id, r, snapshots)
	if err != nil {
		return nil, err
	}
	policy, err := s.policy(r, snapshots)
	if err != nil {
		return nil, err
	}
	b := &Binding{
		ID: id, Claim: r.Claim, Pending: r.Pending, Unmatched: r.Unmatched, Brakes: r.Brakes, Targets: r.Targets, Requires: r.Requires, Selects: r.Selects, Scheduled: r.Scheduled,
		AffinityName: r.AffinityName, Placed: r.Placed, Observed: r.Observed, Evictions: r.Evictions,
		Active: &Active{Template: template, TemplateCommit: r.TemplateCommit, Policy: policy, PolicyCommit: r.PolicyCommit},
		Works:  make([]Work, 0, len(r.Works)),
	}
	b.answers = state.index.answer(template, nil)
	contents := make([]*Content, len(r.Contents))
	for i, c := range r.Contents {
		contents[i] = c.content()
	}
	rendering := newRendering(&state.index, template)
	for _, w := range r.Works {
		work := Work{Cluster: w.Cluster, Held: w.Held, Preserve: w.Preserve, Blocked: w.Blocked}
		if w.Want < 0 || w.Want >= len(contents) || w.Released >= len(contents) {
			return nil, fmt.Errorf("work on %s has no content", w.Cluster)
		}
		work.Want = contents[w.Want]
		if cluster := state.Snapshot.Clusters.At(w.Cluster); work.Blocked == "" && cluster != nil && !b.Evicts(w.Cluster) {
			// Overrides act at once, so those of the accepted commit made it.
			work.Want.Template, work.Want.reviser = template, rendering.reviser
			if _, work.Want.Rules, err = rendering.render(template, work.Want.share(), cluster); err != nil {
				return nil, err
			}
			work.Want.Conflict = conflictOf(work.Want.object())
		}
		if w.Released >= 0 {
			work.Released = contents[w.Released]
		}
		b.Works = append(b.Works, work)
	}
	return b, nil
}

func (s *Saved) template(id ID, r BindingRecord, snapshots map[string]*Snapshot) (*Template, error) {
	for _, commit := range []string{s.Accepted, r.TemplateCommit} {
		if snapshot := snapshots[commit]; snapshot != nil {
			if t := snapshot.Templates.At(id.Key()); t != nil && t.Digest == r.Template {
				return t, nil
			}
		}
	}
	return nil, fmt.Errorf("commit %s does not hold the template with digest %s", short(r.TemplateCommit), r.Template)
}

func (s *Saved) policy(r BindingRecord, snapshots map[string]*Snapshot) (*Policy, error) {
	if r.Policy == (PolicyRef{}) {
		if r.Delayed == attachedOverwrite.Delayed {
			return attachedOverwrite, nil
		}
		return attachedAbort, nil
	}
	for _, commit := range []string{s.Accepted, r.PolicyCommit} {
		if snapshot := snapshots[commit]; snapshot != nil {
			if p := snapshot.Policies.At(r.Policy.Key()); p != nil && p.Delayed == r.Delayed {
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("commit %s does not hold %s as it was active", short(r.PolicyCommit), r.Policy)
}
