// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
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
			switch g := (Gone{st.preserves(key, w.Preserve), st.commit, w.Released}); {
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
			preserve, asked = preserve || now.Brakes.Preserve, true
		}
	}
	for _, owner := range st.next.Bindings {
		if owner.needs(key) {
			preserve, asked = preserve || owner.Brakes.Preserve, true
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
			if st.old.work(key, c) != nil {
				lost[key]++
			} else {
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
			for c := range b.Works {
				if st.old.work(key, c) == nil {
					gained++
				}
			}
		}
		if gained < n {
			counted += n
		}
	}
	limit := works / 2
	limited := works > 20
	switch m := st.now.maxDelete.(type) {
	case float64:
		limit, limited = int(m), true
	case string:
		percent, _ := strconv.Atoi(strings.TrimSuffix(m, "%"))
		limit, limited = works*percent/100, true
	}
	tooMuch = tooMuch || limited && counted > limit
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
