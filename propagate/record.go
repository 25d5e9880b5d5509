// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"maps"
	"slices"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// The records are a State as a checkpoint keeps it: digests and commits, and
// never a manifest, which could hold a secret. Restore puts the contents back
// from snapshots of those commits.

// BindingRecord is a Binding on disk, with as many fields as that has.
type BindingRecord struct {
	Claim          *fleet.PolicyRef `json:"claim,omitempty"`
	Template       object.Digest    `json:"template"`
	TemplateCommit string           `json:"templateCommit"`
	Policy         fleet.PolicyRef  `json:"policy"`
	Delayed        object.Digest    `json:"delayed"`
	Overwrite      bool             `json:"overwrite,omitempty"` // of what is attached to others
	PolicyCommit   string           `json:"policyCommit"`
	Pending        *Pending         `json:"pending,omitempty"`
	Unmatched      bool             `json:"unmatched,omitempty"`
	Immediate      *fleet.Immediate `json:"brakes"`
	Own            *fleet.Immediate `json:"own,omitempty"`
	Targets        TargetRecords    `json:"targets,omitempty"`
	Requires       []object.ID      `json:"requires,omitempty"`
	Selects        []object.ID      `json:"selects,omitempty"`
	AffinityName   string           `json:"affinityName,omitempty"`
	Placed         object.Digest    `json:"placed,omitzero"`
	Observed       bool             `json:"observed,omitempty"`
	Evictions      []Eviction       `json:"evictions,omitempty"`
	Scheduled      Scheduled        `json:"scheduled"`
	Contents       []ContentRecord  `json:"contents,omitempty"` // shared by the works
	Works          WorkRecords      `json:"works,omitempty"`
}

// ContentRecord is a Content on disk.
type ContentRecord struct {
	Digest      object.Digest `json:"digest"`
	Replicas    int64         `json:"replicas,omitempty"`
	Completions int64         `json:"completions"`
	Bare        bool          `json:"bare,omitempty"` // older records have none, and sent all
	APIVersion  string        `json:"apiVersion"`
	Commit      string        `json:"commit"`
	Revision    string        `json:"revision"`
	Requires    []object.ID   `json:"requires,omitempty"`
	Made        *MadeRecord   `json:"made,omitempty"`
}

// WorkRecord is a Work on disk; Want and Released count into Contents, -1 is
// none.
type WorkRecord struct {
	Cluster  string   `json:"cluster,omitempty"`
	Want     int      `json:"want"`
	Released int      `json:"released"`
	Held     bool     `json:"held,omitempty"`
	Preserve bool     `json:"preserve,omitempty"`
	Blocked  string   `json:"blocked,omitempty"`
	After    []string `json:"after,omitempty"`
}

// TombstoneRecord is a Tombstone on disk.
type TombstoneRecord struct {
	APIVersion string          `json:"apiVersion"`
	Clusters   []RemovalRecord `json:"clusters"`
}

// RemovalRecord is a Removal on disk.
type RemovalRecord struct {
	Cluster  string        `json:"cluster"`
	Preserve bool          `json:"preserve,omitempty"`
	Commit   string        `json:"commit"`
	Released ContentRecord `json:"released"`
	// Successors, Owners and Users are Removal's.
	Successors []string    `json:"successors,omitempty"`
	Owners     []object.ID `json:"owners,omitempty"`
	Users      []object.ID `json:"users,omitempty"`
}

// Record is b as it is kept.
func (b *Binding) Record() BindingRecord {
	r := BindingRecord{
		Claim:          b.Claim,
		Template:       b.Active.Template.Digest,
		TemplateCommit: b.Active.TemplateCommit,
		Policy:         b.Active.Policy.Ref,
		Delayed:        b.Active.Policy.Delayed,
		Overwrite:      b.Active.Policy == attachedOverwrite,
		PolicyCommit:   b.Active.PolicyCommit,
		Pending:        b.Pending,
		Unmatched:      b.Unmatched,
		Immediate:      b.Immediate,
		Own:            b.Own,
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
		r.Works = append(r.Works, WorkRecord{w.Cluster, place(w.Want), place(w.Released), w.Held, w.Preserve, w.Blocked, w.After})
	}

	return r
}

