// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// deletion is an object that the step takes from a cluster for good.
type deletion struct{ key, cluster string }

// depart accounts for everything that was released to a cluster and is not
// wanted there any more.
func (st *step) depart() {
	put := func(m map[string]map[string]Gone, key, c string, g Gone) {
		if m[key] == nil {
			m[key] = map[string]Gone{}
		}
		m[key][c] = g
	}
	for key, on := range st.old.Departed {
		for c, g := range on {
			now, was := st.next.work(key, c), st.old.work(key, c)
			if now != nil && now.Released != nil {
				continue
			}
			if now == nil && was != nil && !g.Preserve && st.preserves(key, was.Preserve) {
				// It was wanted under a hold, so it is there still at most.
				g.Preserve, g.Since = true, st.commit
			}
			put(st.next.Departed, key, c, g)
		}
	}
	for key, b := range st.old.Bindings {
		for c, w := range b.Works {
			owners := map[string]bool{}
			for owner, b := range st.old.Bindings {
				if b.needs(key) && b.Works[c] != nil {
					owners[owner] = true
				}
			}
			switch g := (Gone{Preserve: st.preserves(key, w.Preserve), Since: st.commit, Owners: sorted(owners), released: w.Released}); {
			case w.Released == nil || st.next.work(key, c) != nil:
			case st.now.has(c):
				put(st.next.Departed, key, c, g)
			default:
				put(st.next.Left, key, c, g)
			}
		}
	}
	for key, on := range st.old.Left {
		for c, g := range on {
			g.Preserve = st.preserves(key, g.Preserve)
			switch {
			case !st.now.has(c):
				put(st.next.Left, key, c, g)
			case st.next.work(key, c) == nil:
				g.Since = st.commit
				put(st.next.Departed, key, c, g)
			}
		}
	}
}

// inherit is decision 42. What a template loses in a step in which it goes to other
// clusters is theirs to have first. Whoever was to have it from a cluster that has
// lost it as well now has it from those that got it instead, if any did.
func (st *step) inherit() {
	for key, b := range st.old.Bindings {
		now := st.next.Bindings[key]
		if now == nil {
			now = &Binding{}
		}
		got := now.gets(b)
		lost := func(c string) bool { return b.Works[c] != nil && now.Works[c] == nil }
		for _, all := range []map[string]map[string]Gone{st.next.Departed, st.next.Left} {
			for c, g := range all[key] {
				heirs := map[string]bool{}
				moves := lost(c)
				for _, heir := range g.Heirs {
					moves = moves || lost(heir)
					if !lost(heir) || len(got) == 0 && !st.now.has(heir) {
						heirs[heir] = true
					}
				}
				for _, heir := range got {
					if moves && heir != c {
						heirs[heir] = true
					}
				}
				g.Heirs = sorted(heirs)
				all[key][c] = g
			}
		}
	}
}

// gets are the clusters that have it for the first time in this step, or may, or have
// more of its replicas.
func (b *Binding) gets(was *Binding) (got []string) {
	for c, w := range b.Works {
		last := was.Works[c]
		if last == nil || last.Released == nil && w.Released != nil || b.divided() && b.Targets[c] > was.Targets[c] {
			got = append(got, c)
		}
	}
	return got
}

func (b *Binding) divided() bool {
	return b.Own && text(b.policy.placement, "replicaScheduling", "replicaSchedulingType") == "Divided"
}

// level is decision 42 for replicas: who has fewer has them taken away after those who
// got more in the same step.
func (st *step) level() {
	for key, b := range st.next.Bindings {
		was := st.old.Bindings[key]
		if was == nil || !b.divided() || b.Removed {
			continue
		}
		got := b.gets(was)
		for c, w := range b.Works {
			last := was.Works[c]
			if last == nil {
				continue
			}
			after := map[string]bool{}
			fewer := b.Targets[c] < was.Targets[c]
			for _, other := range last.After {
				after[other] = !fewer || len(got) > 0
			}
			for _, other := range got {
				after[other] = after[other] || fewer
			}
			for other, yes := range after {
				if !yes || other == c || b.Works[other] == nil {
					delete(after, other)
				}
			}
			w.After = sorted(after)
		}
	}
}

