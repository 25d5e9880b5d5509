// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"regexp"
	"strings"
)

// mentionsSecret reports whether a file may hold a value of a Secret: it defines one,
// generates one, refers to one, or is encrypted with SOPS.
func mentionsSecret(b []byte) bool {
	lower := bytes.ToLower(b)
	return bytes.Contains(lower, []byte("secret")) || bytes.Contains(lower, []byte("sops"))
}

// secret reports whether any file that the unit has read so far may hold a value of a
// Secret. It reads them again, and is only asked when something is wrong.
func (v *view) secret() bool {
	for name, s := range v.reads {
		if s == absent || s == directory || s == special {
			continue
		}
		if b, err := read(v.fsys, name); err == nil && mentionsSecret(b) {
			return true
		}
	}
	return false
}

// quoting are the complaints of the YAML parser that quote a value, and what is said
// instead, in every file (decision 48): which value is meant, the line says.
var quoting = []struct {
	words *regexp.Regexp
	safe  string
}{
	{regexp.MustCompile("(?s)cannot decode (\\S+) `.*` as an? (\\S+)"), "a value is $1, and tagged as $2"},
	{regexp.MustCompile("(?s)cannot unmarshal (\\S+) `.*` into (\\S+)"), "a value is $1, must be $2"},
	{regexp.MustCompile("(?s)unknown anchor '.*' referenced"), "an alias refers to no anchor; a text that begins with * needs quotes"},
	{regexp.MustCompile("(?s)anchor '.*' value contains itself"), "the value of an anchor contains itself"},
	{regexp.MustCompile("(?s)invalid map key: .*"), "a key is a list or an object"},
}

// withoutValues is a complaint of the YAML parser without the value that it quotes.
func withoutValues(text string) string {
	for _, q := range quoting {
		text = q.words.ReplaceAllString(text, q.safe)
	}
	return text
}

// identities are what kustomize says of a unit's objects in terms of their kinds and
// names only.
var identities = regexp.MustCompile(`no matches for Id [^;\s]+|may not add resource with an already registered id: [^'";\s]+`)

// words are kustomize's own about why it cannot build. It likes to quote what it reads:
// a literal, a whole patch, the content of a node. Of a unit that may hold a value of a
// Secret only kinds and names are repeated.
func (k *kustomized) words(err error) string {
	text := k.trimPaths(err)
	if !k.secret() {
		return text
	}
	if m := identities.FindString(strings.ReplaceAll(text, "\n", " ")); m != "" {
		return m
	}
	return "it cannot build this, and what it says may quote a value of a Secret; 'kustomize build' of the directory shows it"
}
