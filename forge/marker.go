// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"fmt"
	"strings"
)

// MostScope is how many bytes the name of a scope may have.
const MostScope = 100

// marker is the first line of our comment: by it, and by the author, it is found again.
func marker(scope string) string { return "<!-- fairlead:plan:v1" + scoped(scope) + " -->" }

// alertMarker is the first line of a short comment about what a push added. Its key is
// that of what it tells, so that it is told once.
func alertMarker(scope, key string) string {
	return "<!-- fairlead:plan:v1:added" + scoped(scope) + " key=" + key + " -->"
}

// scoped is a scope as part of a marker. What could end a comment of HTML, or a line, is
// escaped; so different scopes have different markers.
func scoped(scope string) string {
	if scope == "" {
		return ""
	}

	var b strings.Builder
	b.WriteString(" scope=")
	for i := range len(scope) {
		c := scope[i]
		if isWord(c) || c == '-' && i > 0 && scope[i-1] != '-' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._/:", c) >= 0
}

// firstLine returns the first line of a body. A body that was edited in a browser has
// the line ends of one.
func firstLine(body string) string {
	line, _, _ := strings.Cut(body, "\n")
	return strings.TrimRight(line, "\r ")
}

// sameBody reports whether two bodies read alike: forges change line ends, and cut
// blanks at the end.
func sameBody(a, b string) bool { return settled(a) == settled(b) }

func settled(body string) string {
	return strings.TrimSpace(strings.ReplaceAll(body, "\r\n", "\n"))
}