// used is the second half of decision 35: what a generator made under a hash that it
// does not use any more goes after those who used it: they name another one by now, or
// had it stay with them.
func (st *step) used() {
	for key, on := range st.next.Departed {
		if st.now.templates[key] != nil {
			continue
		}
		users := map[string]bool{}
		if was := st.was.templates[key]; was != nil && st.remade(was) {
			for user, t := range st.was.templates {
				now := st.now.templates[user]
				if now != nil && slices.Contains(t.references(), key) && !slices.Contains(now.references(), key) {
					users[user] = true
				}
			}
		}
		if old := st.old.Bindings[key]; old != nil && st.next.Bindings[key] == nil && old.template != nil && hashed.MatchString(old.template.name) {
			for user, b := range st.old.Bindings {
				if b.needs(key) && st.now.templates[user] != nil {
					users[user] = true
				}
			}
		}
		for c, g := range on {
			if g.Since == st.commit && len(users) > 0 {
				g.Users = sorted(users)
				on[c] = g
			}
		}
	}
}

// remade reports whether a generator makes a template under another hash from this
// step on.
func (st *step) remade(was *template) bool {
	m := hashed.FindStringSubmatch(was.name)
	for key, t := range st.now.templates {
		n := hashed.FindStringSubmatch(t.name)
		if m != nil && n != nil && m[1] == n[1] && st.was.templates[key] == nil && t.file == was.file && t.kind == was.kind && t.namespace == was.namespace {
			return true
		}
	}
	return false
}

// preserves reports whether what departs is preserved: as the brakes say that hold
// for it in this step, or that would hold if it had stayed in git. What only
// owners placed asks those of them that required it up to now.
func (st *step) preserves(key string, last bool) bool {
	b := st.removed[key]
	if b == nil {
		b = st.next.Bindings[key]
	}
	if b == nil {
		return last // it is long gone
	}
	if b.own.Preserve {
		return true
	}
	if b.Own {
		return b.Brakes.Preserve
	}
	preserve, asked := b.Brakes.Preserve, b.Claim != ""
	if was := st.old.Bindings[key]; b.Claim == "" && was != nil && !was.Own && was.Claim != "" {
		preserve, asked = was.Brakes.Preserve, true // it lets go, and its last ones stay
	}
	for owner, was := range st.old.Bindings {
		now := st.next.Bindings[owner]
		if now == nil {
			now = st.removed[owner]
		}
		if now != nil && was.needs(key) {
			preserve, asked = preserve || now.Brakes.Preserve || now.own.Preserve, true
		}
	}
	for _, owner := range st.next.Bindings {
		if owner.needs(key) {
			preserve, asked = preserve || owner.Brakes.Preserve || owner.own.Preserve, true
		}
	}
	if !asked {
		return last // nobody had it any more
	}
	return preserve
}

// needs reports whether a binding requires a template, or a cluster runs with it
// that stays as it is.
func (b *Binding) needs(key string) bool {
	if slices.Contains(b.requires(), key) {
		return true
	}
	for _, w := range b.Works {
		if w.stays() && w.Released != nil && slices.Contains(w.Released.requires, key) {
			return true
		}
	}
	return false
}

