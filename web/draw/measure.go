// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"strings"
	"unicode"

	"github.com/fairlead/fairlead/printable"
)

// The sizes of text that Style sets.
const (
	sizeName = 13.0
	sizeNote = 11.5
)

// width estimates how wide a text is set, for a sans serif that is rather wide: no
// font is at hand. Too wide an estimate cuts a name early, too narrow a one runs it
// into its neighbour.
func width(text string, size float64) (w float64) {
	for _, r := range text {
		w += em(r) * size
	}
	return w
}

func em(r rune) float64 {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case r >= 0x1100:
		return 1.05 // East Asian and pictures, and what is narrower than it seems
	case strings.ContainsRune("iljI.,:;'|! ft()[]-/", r):
		return 0.38
	case strings.ContainsRune("mwMW@%", r):
		return 0.97
	case unicode.IsUpper(r):
		return 0.70
	}
	return 0.62
}

// cut shortens a text to a width, with an ellipsis in place of its end.
func cut(text string, size, most float64) string {
	text = printable.Line(text)
	if width(text, size) <= most {
		return text
	}

	most -= size // of the ellipsis
	for i, r := range text {
		if most -= em(r) * size; most < 0 {
			return strings.TrimRight(text[:i], " ") + "…"
		}
	}
	return text
}
