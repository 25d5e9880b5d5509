// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
)

// Whatever the plan and whatever its names: a comment is no longer than a forge takes,
// is found again by its one marker, its folds and fences end, and what comes from the
// repository stays text.
func TestMarkdownOfAnyPlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := anyPlan(rt, rapid.SampledFrom([]int{1, 4, 40}).Draw(rt, "size"))
		for _, limit := range []int{GitHubLimit, GitLabLimit} {
			var b strings.Builder
			if err := r.Markdown(&b, limit); err != nil {
				rt.Fatal(err)
			}
			if b.Len() > limit {
				rt.Fatalf("the comment has %d bytes, more than %d", b.Len(), limit)
			}
			checkComment(rt, b.String())
		}
	})
}

// A plan of ten thousand lines keeps its verdict, its findings and its clusters, and says
// how much is left out.
func TestMarkdownOfALargePlan(t *testing.T) {
	r := &Plan{Complete: true}
	long := strings.Repeat("x", 200)
	for i := range 3000 {
		cluster := fmt.Sprintf("%s-%d", long, i)
		r.Clusters = append(r.Clusters, Cluster{Name: cluster, CellCounts: CellCounts{Now: 1}})
		r.Changes = append(r.Changes, Change{ID: fmt.Sprint("c", i), Object: report.Object{Kind: "ConfigMap", Name: fmt.Sprint(long, i)},
			Action: propagate.ActionUpdate, Disposition: propagate.Now, Clusters: []string{cluster}, Cells: 1,
			Paths: []Path{{Path: "data.key", Before: "a", After: fmt.Sprint(i)}}})
		for _, level := range []fleet.Severity{fleet.SeverityError, fleet.SeverityCaution, fleet.SeverityNotice} {
			r.Findings = append(r.Findings, Finding{Code: "no-policy", Severity: level, Message: long, File: "f", Line: i})
		}
	}

	for limit, wants := range map[int][]string{
		GitHubLimit: {"> [!CAUTION]", "> [!WARNING]", "> [!NOTE]", "| cluster |", "| and ", "<sub>", "- and "},
		GitLabLimit: {"> [!CAUTION]", "| cluster |", "<details><summary><b>Changes</b>: 3000 lines</summary>"},
	} {
		var b strings.Builder
		if err := r.Markdown(&b, limit); err != nil {
			t.Fatal(err)
		}
		if b.Len() > limit {
			t.Errorf("the comment has %d bytes, more than %d", b.Len(), limit)
		}
		checkComment(t, b.String())
		for _, want := range wants {
			if !strings.Contains(b.String(), want) {
				t.Errorf("in %d bytes the comment lost %q", limit, want)
			}
		}
	}
}

// hostile are texts that would be markup, end something early, notify or load.
var hostile = []string{
	"a`b``c|d", "\n### heading", "@everyone", "</details>", "<img src=http://x/y>", "[x](http://y)", "![x](y)", "```\nend", "~~~", "-->",
	"<!-- fairlead:plan:v1 -->", "www.evil.example", "https://evil.example", "acme/app#12", "GH-1", ":tada:", "\\`", "<script>alert(1)</script>", "plain-name", "&lt;b&gt;",
}

func anyText(rt *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(hostile), 1, 3).Draw(rt, "text"), " ")
}

// anyPlan is a plan of so many clusters, changes and findings.
func anyPlan(rt *rapid.T, size int) *Plan {
	r := &Plan{Complete: rapid.Bool().Draw(rt, "complete")}
	severities := []fleet.Severity{fleet.SeverityError, fleet.SeverityCaution, fleet.SeverityNotice}
	dispositions := []propagate.Disposition{propagate.Now, propagate.Released, propagate.Held, propagate.Blocked, propagate.Deferred}
	actions := []propagate.Action{propagate.ActionCreate, propagate.ActionUpdate, propagate.ActionDelete, propagate.ActionPreserve, propagate.ActionScale}
	repeat := rapid.SampledFrom([]int{1, 50}).Draw(rt, "repeat")

	var clusters []string
	for i := range size {
		name := fmt.Sprint(anyText(rt), i)
		clusters = append(clusters, name)
		r.Clusters = append(r.Clusters, Cluster{Name: name, CellCounts: CellCounts{Now: rapid.IntRange(0, 3).Draw(rt, "now"), Deleted: rapid.IntRange(0, 1).Draw(rt, "deleted")}})
		r.Findings = append(r.Findings, Finding{Code: "no-policy", Severity: rapid.SampledFrom(severities).Draw(rt, "severity"), Message: anyText(rt), File: anyText(rt), Trailer: anyText(rt)})
		note := HoldNote{Cluster: name, By: anyText(rt), Reason: anyText(rt), Until: anyText(rt), Ticket: anyText(rt), File: anyText(rt)}
		r.Suspensions = append(r.Suspensions, Suspension{Holder: anyText(rt), New: []HoldNote{note}, Lifted: []HoldNote{note}})
		commit := report.CommitInfo{Commit: fmt.Sprintf("%040d", i), Subject: anyText(rt), Author: anyText(rt)}
		r.Releases = append(r.Releases, Release{Policy: anyText(rt), Cluster: name, Commits: []report.CommitInfo{commit}})
		r.Deferred = append(r.Deferred, Deferral{Policy: anyText(rt), Deferred: 1})
	}
	for i := range size {
		id := fmt.Sprint("c", i+1)
		object := report.Object{Kind: anyText(rt), Namespace: anyText(rt), Name: fmt.Sprint(anyText(rt), i)}
		r.Changes = append(r.Changes, Change{ID: id, Object: object, Action: rapid.SampledFrom(actions).Draw(rt, "action"), Disposition: rapid.SampledFrom(dispositions).Draw(rt, "disposition"),
			Clusters: clusters, Cells: size, Paths: []Path{{Path: anyText(rt), Before: anyText(rt), After: anyText(rt)}}, Diff: strings.Repeat("+"+anyText(rt)+"\n-"+anyText(rt)+"\n", repeat)})
		r.Cells = append(r.Cells, Cell{Object: object, Cluster: clusters[0], Change: id, Because: []report.Because{{Code: "template", File: anyText(rt), Line: 1, Sources: []report.Source{{File: anyText(rt), Line: 2}}}}})
		r.Images = append(r.Images, Image{Object: object, Before: anyText(rt), After: anyText(rt), Now: clusters, Held: clusters})
	}
	return r
}