func (c *Content) record() ContentRecord {
	return ContentRecord{c.Digest, c.Replicas, c.Completions, c.Bare, c.APIVersion, c.TemplateCommit, c.Revision, c.Requires, c.made()}
}

// contentsOf are the contents of records, in one allocation.
func contentsOf(records []ContentRecord) []*Content {
	all, at := make([]Content, len(records)), make([]*Content, len(records))
	for i := range records {
		all[i] = *records[i].content()
		at[i] = &all[i]
	}
	return at
}

func (r *ContentRecord) content() *Content {
	return &Content{Digest: r.Digest, Replicas: r.Replicas, Completions: r.Completions, Bare: r.Bare, APIVersion: r.APIVersion, TemplateCommit: r.Commit, Revision: r.Revision, Requires: r.Requires}
}

// Record is t as it is kept.
func (t *Tombstone) Record() TombstoneRecord {
	r := TombstoneRecord{APIVersion: t.APIVersion}
	for _, removal := range t.Clusters {
		released := removal.Released.record()
		released.Made = nil // it is not made again
		r.Clusters = append(r.Clusters, RemovalRecord{removal.Cluster, removal.Preserve, removal.Commit, released, removal.Successors, removal.Owners, removal.Users})
	}
	return r
}

func (r TombstoneRecord) tombstone(id object.ID) *Tombstone {
	t := &Tombstone{ID: id, APIVersion: r.APIVersion}
	for _, removal := range r.Clusters {
		t.Clusters = append(t.Clusters, Removal{removal.Cluster, removal.Preserve, removal.Commit, removal.Released.content(), removal.Successors, removal.Owners, removal.Users})
	}
	return t
}

// Saved is a whole State as it is kept.
type Saved struct {
	Commit, Accepted     string
	Derived              string
	Former               []string
	Refusal              *Refusal
	Bindings             map[object.ID]BindingRecord
	Tombstones, Detached map[object.ID]TombstoneRecord
	Seen                 *Seen
	Frozen               map[string]string
	Moved                Moved  `json:",omitempty"`
	Rewritten            string `json:",omitempty"`
	Time                 int64
	Recent               []Deleted

	// Redigested is set when another engine made the digests: Restore makes them
	// again, of the same commits, which counts as no update (fold rule 7).
	Redigested bool

	// Rehydrated lets Restore make again what held works run, to be shown. It is
	// never sent, so the loop does without.
	Rehydrated bool
}

// Save is the whole state as it is kept.
func (s *State) Save() *Saved {
	saved := &Saved{Commit: s.Commit, Accepted: s.Accepted, Derived: s.Derived, Former: s.Former, Refusal: s.Refusal, Seen: s.Seen, Frozen: s.Frozen, Moved: s.Moved, Rewritten: s.Rewritten, Time: s.Time, Recent: s.Recent,
		Bindings: map[object.ID]BindingRecord{}, Tombstones: map[object.ID]TombstoneRecord{}, Detached: map[object.ID]TombstoneRecord{}}
	for b := range s.Bindings.Values() {
		saved.Bindings[b.ID] = b.Record()
	}

	for t := range s.Tombstones.Values() {
		saved.Tombstones[t.ID] = t.Record()
	}

	for t := range s.Detached.Values() {
		saved.Detached[t.ID] = t.Record()
	}
	return saved
}

// Remains is what is known of a state whose commits cannot be read any more: what
// runs where, and what becomes of it if it is not wanted. Nothing can be folded onto
// it; Rewrite goes on from it.
func (s *Saved) Remains() State {
	state := State{Commit: s.Commit, Accepted: s.Accepted, Refusal: s.Refusal, Derived: s.Derived, Former: s.Former, Time: s.Time, Recent: s.Recent}
	for id, r := range s.Bindings {
		b := &Binding{ID: id, Claim: r.Claim, Immediate: r.Immediate, Own: r.Own, Requires: r.Requires,
			Active: &Active{Template: &fleet.Template{ID: id}, Policy: &fleet.Policy{Ref: r.Policy}}}
		for _, w := range r.Works {
			work := Work{Cluster: w.Cluster, Held: w.Held, Preserve: w.Preserve, Blocked: w.Blocked, After: w.After}
			if w.Released >= 0 && w.Released < len(r.Contents) {
				work.Released = r.Contents[w.Released].content()
			}
			b.Works = append(b.Works, work)
		}
		state.Bindings = state.Bindings.With(id.Key(), b)
		state.Works += len(b.Works)
	}

	for id, r := range s.Tombstones {
		state.Tombstones = state.Tombstones.With(id.Key(), r.tombstone(id))
	}
	for id, r := range s.Detached {
		state.Detached = state.Detached.With(id.Key(), r.tombstone(id))
	}
	return state
}

