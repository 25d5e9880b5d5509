// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"reflect"
	"slices"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
)

// Suspension is a policy, or a template with holds of its own, that holds other clusters
// after a change than before, or says something else of them.
type Suspension struct {
	// Holder is "PropagationPolicy shop/web", or "Deployment shop/web".
	Holder string `json:"holder"`
	Policy string `json:"policy,omitempty"`
	// Before and After are clusters, or "*" for every one.
	Before []string `json:"before"`
	After  []string `json:"after"`
	// Activated is set: a suspension is in effect as soon as it is in git.
	Activated bool       `json:"activated"`
	New       []HoldNote `json:"new,omitempty"`
	Changed   []HoldNote `json:"changed,omitempty"`
	Lifted    []HoldNote `json:"lifted,omitempty"`
}

// HoldNote is a hold of one cluster, or of "*", and what somebody noted of it.
type HoldNote struct {
	Cluster string `json:"cluster"`
	Wave    int    `json:"wave,omitempty"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Until   string `json:"until,omitempty"`
	Ticket  string `json:"ticket,omitempty"`
	// Was is what was noted before, of a hold that changes.
	Was  *fleetv1alpha1.Hold `json:"was,omitempty"`
	File string              `json:"file,omitempty"`
	Line int                 `json:"line,omitempty"`
	// Works is how many works it holds, and Waiting in how many of them something waits.
	Works   int `json:"works"`
	Waiting int `json:"waiting"`
}

// holder is what can hold clusters.
type holder struct {
	name   string
	policy fleet.PolicyRef // zero for a template's own hold
	object string          // the key of a template with holds of its own
	holds  []string        // clusters, or AllClusters
	note   func(cluster string) (fleetv1alpha1.Hold, bool)
	at     func(cluster string) fleet.Origin
	waves  [][]string
}

func policyHolder(s *fleet.Snapshot, p *fleet.Policy) *holder {
	return &holder{name: p.Ref.String(), policy: p.Ref, holds: report.Held(p), note: p.Note, waves: s.WavesOf(p),
		at: func(cluster string) fleet.Origin { _, at := p.Suspends(cluster); return at }}
}

func templateHolder(t *fleet.Template) *holder {
	everywhere, clusters := t.Suspended()
	if everywhere {
		clusters = []string{fleetv1alpha1.AllClusters}
	}
	return &holder{name: t.ID.String(), object: t.Key(), holds: clusters, note: t.Note,
		at: func(string) fleet.Origin { return t.Origin }}
}

// suspensions lists what holds otherwise than before. Its cost follows the change.
func (r *Plan) suspensions(base, head *propagate.State, cells []propagate.Cell) {
	r.Suspensions = []Suspension{}
	if head.Snapshot == nil {
		return
	}

	before := base.Snapshot
	if before == nil {
		before = &fleet.Snapshot{}
	}
	counts := countHeld(cells)
	for d := range ordered.Diff(before.Policies, head.Snapshot.Policies) {
		var was, is *holder
		if d.Had {
			was = policyHolder(before, d.Before)
		}
		if d.Has {
			is = policyHolder(head.Snapshot, d.After)
		}
		r.suspension(was, is, counts)
	}
	for d := range ordered.Diff(before.Templates, head.Snapshot.Templates) {
		var was, is *holder
		if d.Had && d.Before.Immediate != nil {
			was = templateHolder(d.Before)
		}
		if d.Has && d.After.Immediate != nil {
			is = templateHolder(d.After)
		}
		r.suspension(was, is, counts)
	}
	slices.SortFunc(r.Suspensions, func(a, b Suspension) int { return cmp.Compare(a.Holder, b.Holder) })
}

func (r *Plan) suspension(was, is *holder, counts heldCounts) {
	if was == nil {
		was = &holder{}
	}
	if is == nil {
		is = &holder{}
	}
	s := Suspension{Holder: cmp.Or(is.name, was.name), Policy: cmp.Or(is.policy.Name, was.policy.Name), Activated: true,
		Before: append([]string{}, was.holds...), After: append([]string{}, is.holds...)}

	for _, cluster := range is.holds {
		note := is.noteOf(cluster, counts)
		switch {
		case !slices.Contains(was.holds, cluster) && slices.Contains(was.holds, fleetv1alpha1.AllClusters):
			continue // it was one of them
		case !slices.Contains(was.holds, cluster):
			s.New = append(s.New, note)
			continue
		}
		old, _ := was.note(cluster)
		if now, _ := is.note(cluster); !reflect.DeepEqual(old, now) {
			note.Was = &old
			s.Changed = append(s.Changed, note)
		}
	}
	for _, cluster := range was.holds {
		if !slices.Contains(is.holds, cluster) && !slices.Contains(is.holds, fleetv1alpha1.AllClusters) {
			s.Lifted = append(s.Lifted, was.noteOf(cluster, counts))
		}
	}

	if s.New != nil || s.Changed != nil || s.Lifted != nil {
		r.Suspensions = append(r.Suspensions, s)
	}
}

func (h *holder) noteOf(cluster string, counts heldCounts) HoldNote {
	note, _ := h.note(cluster)
	at := h.at(cluster)
	n := HoldNote{Cluster: cluster, By: note.By, Reason: note.Reason, Until: note.Until, Ticket: note.Ticket, File: at.File, Line: at.Line,
		Wave: waveOf(h.waves, cluster)}
	of := heldBy{h.policy, h.object, cluster}
	n.Works, n.Waiting = counts[of].works, counts[of].waiting
	return n
}

// waveOf returns the number of a cluster's wave, from 1 on; 0 if it is in none.
func waveOf(waves [][]string, cluster string) int {
	return 1 + slices.IndexFunc(waves, func(clusters []string) bool { return slices.Contains(clusters, cluster) })
}

// heldBy is who holds what: a policy, or the template with this key.
type heldBy struct {
	policy  fleet.PolicyRef
	object  string
	cluster string // AllClusters for all of them
}

type heldCounts map[heldBy]struct{ works, waiting int }

// countHeld counts the works that are held, or were until now, by all that may hold
// them.
func countHeld(cells []propagate.Cell) heldCounts {
	counts := heldCounts{}
	for i := range cells {
		c := &cells[i]
		if c.Disposition != propagate.Held && c.Disposition != propagate.Released {
			continue
		}
		for _, cluster := range []string{c.Cluster, fleetv1alpha1.AllClusters} {
			for _, of := range []heldBy{{policy: c.Policy, cluster: cluster}, {object: c.Object.Key(), cluster: cluster}} {
				n := counts[of]
				n.works++
				if c.Action != propagate.ActionNone {
					n.waiting++
				}
				counts[of] = n
			}
		}
	}
	return counts
}
