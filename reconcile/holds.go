// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"path"
	"slices"
	"time"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/ordered"
)

// Hold is one cluster, or "*" for every one, that a policy holds.
type Hold struct {
	Policy  string // such as PropagationPolicy shop/web
	Cluster string
	// Since is when the commit was made that holds it. Of a hold that was there before
	// this process it is the last change of the policy's file; zero if that is too long
	// ago to look for.
	Since time.Time
	// Until is the last day of the hold, 2006-01-02, "" if nobody noted one.
	Until string
}

// mostBack is how many commits are looked at for the beginning of a hold.
const mostBack = 2000

// policyHolds are the holds of each policy, by its key.
type policyHolds struct {
	policies ordered.Map[*fleet.Policy]
	by       map[string][]Hold
}

// followHolds returns the holds of the state as it is now. Its cost follows the policies
// that have changed.
func (l *Loop) followHolds() (all []Hold) {
	if l.state.Snapshot == nil {
		return nil
	}

	first := l.holds == nil
	if first {
		l.holds = &policyHolds{by: map[string][]Hold{}}
	}
	var old []*fleet.Policy // whose holds were there before
	for d := range ordered.Diff(l.holds.policies, l.state.Snapshot.Policies) {
		l.holds.change(d.Key, d.After, time.Unix(l.state.Time, 0))
		if first && len(l.holds.by[d.Key]) > 0 {
			old = append(old, d.After)
		}
	}
	l.holds.policies = l.state.Snapshot.Policies
	if len(old) > 0 {
		l.dateHolds(old)
	}

	for _, holds := range l.holds.by {
		all = append(all, holds...)
	}
	return all
}

// change takes in another version of a policy. What it held before it holds since then.
func (h *policyHolds) change(key string, p *fleet.Policy, now time.Time) {
	before := h.by[key]
	delete(h.by, key)
	if p == nil || p.Spec.Suspension == nil {
		return
	}

	everywhere, clusters := p.Suspended()
	if everywhere {
		clusters = []string{"*"}
	}
	for _, cluster := range clusters {
		hold := Hold{Policy: p.Ref.String(), Cluster: cluster, Since: now}
		if i := slices.IndexFunc(before, func(b Hold) bool { return b.Cluster == cluster }); i >= 0 {
			hold.Since = before[i].Since
		}
		note, _ := p.Note(cluster)
		hold.Until = note.Until
		h.by[key] = append(h.by[key], hold)
	}
}

// dateHolds looks for the last change of the files of policies.
func (l *Loop) dateHolds(policies []*fleet.Policy) {
	open := map[string][]string{} // the keys of the policies of a file
	for _, p := range policies {
		l.holds.date(p.Ref.Key(), time.Time{})
		open[p.Origin.File] = append(open[p.Origin.File], p.Ref.Key())
	}

	hash := l.state.Accepted
	for range mostBack {
		c, err := l.repo.Commit(hash)
		if err != nil || len(open) == 0 {
			return
		}
		for file, keys := range open {
			if l.sameFile(file, c.Hash, c.Parent) {
				continue
			}
			delete(open, file)
			for _, key := range keys {
				l.holds.date(key, c.When)
			}
		}
		hash = c.Parent
	}
}

// sameFile reports whether two commits have the same content of a file of the fleet.
func (l *Loop) sameFile(file, commit, parent string) bool {
	if parent == "" {
		return false
	}
	hashes := [2]string{}
	for i, hash := range []string{commit, parent} {
		c, err := l.repo.Commit(hash)
		if err != nil {
			return false
		}
		tree, err := c.Tree(".")
		if err != nil {
			return false
		}
		hashes[i], _ = tree.BlobHash(path.Join(l.opt.Path, file))
	}
	return hashes[0] == hashes[1]
}

// date sets since when a policy holds what it holds.
func (h *policyHolds) date(key string, since time.Time) {
	for i := range h.by[key] {
		h.by[key][i].Since = since
	}
}