// guard is rule 21: what the step deletes, and whether that has to be allowed.
func (st *step) guard() (string, bool) {
	works := 0
	for _, b := range st.old.Bindings {
		works += len(b.Works)
	}
	tooMuch := false
	counted := 0
	lost := map[string]int{}
	var all []deletion
	for _, key := range sorted(st.next.Departed) {
		for _, c := range sorted(st.next.Departed[key]) {
			g := st.next.Departed[key][c]
			if g.Since != st.commit || g.Preserve {
				continue
			}
			all = append(all, deletion{key, c})
			tooMuch = tooMuch || st.isLastCopy(key, c)
			switch {
			case st.regenerated(key, c):
			case st.old.work(key, c) != nil:
				lost[key]++
			default:
				counted++ // its cluster came back: that is no move
			}
			if strings.Contains(key, "/Namespace./") || strings.Contains(key, "/CustomResourceDefinition.") {
				tooMuch = true
			}
		}
	}
	for key, n := range lost {
		gained := 0
		if b := st.next.Bindings[key]; b != nil {
			for c, w := range b.Works {
				if st.old.work(key, c) == nil && !w.stays() {
					gained++
				}
			}
		}
		if all := st.deletedOf(key); gained < all {
			counted += n
		}
	}
	if counted > 0 {
		tooMuch = tooMuch || st.tooMany(counted, works)
		st.next.hour = append(slices.Clone(st.old.hour), deleting{st.next.Time / 60, counted, works})
		sum, most := 0, 0
		for _, d := range st.next.hour {
			if d.minute > st.next.Time/60-60 {
				sum += d.count
				most = max(most, d.works)
			}
		}
		tooMuch = tooMuch || st.tooMany(sum, most)
	}
	lines := fmt.Sprint(all)
	if len(st.was.templates) > 0 && len(st.now.templates) == 0 {
		tooMuch = true
		lines += fmt.Sprint(sorted(st.was.templates))
	}
	for _, file := range sorted(st.now.rendered) {
		if st.was.rendered[file] > 0 && st.now.rendered[file] == 0 {
			tooMuch = true
			lines += " " + file
		}
	}
	return lines, tooMuch
}

// deletedOf counts the works of one template that the step deletes.
func (st *step) deletedOf(key string) (n int) {
	for c, g := range st.next.Departed[key] {
		if g.Since == st.commit && !g.Preserve && st.old.work(key, c) != nil {
			n++
		}
	}
	return n
}

// tooMany reports whether so many deletions are more than the settings allow, as
// they are and as they were: whoever raises the limit is still held to the old one.
func (st *step) tooMany(count, works int) bool {
	for _, f := range []*fleet{st.was, st.now} {
		switch m := f.maxDelete.(type) {
		case float64:
			if count > int(m) {
				return true
			}
		case string:
			percent, _ := strconv.Atoi(strings.TrimSuffix(m, "%"))
			if count > works*percent/100 {
				return true
			}
		default:
			if works > 20 && count > works/2 {
				return true
			}
		}
	}
	return false
}

// isLastCopy reports whether a template is in git, went somewhere by itself, and
// runs nowhere after the step (decision 34).
func (st *step) isLastCopy(key, cluster string) bool {
	if st.now.templates[key] == nil {
		return false
	}
	was, is := st.old.Bindings[key], st.next.Bindings[key]
	if is != nil {
		for _, w := range is.Works {
			if w.Released != nil {
				return false
			}
		}
	}
	if is != nil && is.template != nil {
		if n, workload := is.template.replicas(); workload && n == 0 {
			return false // it is scaled to nothing
		}
	}
	if st.old.work(key, cluster) != nil {
		return was.Own && !was.Removed
	}
	return is == nil || is.Own || is.Claim == "" && len(is.Works) == 0 // its cluster came back
}

var hashed = regexp.MustCompile(`^(.+)-[2456789bcdfghkmt]{10}$`)

// regenerated reports whether the step brings a cluster the same generated object
// with another hash in its name (decision 35).
func (st *step) regenerated(key, cluster string) bool {
	was := st.was.templates[key]
	if was == nil || st.now.templates[key] != nil {
		return false
	}
	m := hashed.FindStringSubmatch(was.name)
	if m == nil {
		return false
	}
	for other, t := range st.now.templates {
		n := hashed.FindStringSubmatch(t.name)
		if n == nil || n[1] != m[1] || st.was.templates[other] != nil || t.file != was.file {
			continue
		}
		if t.namespace == was.namespace && t.kind == was.kind && strings.Split(t.apiVersion, "/")[0] == strings.Split(was.apiVersion, "/")[0] {
			if w := st.next.work(other, cluster); w != nil && !w.stays() {
				return true
			}
		}
	}
	return false
}
