// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
)

// A comment is refused as a whole when it is too long, whatever the plan.
func TestMarkdownStaysBelowTheLimit(t *testing.T) {
	const limit = 60_000
	r := &Plan{Complete: true}
	long := strings.Repeat("x", 200)
	for i := range 3000 {
		cluster := fmt.Sprintf("%s-%d", long, i)
		r.Clusters = append(r.Clusters, Cluster{Name: cluster})
		r.Cells = append(r.Cells, Cell{Object: report.Object{Kind: "ConfigMap", Name: fmt.Sprint(long, i/30)}, Cluster: cluster,
			Action: propagate.ActionUpdate, Disposition: propagate.Now, Change: "c1", Because: []report.Because{{Code: "template", File: long, Line: i}}})
		for _, level := range []fleet.Severity{fleet.SeverityError, fleet.SeverityCaution, fleet.SeverityNotice} {
			r.Findings = append(r.Findings, Finding{Code: "no-policy", Severity: level, Message: long, File: "f", Line: i})
		}
	}
	var b strings.Builder
	if err := r.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if len(text) > limit {
		t.Errorf("the comment has %d bytes, more than %d", len(text), limit)
	}
	for _, want := range []string{"<!-- fairlead:plan:v1 -->\n", "> [!CAUTION]", "> [!WARNING]", "> [!NOTE]", "| cluster |", "</details>", "<sub>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the comment lost %q", want)
		}
	}
	for _, part := range []string{"> - and ", "| and "} {
		if !strings.Contains(text, part) {
			t.Errorf("the comment does not say how much it leaves out: no %q", part)
		}
	}
}

// What comes from a repository stays text.
func TestMarkdownIsNoMarkup(t *testing.T) {
	hostile := "a`b``c|d\n### @everyone </details> <img src=x> [x](http://y)"
	r := &Plan{
		Complete: true,
		Clusters: []Cluster{{Name: hostile}},
		Cells: []Cell{{Object: report.Object{Kind: hostile, Name: hostile}, Cluster: hostile, Action: propagate.ActionUpdate, Disposition: propagate.Now,
			Because: []report.Because{{Code: "template", File: hostile, Line: 1}}}},
		Findings: []Finding{{Code: "no-policy", Severity: fleet.SeverityError, Message: hostile, File: hostile}},
	}
	var b strings.Builder
	if err := r.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	// As a renderer does, code spans first: a run of backticks ends at the next
	// that is as long.
	var rest strings.Builder
	text := b.String()
	run := regexp.MustCompile("`+")
	for {
		at := run.FindStringIndex(text)
		if at == nil {
			break
		}
		fence := text[at[0]:at[1]]
		if at[0] > 0 && text[at[0]-1] == '\\' {
			rest.WriteString(text[:at[0]+1])
			text = text[at[0]+1:]
			continue
		}
		rest.WriteString(text[:at[0]])
		text = text[at[1]:]
		end := -1
		for _, close := range run.FindAllStringIndex(text, -1) {
			if text[close[0]:close[1]] == fence {
				end = close[1]
				break
			}
		}
		if end < 0 {
			t.Fatalf("a code span does not end:\n%s", b.String())
		}
		if strings.Contains(text[:end], "\n") {
			t.Errorf("a code span goes over lines: %q", text[:end])
		}
		text = text[end:]
	}
	rest.WriteString(text)
	outside := regexp.MustCompile(`\\[^\n]`).ReplaceAllString(rest.String(), "") // what is escaped is text
	for _, bad := range []string{"@everyone", "<img", "\n### @", "](http"} {
		if strings.Contains(outside, bad) {
			t.Errorf("%q is markup:\n%s", bad, b.String())
		}
	}
	if n := strings.Count(outside, "</details>"); n != 1 {
		t.Errorf("%d folds end:\n%s", n, b.String())
	}
}

// Nor does a forge make links or references of it (A16).
func TestMarkdownLinksNothing(t *testing.T) {
	for text, want := range map[string]string{
		"see https://evil.example":  "see https:\u200b//evil.example",
		"HTTP://evil.example":       "HTTP:\u200b//evil.example",
		"www.evil.example, Www.x.y": "www\u200b.evil.example, Www\u200b.x.y",
		"GH-12 and gh-12":           "GH\u200b-12 and gh\u200b-12",
		"acme/app#12":               "acme/app\\#12",
		"a:b, web.yaml, x-y":        "a:b, web.yaml, x-y",
		"mail ann@example.com":      "mail ann@\u200bexample.com",
	} {
		if got := plainText(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
