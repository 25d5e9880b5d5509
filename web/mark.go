// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// mark is the state of one template on one cluster as the page shows it: the worst of what
// is known. The worst mark is the least.
type mark uint8

// The marks, worst first.
const (
	markFailed mark = iota
	markUnknown
	markBehind
	markHeld
	markRolling
	markDeferred
	markCurrent
	markAbsent
	marks
)

// sign is how a mark is shown. State is never told by colour alone.
type sign struct{ Glyph, Word, Means string }

var signs = [marks]sign{
	markFailed:   {"X", "failed", "failed, missing or foreign"},
	markUnknown:  {"?", "unknown", "the cluster does not answer"},
	markBehind:   {"-", "behind", "runs something older"},
	markHeld:     {"H", "held", "held back, with the number of commits that wait"},
	markRolling:  {">", "rolling", "rolls out, or is being moved away"},
	markDeferred: {"L", "deferred", "a change waits for its template to change"},
	markCurrent:  {"=", "current", "has what is wanted"},
	markAbsent:   {".", "not placed", "not sent there"},
}

// Glyph is the sign of a mark.
func (m mark) Glyph() string { return signs[m].Glyph }

// Word is its name, and its class in the style sheet.
func (m mark) Word() string { return signs[m].Word }

// Class is its class in the style sheet.
func (m mark) Class() string { return strings.ReplaceAll(signs[m].Word, " ", "-") }

// cell is one template on one cluster.
type cell struct {
	mark
	// held, behind and deferred are told beside the mark, which is the worst of them.
	held, deferred, behind bool
	waiting                int   // commits that wait, or that it is behind; -1 if nobody knows
	replicas               int64 // that it should run; -1 if the kind has none
	available              int64 // during a rollout; -1 otherwise
	why                    string
}

// on returns what is known of a binding on a cluster. waits counts the commits that are
// held back there; seen is what was observed, or nil.
func on(w *propagate.Work, evicts, deferred bool, waits int, seen *status.Cell) cell {
	c := cell{mark: markCurrent, replicas: -1, available: -1, deferred: deferred}
	if w != nil {
		c.held, c.waiting = w.Held, waits
		if w.Released != nil && w.Released.Replicas > 0 {
			c.replicas = w.Released.Replicas
		}
		c.behind = w.Held && waits > 0
	}

	switch {
	case w == nil && deferred:
		c.mark, c.why = markDeferred, "a change waits for the template to change"
	case w == nil:
		c.mark = markAbsent
	case w.Blocked != "":
		c.mark, c.why = markFailed, w.Blocked
	case w.Held:
		c.mark, c.why = markHeld, heldText(w)
	case evicts:
		c.mark, c.why = markRolling, "it is being moved away"
	case deferred:
		c.mark, c.why = markDeferred, "a change waits for the template to change"
	}
	if seen != nil {
		c.see(seen)
	}
	return c
}

func heldText(w *propagate.Work) string {
	if w.Released == nil {
		return "it is held, and nothing was released to it yet"
	}
	return "it is held and runs " + source.Short(w.Released.Revision)
}

// see adds what was observed.
func (c *cell) see(seen *status.Cell) {
	if seen.Replicas >= 0 {
		c.replicas = seen.Replicas
	}
	worst := func(m mark) {
		if m < c.mark || c.mark == markAbsent {
			c.mark, c.why = m, seen.Reason()
		}
	}
	switch seen.State {
	case status.Failed:
		worst(markFailed)
	case status.Unknown:
		worst(markUnknown)
	case status.InProgress:
		worst(markRolling)
		if o := seen.Observed; o != nil && o.Replicas >= 0 {
			c.replicas, c.available = o.Replicas, o.Available
		}
	case status.Outdated:
		c.behind, c.waiting = true, seen.Behind
		if !seen.Held {
			worst(markBehind)
		}
	}
}

// Text is a cell in its signs, such as "H3 2": held, three commits wait, two replicas.
func (c cell) Text() string {
	var b strings.Builder
	b.WriteString(c.Glyph())
	if (c.mark == markHeld || c.mark == markBehind) && c.waiting > 0 {
		fmt.Fprint(&b, c.waiting)
	}
	if c.deferred && c.mark != markDeferred {
		b.WriteString(signs[markDeferred].Glyph)
	}
	return b.String()
}

// Replicas is how many it should run, and during a rollout how many are available; "" for
// kinds without.
func (c cell) Replicas() string {
	switch {
	case c.available >= 0:
		return fmt.Sprintf("%d/%d", c.available, c.replicas)
	case c.replicas >= 0:
		return fmt.Sprint(c.replicas)
	}
	return ""
}

// Waits is how many commits wait, or that it is behind, in words; "" if none.
func (c cell) Waits() string {
	switch {
	case c.waiting <= 0:
		return ""
	case c.mark == markBehind:
		return plural(c.waiting, "commit behind", "commits behind")
	}
	return plural(c.waiting, "commit waits", "commits wait")
}

// Says is a cell in words, for who cannot see it: "held, 3 commits wait, 2 replicas".
func (c cell) Says() string {
	words := []string{c.Word()}
	if text := c.Waits(); text != "" {
		words = append(words, text)
	}
	if c.deferred && c.mark != markDeferred {
		words = append(words, "a change is deferred")
	}
	if c.replicas >= 0 {
		words = append(words, plural(int(c.replicas), "replica", "replicas"))
	}
	if c.available >= 0 {
		words = append(words, fmt.Sprintf("%d available", c.available))
	}
	return strings.Join(words, ", ")
}

// Why is the reason for its state; "" if there is nothing to explain.
func (c cell) Why() string { return c.why }

// Title is Says with the reason.
func (c cell) Title() string {
	if c.why == "" {
		return c.Says()
	}
	return c.Says() + ": " + c.why
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// tally counts marks. What a cell is beside its mark counts, too.
type tally struct {
	marks [marks]int32
	// held, behind and deferred count the cells of which that is true, whatever else is.
	held, behind, deferred int32
	waiting                int32 // commits, of all cells
}

func (t *tally) add(c cell) {
	t.marks[c.mark]++
	if c.held {
		t.held++
	}
	if c.behind {
		t.behind++
	}
	if c.deferred {
		t.deferred++
	}
	t.waiting += int32(c.waiting)
}

func (t *tally) join(other *tally) {
	for m := range other.marks {
		t.marks[m] += other.marks[m]
	}
	t.held, t.behind, t.deferred = t.held+other.held, t.behind+other.behind, t.deferred+other.deferred
	t.waiting += other.waiting
}

// leave takes away what join has added.
func (t *tally) leave(other *tally) {
	for m := range other.marks {
		t.marks[m] -= other.marks[m]
	}
	t.held, t.behind, t.deferred = t.held-other.held, t.behind-other.behind, t.deferred-other.deferred
	t.waiting -= other.waiting
}

// all counts the cells of works, and of what is deferred to be one.
func (t *tally) all() (n int32) {
	for m, count := range t.marks {
		if mark(m) != markAbsent {
			n += count
		}
	}
	return n
}

// worst is the worst mark that was counted.
func (t *tally) worst() mark {
	for m, n := range t.marks {
		if n > 0 {
			return mark(m)
		}
	}
	return markAbsent
}

// of counts the cells that a filter shows.
func (t *tally) of(filter string) int32 {
	switch filter {
	case "held":
		return t.held
	case "behind":
		return t.behind
	case "deferred":
		return t.deferred
	case "failed":
		return t.marks[markFailed]
	case "unknown":
		return t.marks[markUnknown]
	case "rolling":
		return t.marks[markRolling]
	}
	return t.all()
}
