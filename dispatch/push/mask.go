// SPDX-License-Identifier: Apache-2.0

package push

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fairlead/fairlead/dispatch/member"
)

// mask stands for a value that is not repeated.
const mask = "***"

// wordsOnly is the length up to which a value is masked only where it is a word of its
// own: 1 and true are in many a text.
const wordsOnly = 5

// masked is an error about a manifest that was sent, without the values of its
// environment variables and of its data: a webhook that refuses an object may quote
// it, and people put passwords there.
func masked(err error, manifest map[string]any) error {
	var e *member.Error
	if !errors.As(err, &e) || e.Err == nil {
		return err
	}
	text := e.Err.Error()
	for _, value := range confidential(manifest) {
		text = without(text, value)
	}
	if text == e.Err.Error() {
		return err
	}
	out := *e
	out.Err = errors.New(text)
	return &out
}

// confidential are the values that are not repeated, as a text may have them, the
// longest first.
func confidential(manifest map[string]any) []string {
	found := map[string]bool{}
	for _, field := range []string{"data", "stringData", "binaryData"} {
		leaves(manifest[field], found)
	}
	environments(manifest, found)

	var values []string
	for value := range found {
		values = append(values, value)
		if quoted, err := json.Marshal(value); err == nil && len(quoted) > 2 {
			values = append(values, string(quoted[1:len(quoted)-1]))
		}
		for line := range strings.Lines(value) {
			values = append(values, strings.TrimSpace(line))
		}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return strings.TrimSpace(v) == "" })
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(values)
}

// leaves notes the texts below a value.
func leaves(v any, found map[string]bool) {
	switch v := v.(type) {
	case string:
		found[v] = true
	case map[string]any:
		for _, each := range v {
			leaves(each, found)
		}
	case []any:
		for _, each := range v {
			leaves(each, found)
		}
	}
}

// environments notes the values of every list of environment variables.
func environments(v any, found map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, each := range v {
			if key == "env" {
				variables(each, found)
			}
			environments(each, found)
		}
	case []any:
		for _, each := range v {
			environments(each, found)
		}
	}
}

func variables(v any, found map[string]bool) {
	list, _ := v.([]any)
	for _, each := range list {
		variable, _ := each.(map[string]any)
		leaves(variable["value"], found)
	}
}

// without masks a value in a text; a short one where it is a word of its own.
func without(text, value string) string {
	if len(value) > wordsOnly {
		return strings.ReplaceAll(text, value, mask)
	}
	var b strings.Builder
	for {
		i := strings.Index(text, value)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := i + len(value)
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[end:])
		b.WriteString(text[:i])
		if isWord(before) || isWord(after) {
			b.WriteString(value)
		} else {
			b.WriteString(mask)
		}
		text = text[end:]
	}
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' }
