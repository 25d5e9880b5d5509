// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// ignoreFiles list the paths to skip, in gitignore's syntax. .sourceignore is
// Flux's name. Of two in one directory the later here has the last word.
var ignoreFiles = []string{".sourceignore", ".fairleadignore"}

// pattern is one line of an ignore file.
type pattern struct {
	parts   []glob // of a path relative to the file's directory
	negated bool
	dirOnly bool
	weight  int // how much a match costs
}

// glob matches one part of a path; nil matches any number of parts.
type glob []token

// token is a part of a glob: a rune, any rune, any number of them, or a class.
type token struct {
	r     rune // anyRune, anyRunes, or the rune itself
	class *regexp.Regexp
}

const (
	anyRune  = -1
	anyRunes = -2
)

// parseIgnore reads an ignore file. As in git, a line that is not a valid
// pattern matches nothing.
func parseIgnore(b []byte) (patterns []pattern) {
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimRight(line, " \t"); !strings.HasSuffix(trimmed, `\`) {
			line = trimmed
		}
		if line == "" || line[0] == '#' {
			continue
		}

		var p pattern
		line, p.negated = strings.CutPrefix(line, "!")
		line, p.dirOnly = strings.CutSuffix(line, "/")
		// A slash anywhere but at the end anchors the pattern to its directory.
		anchored := strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if !anchored {
			line = "**/" + line
		}

		p.weight = 1 + len(line)/bytesPerMatch
		valid := true
		for _, part := range splitGlob(line) {
			g, ok := parseGlob(part)
			p.parts, valid = append(p.parts, g), valid && ok
		}
		if valid {
			patterns = append(patterns, p)
		}
	}

	return patterns
}

// bytesPerMatch is how long a pattern may be to cost as much as a short one.
const bytesPerMatch = 32

// splitGlob splits a pattern at its slashes, except those in a class.
func splitGlob(text string) (parts []string) {
	begin := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '/':
			parts, begin = append(parts, text[begin:i]), i+1
		case '\\':
			i++
		case '[':
			if end := classEnd(text, i); end > 0 {
				i = end
			}
		}
	}
	return append(parts, text[begin:])
}

// classEnd is where the class that begins at i ends; 0 if it does not.
func classEnd(text string, i int) int {
	end := strings.IndexByte(text[min(i+2, len(text)):], ']')
	if end < 0 {
		return 0
	}
	return i + 2 + end
}

// parseGlob reads one part of a pattern; nil for "**". It is invalid if a class is.
func parseGlob(text string) (g glob, valid bool) {
	if text == "**" {
		return nil, true
	}

	g = glob{}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '*':
			if n := len(g); n == 0 || g[n-1].r != anyRunes {
				g = append(g, token{r: anyRunes})
			}
		case r == '?':
			g = append(g, token{r: anyRune})
		case r == '[' && classEnd(text, i) > 0:
			end := classEnd(text, i)
			class := text[i+1 : end]
			if class[0] == '!' {
				class = "^" + class[1:]
			}
			re, err := regexp.Compile("^[" + strings.ReplaceAll(class, `\`, `\\`) + "]$")
			if err != nil {
				return nil, false
			}
			g, size = append(g, token{class: re}), end+1-i
		case r == '\\':
			if i++; i < len(text) {
				r, size = utf8.DecodeRuneInString(text[i:])
				g = append(g, token{r: r})
			}
		default:
			g = append(g, token{r: r})
		}
		i += size
	}

	return g, true
}

// matches reports whether the glob matches a whole part of a path. After a mismatch
// only the last "*" takes one rune more, so the cost is the product of the lengths.
func (g glob) matches(part string) bool {
	at, star, from := 0, -1, 0
	for i := 0; i < len(part); {
		r, size := utf8.DecodeRuneInString(part[i:])
		switch {
		case at < len(g) && g[at].r == anyRunes:
			star, from = at, i
			at++
		case at < len(g) && g[at].matches(r):
			at++
			i += size
		case star >= 0:
			_, size = utf8.DecodeRuneInString(part[from:])
			from += size
			i, at = from, star+1
		default:
			return false
		}
	}

	for at < len(g) && g[at].r == anyRunes {
		at++
	}
	return at == len(g)
}

func (t token) matches(r rune) bool {
	if t.class != nil {
		return t.class.MatchString(string(r))
	}
	return t.r == anyRune || t.r == r
}

// matches reports whether the pattern matches a path. As in a glob, only the last "**"
// takes one part more.
func (p *pattern) matches(parts []string) bool {
	at, star, from := 0, -1, 0
	for i := 0; i < len(parts); {
		switch {
		case at < len(p.parts) && p.parts[at] == nil:
			if at == len(p.parts)-1 {
				return true // the rest, of at least one part
			}
			star, from = at, i
			at++
		case at < len(p.parts) && p.parts[at].matches(parts[i]):
			at++
			i++
		case star >= 0:
			from++
			i, at = from, star+1
		default:
			return false
		}
	}

	return at == len(p.parts)
}

// ignores are the patterns of a tree, by the directory of their file.
type ignores map[string][]pattern

// skips reports whether the walk skips a path. It only looks at the path
// itself, since the walk has come through its parents: as in git, nothing below
// an ignored directory can be included again.
func (g ignores) skips(name string, isDir bool) bool {
	if base := path.Base(name); base[0] == '.' && name != "." {
		return true
	}
	if len(g) == 0 {
		return false
	}

	skip := false
	parts := strings.Split(name, "/")
	for depth, dir := range parents(name) {
		patterns := g[dir]
		for i := range patterns {
			if p := &patterns[i]; (!p.dirOnly || isDir) && p.negated == skip && p.matches(parts[depth:]) {
				skip = !p.negated
			}
		}
	}

	return skip
}

// weight is how much it costs to compare a path in a directory with all patterns.
func (g ignores) weight(dir string) (weight int) {
	for _, dir := range append(parents(dir), dir) {
		for i := range g[dir] {
			weight += g[dir][i].weight
		}
	}
	return weight
}

// parents are the directories above a path, outermost first.
func parents(name string) []string {
	if name == "." {
		return nil
	}

	dirs := []string{"."}
	for i := range len(name) {
		if name[i] == '/' {
			dirs = append(dirs, name[:i])
		}
	}

	return dirs
}