// checker is a test of any kind.
type checker interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// checkComment reads a comment as a forge does: fences first, then code spans; what is
// left and not escaped is markup.
func checkComment(t checker, text string) {
	t.Helper()
	if n := strings.Count(text, Marker+"\n"); n < 1 || !strings.HasPrefix(text, Marker+"\n") {
		t.Errorf("the comment does not begin with its marker")
	}

	outside := withoutCode(t, text)
	if n := strings.Count(outside, "<!--"); n != 1 {
		t.Errorf("%d comments of HTML", n)
	}
	if begin, end := strings.Count(outside, "<details>"), strings.Count(outside, "</details>"); begin != end {
		t.Errorf("%d folds begin and %d end:\n%s", begin, end, text)
	}
	outside = regexp.MustCompile(`\\[^\n]`).ReplaceAllString(outside, "") // what is escaped is text
	for _, bad := range []string{"@everyone", "<img", "<script", "](", "\n### heading", "https://", "www.", "GH-1", "#12", ":tada:"} {
		if strings.Contains(outside, bad) {
			t.Errorf("%q is markup:\n%s", bad, text)
		}
	}
}

var (
	fenceLine = regexp.MustCompile("^(`{3,})diff$")
	ticks     = regexp.MustCompile("`+")
	htmlSpan  = regexp.MustCompile("<code>[^<]*</code>")
)

// withoutCode removes fenced blocks and code spans.
func withoutCode(t checker, text string) string {
	var rest []string
	mark := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch begins := fenceLine.FindStringSubmatch(line); {
		case mark != "":
			if strings.TrimSpace(line) == mark {
				mark = ""
			}
		case begins != nil:
			mark = begins[1]
		default:
			rest = append(rest, withoutSpans(t, htmlSpan.ReplaceAllString(line, "")))
		}
	}
	if mark != "" {
		t.Fatalf("a fence does not end:\n%s", text)
	}
	return strings.Join(rest, "\n")
}

// withoutSpans removes the code spans of a line: a run of backticks ends at the next that
// is as long.
func withoutSpans(t checker, line string) string {
	var rest strings.Builder
	for {
		at := ticks.FindStringIndex(line)
		if at == nil {
			rest.WriteString(line)
			return rest.String()
		}
		if at[0] > 0 && line[at[0]-1] == '\\' {
			rest.WriteString(line[:at[0]+1])
			line = line[at[0]+1:]
			continue
		}

		mark := line[at[0]:at[1]]
		rest.WriteString(line[:at[0]])
		line = line[at[1]:]
		end := -1
		for _, closes := range ticks.FindAllStringIndex(line, -1) {
			if line[closes[0]:closes[1]] == mark {
				end = closes[1]
				break
			}
		}
		if end < 0 {
			t.Fatalf("a code span does not end on its line: %q", line)
		}
		line = line[end:]
	}
}

// A page takes nothing from the repository for markup either.
func TestHTMLIsNoMarkup(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		if err := anyPlan(rt, 4).HTML(&b); err != nil {
			rt.Fatal(err)
		}
		for _, bad := range []string{"<img", "<script", "<a ", "<!-- fairlead"} {
			if strings.Contains(b.String(), bad) {
				rt.Fatalf("%q is markup", bad)
			}
		}
		if begin, end := strings.Count(b.String(), "<details"), strings.Count(b.String(), "</details>"); begin != end {
			rt.Fatalf("%d folds begin and %d end", begin, end)
		}
	})
}

// Nor does a forge make links or references of it (A16).
func TestMarkdownLinksNothing(t *testing.T) {
	for text, want := range map[string]string{
		"see https://evil.example":  "see https:\u200b//evil.example",
		"HTTP://evil.example":       "HTTP:\u200b//evil.example",
		"www.evil.example, Www.x.y": "www\u200b.evil.example, Www\u200b.x.y",
		"GH-12 and gh-12":           "GH\u200b-12 and gh\u200b-12",
		"acme/app#12":               "acme/app\\#\u200b12",
		"!7 and ~bug, 50% and # 1":  "\\!\u200b7 and \\~\u200bbug, 50% and \\# 1",
		"web.yaml:12: :tada: a:b:c": "web.yaml:\u200b12: :\u200btada: a:\u200bb:c",
		"a:b, web.yaml, x-y":        "a:b, web.yaml, x-y",
		"mail ann@example.com":      "mail ann@\u200bexample.com",
	} {
		if got := plainText(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