// Needs are the commits, other than the accepted one, whose snapshots Restore
// needs: those that hold what is active but not in git any more.
func (s *Saved) Needs(accepted *fleet.Snapshot) []string {
	seen := map[string]bool{s.Accepted: true}
	var commits []string
	need := func(commit string) {
		if !seen[commit] {
			seen[commit] = true
			commits = append(commits, commit)
		}
	}

	for id, r := range s.Bindings {
		t := accepted.Templates.At(id.Key())
		if t == nil || t.Digest != r.Template || s.Redigested {
			need(r.TemplateCommit)
		}

		for _, w := range r.Works {
			for _, i := range r.older(w, t != nil) {
				if s.Rehydrated || s.Redigested {
					need(r.Contents[i].Commit)
					need(r.Contents[i].Revision)
				}
			}
		}

		if r.Policy == (fleet.PolicyRef{}) {
			continue // attached to others
		}
		if p := accepted.Policies.At(r.Policy.Key()); p == nil || p.Delayed != r.Delayed || s.Redigested {
			need(r.PolicyCommit)
		}
	}
	slices.Sort(commits)
	return commits
}

// older are the contents of a work that are not the active template's: what it
// runs while something else is wanted, and what stays for its owners, also when
// it was removed from git, or while it is moved.
func (r *BindingRecord) older(w WorkRecord, inGit bool) (contents []int) {
	of := func(i int) bool { return i >= 0 && i < len(r.Contents) }

	if !inGit && of(w.Want) {
		return []int{w.Want}
	}
	evicted := slices.ContainsFunc(r.Evictions, func(e Eviction) bool { return e.Cluster == w.Cluster })
	if of(w.Released) && (w.Released != w.Want || w.Blocked != "" || evicted) {
		contents = append(contents, w.Released)
	}
	if of(w.Want) && w.Held && w.Blocked == "" && r.Contents[w.Want].Commit != r.TemplateCommit && !slices.Contains(contents, w.Want) {
		contents = append(contents, w.Want)
	}
	return contents
}

// Restore makes the State again. snapshots are those of the accepted commit
// and of what Needs named.
func (s *Saved) Restore(snapshots map[string]*fleet.Snapshot) (State, error) {
	state := State{Commit: s.Commit, Accepted: s.Accepted, Derived: s.Derived, Former: s.Former, Refusal: s.Refusal, Snapshot: snapshots[s.Accepted], Seen: s.Seen, Frozen: s.Frozen, Moved: s.Moved, Rewritten: s.Rewritten, Time: s.Time, Recent: s.Recent}
	if state.Snapshot != nil {
		state.index = newIndex(state.Snapshot)
		state.index.clusters = state.candidates()
	}

	from := newPast(snapshots, state.Snapshot)
	bindings := make(map[string]*Binding, len(s.Bindings))
	for id, r := range s.Bindings {
		b, err := s.restore(id, r, &state, from)
		if err != nil {
			return State{}, fmt.Errorf("%s: %w", id, err)
		}
		bindings[id.Key()] = b
		state.Works += len(b.Works)
		state.Evictions += len(b.Evictions)
	}
	state.Bindings = ordered.Of(bindings)
	state.index.bindings(bindings)

	for from, to := range map[*map[object.ID]TombstoneRecord]*ordered.Map[*Tombstone]{&s.Tombstones: &state.Tombstones, &s.Detached: &state.Detached} {
		for id, r := range *from {
			*to = to.With(id.Key(), r.tombstone(id))
		}
	}

	return state, nil
}

