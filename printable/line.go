// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns a text as a piece of one line: what is not printable is a blank.
func Line(text string) string {
	if isPlain(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if isHidden(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}

// isPlain is the usual case, and needs no copy.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// isHidden reports whether a rune has no shape of its own: control characters, line
// and paragraph separators, and format characters, the bidirectional marks among them.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError
}
