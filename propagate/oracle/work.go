// SPDX-License-Identifier: Apache-2.0

package oracle

import "slices"

// need is that an owner has a template go along to a cluster.
type need struct {
	owner string
	held  bool // the owner stays there as it is
}

// works decides what every cluster gets. Owners are first: what they require
// is held where they are.
func (st *step) works() {
	for _, key := range sorted(st.next.Bindings) {
		if b := st.next.Bindings[key]; b.template.runsPods() {
			st.send(key, b, nil)
		}
	}
	needs := st.needs()
	for _, key := range sorted(st.next.Bindings) {
		if b := st.next.Bindings[key]; !b.template.runsPods() {
			st.send(key, b, needs[key])
		}
	}
	st.linger(needs)
}

// needs are what workloads require, by template and cluster: what is active
// under propagateDeps, and where they are held what was released (rule 16).
func (st *step) needs() map[string]map[string][]need {
	all := map[string]map[string][]need{}
	add := func(key, cluster string, n need) {
		if all[key] == nil {
			all[key] = map[string][]need{}
		}
		all[key][cluster] = append(all[key][cluster], n)
	}
	for _, key := range sorted(st.next.Bindings) {
		b := st.next.Bindings[key]
		for _, c := range sorted(b.Works) {
			w := b.Works[c]
			active := b.requires()
			for _, ref := range active {
				add(ref, c, need{key, w.stays()})
			}
			if w.stays() && w.Released != nil {
				for _, ref := range w.Released.requires {
					if !slices.Contains(active, ref) {
						add(ref, c, need{key, true})
					}
				}
			}
		}
	}
	return all
}

// stays reports whether the cluster keeps what it was released: the work is held,
// or an override of it failed.
func (w *Work) stays() bool { return w.Held || w.Blocked }

// requires is what goes along with a binding, if it goes anywhere.
func (b *Binding) requires() []string {
	if b.Own && b.policy.propagateDeps && len(b.Targets) > 0 {
		return b.template.references()
	}
	return nil
}

// send makes the works of a binding.
func (st *step) send(key string, b *Binding, needs map[string][]need) {
	clusters := map[string]int64{}
	for c := range needs {
		clusters[c] = 0
	}
	for c, n := range b.Targets {
		clusters[c] = n
	}
	preserve, overwrite := st.merged(b, needs)
	for _, c := range sorted(clusters) {
		w := &Work{Preserve: preserve, Overwrite: overwrite}
		w.Held = b.holds(c, needs[c])
		last := st.old.work(key, c)
		if last == nil {
			last = &Work{}
			if left, ok := st.old.Left[key][c]; ok {
				last.Released, last.Want = left.released, left.released
			}
		}
		_, target := b.Targets[c]
		o, err := st.now.manifest(b.template, clusters[c], target && b.divided(), c)
		if err != nil {
			w.Blocked, w.Released = true, last.Released
		} else {
			switch text(o, "metadata", "annotations", "work.karmada.io/conflict-resolution") {
			case "overwrite":
				w.Overwrite = true
			case "abort":
				w.Overwrite = false
			}
			w.Want = &Content{Manifest: canonical(o), Revision: st.commit, share: clusters[c], requires: b.requires()}
			before := last.Want
			if last.Blocked {
				before = last.Released
			}
			if before != nil && before.Manifest == w.Want.Manifest && before.share == w.Want.share {
				w.Want.Revision = before.Revision
			}
			w.Released = w.Want
			if w.Held {
				w.Released = last.Released
			}
		}
		b.Works[c] = w
	}
}

// holds reports whether everything that wants the template on a cluster is held
// there: its own policy, where it goes by itself or waits to, and every owner
// (decision 16, rule 16).
func (b *Binding) holds(cluster string, needs []need) bool {
	if b.own.hold(cluster) {
		return true
	}
	_, target := b.Targets[cluster]
	if (target || !b.Own && b.Claim != "") && !b.Brakes.hold(cluster) {
		return false
	}
	for _, n := range needs {
		if !n.held {
			return false
		}
	}
	return true
}

// merged reports whether a binding's objects are preserved and overwrite others. A
// template that only owners place has what any of them has (decision 17).
func (st *step) merged(b *Binding, needs map[string][]need) (preserve, overwrite bool) {
	if b.Own {
		return b.Brakes.Preserve || b.own.Preserve, b.policy.overwrite
	}
	preserve = b.Brakes.Preserve || b.own.Preserve
	for _, on := range needs {
		for _, n := range on {
			owner := st.next.Bindings[n.owner]
			preserve = preserve || owner.Brakes.Preserve || owner.own.Preserve
			overwrite = overwrite || owner.policy.overwrite
		}
	}
	return preserve, overwrite
}

// linger: what a held owner runs with stays there, though it is gone from git.
func (st *step) linger(needs map[string]map[string][]need) {
	for key, b := range st.old.Bindings {
		if st.now.templates[key] != nil {
			continue
		}
		if st.removed[key] == nil {
			st.removed[key] = b // it lingers since an earlier step
		}
		rest := &Binding{}
		*rest = *st.removed[key]
		if !b.Own { // its owners have it stay, so they say what becomes of it
			rest.Own, rest.Claim, rest.Brakes = false, "", Brakes{}
		}
		rest.Removed, rest.Works, rest.Targets, rest.placement = true, map[string]*Work{}, nil, placement{}
		for c, on := range needs[key] {
			last := st.old.work(key, c)
			if last == nil || last.Released == nil || !st.now.has(c) {
				continue
			}
			for _, n := range on {
				if held := st.next.work(n.owner, c); held.stays() && held.Released != nil && slices.Contains(held.Released.requires, key) {
					w := *last
					w.Held, w.Blocked, w.Want, w.After = true, false, last.Released, nil
					rest.Works[c] = &w
				}
			}
		}
		if len(rest.Works) > 0 {
			preserve, _ := st.merged(rest, needs[key])
			for _, w := range rest.Works {
				w.Preserve = preserve
			}
			st.next.Bindings[key] = rest
		}
	}
}

func (f *fleet) has(cluster string) bool { return f.clusters[cluster] != nil }