func (s *Saved) restore(id object.ID, r BindingRecord, state *State, from *past) (*Binding, error) {
	template, err := s.template(id, r, from.snapshots)
	if err != nil {
		return nil, err
	}
	policy, err := s.policy(r, from.snapshots)
	if err != nil {
		return nil, err
	}

	b := &Binding{
		ID: id, Claim: r.Claim, Pending: r.Pending, Unmatched: r.Unmatched, Immediate: r.Immediate, Own: r.Own, Targets: r.Targets, Requires: r.Requires, Selects: r.Selects, Scheduled: r.Scheduled,
		AffinityName: r.AffinityName, Placed: r.Placed, Observed: r.Observed, Evictions: r.Evictions,
		Active: &Active{Template: template, TemplateCommit: r.TemplateCommit, Policy: policy, PolicyCommit: r.PolicyCommit},
		Works:  make([]Work, 0, len(r.Works)),
	}

	b.answers = state.index.answer(template, nil, new(int))
	if s.Redigested && b.Placed != (object.Digest{}) && b.Scheduled.Reason == workv1alpha2.ReasonSuccess {
		b.Placed = policy.Placement.Digest(b.AffinityName)
	}

	m := &remaking{Saved: s, past: from, record: &r, binding: b, state: state, rendering: newRendering(&state.index, template), made: make([]bool, len(r.Contents))}
	m.inGit = state.Snapshot.Templates.At(id.Key()) != nil
	m.contents = contentsOf(r.Contents)
	on := from.clustersOf(r.Works)
	for i := range r.Works {
		work, err := m.work(&r.Works[i], on[i])
		if err != nil {
			return nil, err
		}
		b.Works = append(b.Works, work)
	}

	return b, nil
}

// remaking makes the works of one binding again.
type remaking struct {
	*Saved
	*past
	record    *BindingRecord
	binding   *Binding
	state     *State
	rendering *rendering
	contents  []*Content
	made      []bool // of contents
	inGit     bool   // whether the template is in the accepted commit
}

// work makes a work again. cluster is nil if it is not in the fleet.
func (m *remaking) work(w *WorkRecord, cluster *fleet.Cluster) (Work, error) {
	work := Work{Cluster: w.Cluster, Held: w.Held, Preserve: w.Preserve, Blocked: w.Blocked, After: w.After}
	if w.Want < 0 || w.Want >= len(m.contents) || w.Released >= len(m.contents) {
		return work, fmt.Errorf("work on %s has no content", w.Cluster)
	}

	older := m.record.older(*w, m.inGit)
	work.Want = m.contents[w.Want]
	if w.Released >= 0 {
		work.Released = m.contents[w.Released]
	}

	for _, i := range older {
		if m.made[i] || !m.Rehydrated && !m.Redigested {
			continue
		}
		if err := m.rehydrate(m.binding.ID, w.Cluster, m.contents[i], m.Redigested); err != nil {
			return work, err
		}
		m.made[i] = true
	}

	if cluster != nil {
		work.Cluster = cluster.Name // the text that all works on it share
	}
	if m.made[w.Want] || w.Blocked != "" || cluster == nil || slices.Contains(older, w.Want) {
		return work, nil
	}

	m.made[w.Want] = true
	return work, m.make(work.Want, m.record.Contents[w.Want].Made, cluster)
}

// make fills in a content of the active template. Overrides act at once, so
// those of the accepted commit made it.
func (m *remaking) make(c *Content, as *MadeRecord, cluster *fleet.Cluster) (err error) {
	c.Template, c.reviser = m.binding.Active.Template, m.rendering.reviser
	if as != nil && !m.Redigested {
		if rules, ok := as.rules(m.state.Snapshot); ok {
			c.Rules, c.Conflict = rules, as.Conflict
			return nil
		}
	}
	if _, _, c.Rules, err = m.rendering.render(c.Template, c.share(), cluster); err != nil {
		return err
	}

	obj := c.object()
	c.Conflict = conflictOf(obj)
	if m.Redigested {
		c.Digest = object.DigestJSON(obj)
	}
	return nil
}

// past makes contents of earlier commits again.
type past struct {
	snapshots map[string]*fleet.Snapshot
	indexes   map[string]*index // of their overrides and scripts
	clusters  map[string]*fleet.Cluster
	on        map[*WorkRecord][]*fleet.Cluster // of works that many bindings share, by the first of them
}

