// SPDX-License-Identifier: Apache-2.0

package draw

// State is the state of a mark: where a cluster stands, or how a commit was taken.
type State string

// The states, worst last.
const (
	Current    State = "current"
	Absent     State = "not placed"
	Deferred   State = "deferred"
	InProgress State = "in progress"
	Outdated   State = "outdated"
	Held       State = "held"
	Unknown    State = "unknown"
	Failed     State = "failed"
)

// look is how a state is shown. The glyphs are those of the matrix.
type look struct{ glyph, class string }

var looks = map[State]look{
	Current:    {"=", "s-current"},
	Absent:     {".", "s-absent"},
	Deferred:   {"L", "s-deferred"},
	InProgress: {">", "s-progress"},
	Outdated:   {"-", "s-outdated"},
	Held:       {"H", "s-held"},
	Unknown:    {"?", "s-unknown"},
	Failed:     {"X", "s-failed"},
}

// look of a state that nobody knows is that of Unknown.
func (s State) look() look {
	if l, ok := looks[s]; ok {
		return l
	}
	return looks[Unknown]
}
