// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"regexp"
	"strings"
)

// ignoreFiles list the paths to skip, in gitignore's syntax. .sourceignore is
// Flux's name.
var ignoreFiles = []string{".fairleadignore", ".sourceignore"}

// pattern is one line of an ignore file.
type pattern struct {
	match   *regexp.Regexp // matches a path relative to the file's directory
	negated bool
	dirOnly bool
}

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

		if re, err := regexp.Compile("^" + globToRegexp(line) + "$"); err == nil {
			p.match = re
			patterns = append(patterns, p)
		}
	}

	return patterns
}

func globToRegexp(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; c {
		case '*':
			switch {
			case strings.HasPrefix(glob[i:], "**/") && (i == 0 || glob[i-1] == '/'):
				b.WriteString("(?:.*/)?")
				i += 2
			case glob[i:] == "**" && (i == 0 || glob[i-1] == '/'):
				b.WriteString(".+")
				i++
			default:
				b.WriteString("[^/]*")
			}
		case '?':
			b.WriteString("[^/]")
		case '[':
			end := strings.IndexByte(glob[min(i+2, len(glob)):], ']')
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			class := glob[i+1 : i+2+end]
			if class[0] == '!' {
				class = "^" + class[1:]
			}
			b.WriteString("[" + strings.ReplaceAll(class, `\`, `\\`) + "]")
			i += 2 + end
		case '\\':
			if i++; i < len(glob) {
				b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
			}
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}

	return b.String()
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

	skip := false
	for _, dir := range parents(name) {
		rel := name
		if dir != "." {
			rel = name[len(dir)+1:]
		}

		for _, p := range g[dir] {
			if (!p.dirOnly || isDir) && p.match.MatchString(rel) {
				skip = !p.negated
			}
		}
	}

	return skip
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