func newPast(snapshots map[string]*fleet.Snapshot, accepted *fleet.Snapshot) *past {
	p := &past{snapshots: snapshots, indexes: map[string]*index{}, clusters: map[string]*fleet.Cluster{}, on: map[*WorkRecord][]*fleet.Cluster{}}
	if accepted != nil {
		p.clusters = maps.Collect(accepted.Clusters.All())
	}
	return p
}

// clustersOf are the clusters of works, nil for one that is not in the fleet.
func (p *past) clustersOf(works WorkRecords) []*fleet.Cluster {
	if len(works) == 0 {
		return nil
	}
	on := p.on[&works[0]]
	if len(on) != len(works) {
		on = make([]*fleet.Cluster, len(works))
		for i := range works {
			on[i] = p.clusters[works[i].Cluster]
		}
		p.on[&works[0]] = on
	}
	return on
}

// rehydrate fills in the content that a cluster runs: the template as of the
// commit that it is of, and the overrides as of the one that made it.
func (p *past) rehydrate(id object.ID, cluster string, c *Content, redigest bool) error {
	then, made := p.snapshots[c.TemplateCommit], p.snapshots[c.Revision]
	if then == nil || made == nil {
		return fmt.Errorf("commits %s and %s, which made what %s runs, are missing", short(c.TemplateCommit), short(c.Revision), cluster)
	}
	t, on := then.Templates.At(id.Key()), made.Clusters.At(cluster)
	if t == nil || on == nil {
		return fmt.Errorf("commits %s and %s do not hold what %s runs", short(c.TemplateCommit), short(c.Revision), cluster)
	}

	ix := p.indexes[c.Revision]
	if ix == nil {
		ix = newContentIndex(made)
		p.indexes[c.Revision] = ix
	}
	r := newRendering(ix, t)
	_, _, rules, err := r.render(t, c.share(), on)
	if err != nil {
		return err
	}

	c.Template, c.Rules, c.reviser = t, rules, r.reviser
	obj := c.object()
	c.Conflict = conflictOf(obj)

	switch digest := object.DigestJSON(obj); {
	case redigest:
		c.Digest = digest
	case digest != c.Digest:
		return fmt.Errorf("commits %s and %s no longer make what %s runs", short(c.TemplateCommit), short(c.Revision), cluster)
	}

	return nil
}

func (s *Saved) template(id object.ID, r BindingRecord, snapshots map[string]*fleet.Snapshot) (*fleet.Template, error) {
	want := r.Template
	if s.Redigested {
		// The commit identifies the content; the digest is of another engine.
		if then := snapshots[r.TemplateCommit]; then != nil && then.Templates.At(id.Key()) != nil {
			want = then.Templates.At(id.Key()).Digest
		}
	}

	for _, commit := range []string{s.Accepted, r.TemplateCommit} {
		if snapshot := snapshots[commit]; snapshot != nil {
			if t := snapshot.Templates.At(id.Key()); t != nil && t.Digest == want {
				return t, nil
			}
		}
	}
	return nil, fmt.Errorf("commit %s does not hold the template with digest %s", short(r.TemplateCommit), r.Template)
}

func (s *Saved) policy(r BindingRecord, snapshots map[string]*fleet.Snapshot) (*fleet.Policy, error) {
	switch {
	case r.Policy != fleet.PolicyRef{}:
	case r.Overwrite:
		return attachedOverwrite, nil
	default:
		return attachedAbort, nil
	}

	want := r.Delayed
	if s.Redigested {
		if then := snapshots[r.PolicyCommit]; then != nil && then.Policies.At(r.Policy.Key()) != nil {
			want = then.Policies.At(r.Policy.Key()).Delayed
		}
	}

	for _, commit := range []string{s.Accepted, r.PolicyCommit} {
		if snapshot := snapshots[commit]; snapshot != nil {
			if p := snapshot.Policies.At(r.Policy.Key()); p != nil && p.Delayed == want {
				return p, nil
			}
		}
	}

	return nil, fmt.Errorf("commit %s does not hold %s as it was active", short(r.PolicyCommit), r.Policy)
}
