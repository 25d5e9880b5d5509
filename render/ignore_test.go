// SPDX-License-Identifier: Apache-2.0

package render

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A pattern matches what the regular expression of the same meaning matches.
func TestIgnorePatternsEqualExpressions(t *testing.T) {
	part := rapid.StringMatching(`(\*\*|[ab*?.]{1,4}|a\[!?[abc]\]b?|\\\*a?|)`)
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "line"), "/")
		name := strings.Join(rapid.SliceOfN(rapid.StringMatching(`[ab*.c]{1,4}`), 1, 4).Draw(t, "name"), "/")
		patterns := parseIgnore([]byte(line))
		re, err := regexp.Compile("^" + expression(line) + "$")
		if err != nil || line == "" || line[0] == '!' || line[0] == '#' {
			return
		}
		want := re.MatchString(name)
		if got := len(patterns) == 1 && patterns[0].matches(strings.Split(name, "/")); got != want {
			t.Fatalf("%q of %q: got %t, want %t", line, name, got, want)
		}
	})
}

// expression is a pattern as a regular expression.
func expression(line string) string {
	line = strings.TrimSuffix(line, "/")
	if !strings.Contains(line, "/") {
		line = "**/" + line
	}

	glob := strings.TrimPrefix(line, "/")
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

// A name in another alphabet is one, and a class may hold a slash.
func TestIgnorePatternsOfOtherAlphabets(t *testing.T) {
	for line, names := range map[string][2]string{"grün/*": {"grün/a", "grun/a"}, "?": {"ü", "üü"}, "[ä-ü]x": {"öx", "x"}, `\*`: {"*", "a"}, "a*b*c": {"axxbyybzc", "axxbyyb"}} {
		p := parseIgnore([]byte(line))[0]
		if !p.matches(strings.Split(names[0], "/")) || p.matches(strings.Split(names[1], "/")) {
			t.Errorf("%q: %s %t, %s %t", line, names[0], p.matches(strings.Split(names[0], "/")), names[1], p.matches(strings.Split(names[1], "/")))
		}
	}
}
