// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"strings"
	"unicode/utf8"

	"github.com/fairlead/fairlead/printable"
)

// What this package adds to the plan's own Markdown is words of ours, counts, and code
// spans. In those nothing links, notifies, loads or ends a cell of a table.

// codeSpan returns a text as code.
func codeSpan(text string) string {
	text = strings.NewReplacer("`", "'", "|", "¦").Replace(strings.Join(strings.Fields(oneLine(text)), " "))
	if text == "" {
		text = "-"
	}
	return "`" + text + "`"
}

// verdictText returns a verdict as plain text where it is made of counts and words, and
// as code where there is anything else in it.
func verdictText(verdict string) string {
	if strings.Trim(verdict, "abcdefghijklmnopqrstuvwxyz0123456789 ,;") == "" {
		return verdict
	}
	return codeSpan(verdict)
}

// oneLine returns a text as a piece of a line, without invisible characters.
func oneLine(text string) string {
	return printable.Line(strings.ReplaceAll(text, "\u200b", ""))
}

// shortened returns a text as a verdict, which has at most so many bytes.
func shortened(text string) string { return cutTo(oneLine(text), mostVerdict) }

// cutTo returns a text with at most so many bytes.
func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}

	const dots = "…"
	end := most - len(dots)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}
