// SPDX-License-Identifier: Apache-2.0

package forge_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/testenv/fakeforge"
)

// fullPlan has something in every part of a plan.
func fullPlan(base, head string) *plan.Plan {
	object := report.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	date := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	hold := v1alpha1.Hold{By: "mara", Reason: "soak", Until: "2026-11-30", Ticket: "CHG-1"}
	deleted := cell("delete", "old", "us-1")
	deleted.Change, deleted.Policy, deleted.DependsOn, deleted.After, deleted.Hold = "c2", "shop", "observations", []string{"eu-1"}, &hold
	deleted.Because[0].Sources = []report.Source{{File: "kustomization.yaml", Line: 4}}
	p := planOf(base, head, cell("update", "web", "eu-1"), deleted)
	p.Digest, p.Base.Ref, p.Head.Ref = "sha256:00", "main", "change"
	p.Merge = &plan.Merge{Commit: head, Brings: head, Tree: "tree"}
	p.Images = []plan.Image{{Object: object, Container: "web", Before: "web:1", After: "web:2", Now: []string{"eu-1"}, Released: []string{"us-1"}, Held: []string{"ap-1"}}}
	p.Releases = []plan.Release{{
		Policy: "shop", Cluster: "us-1", Since: plan.ReleaseSince{Commit: base, Date: &date, Hold: hold}, Objects: []report.Object{object},
		Commits: []report.CommitInfo{{Commit: base, Subject: "web 2", Author: "tim <tim@example.com>"}},
	}}
	note := plan.HoldNote{Cluster: "ap-1", By: "mara", Reason: "soak", Until: "2026-11-30", Ticket: "CHG-1", Was: &hold, File: "policies/web.yaml", Line: 4}
	p.Suspensions = []plan.Suspension{{
		Holder: "PropagationPolicy shop/web", Policy: "web", Before: []string{"us-1"}, After: []string{"ap-1"},
		New: []plan.HoldNote{note}, Changed: []plan.HoldNote{note}, Lifted: []plan.HoldNote{note},
	}}
	p.Deferred = []plan.Deferral{{Policy: "lazy", Activated: []report.Object{object}, Deferred: 3}}
	p.Changes = []plan.Change{
		{
			ID: "c1", Object: object, Action: "update", Disposition: "now", Clusters: []string{"eu-1"}, Cells: 1, After: []string{"us-1"},
			Paths: []plan.Path{{Path: "spec.template.spec.containers[name=web].image", Before: "web:1", After: "web:2"}, {Path: "metadata.labels.tier", After: "gold"}},
			Diff:  "@@ -1 +1 @@\n-image: web:1\n+image: web:2\n",
		},
		{ID: "c2", Object: deleted.Object, Action: "delete", Disposition: "now", Clusters: []string{"us-1"}, Cells: 1, Replaces: "a", ReplacedBy: ""},
	}
	p.Findings = []plan.Finding{{
		Code: "hold-expired", Severity: fleet.SeverityCaution, Message: "it is over", Object: &object, Clusters: []string{"us-1"},
		Policy: "shop", File: "policies/web.yaml", Line: 3, Trailer: "Fairlead-Allow-Delete: x",
	}}
	return p
}

// Whatever stands in any one text of a plan that a fork made up, the comment notifies
// nobody, loads and links nothing, and commands nothing (A12, A16).
func TestHostilePlans(t *testing.T) {
	h := newFake(t, fakeforge.GitLab)
	f := h.forge(t)
	base := h.move(t)
	post(t, f, planOf(base, h.push(t)))
	text, err := json.Marshal(fullPlan(base, h.head))
	if err != nil {
		t.Fatal(err)
	}
	var whole any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}

	posted := 0
	for _, hostile := range []string{
		"@evil ![i](//evil.example) <img src=//evil.example>\n/merge\n```\n/merge\n",
		"`@evil ![i](//evil.example) <img src=//evil.example>",
		"x|``@evil --> </details> ![i](//evil.example)\r\n/merge",
		"\n````\n/merge\n@evil\n",
	} {
		for n := range leaves(whole, -1, "") {
			changed, err := json.Marshal(with(t, whole, n, hostile))
			if err != nil {
				t.Fatal(err)
			}
			p, err := forge.ReadPlan(strings.NewReader(string(changed)))
			if err != nil {
				continue
			}
			if _, err := forge.Post(t.Context(), f, p, forge.Options{Head: h.head, Timeout: forge.Timeout}); err != nil {
				continue
			}
			posted++
			all := h.bodies(t)
			for _, body := range []string{all[0], all[len(all)-1]} {
				if bad := active(body); bad != "" {
					t.Fatalf("text %d: %s\n%s\n%s", n, bad, changed, body)
				}
			}
		}
	}
	if posted < 100 {
		t.Errorf("only %d plans were posted", posted)
	}
}

// leaves counts the texts of a document of JSON, and replaces one.
func leaves(v any, at int, by string) int {
	n := 0
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			if n++; n-1 == at {
				return by
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for _, k := range sorted(v) {
				v[k] = walk(v[k])
			}
		}
		return v
	}
	walk(v)
	return n
}

func sorted(m map[string]any) (names []string) {
	for k := range m {
		names = append(names, k)
	}
	for i := range names {
		for j := i; j > 0 && names[j] < names[j-1]; j-- {
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
	return names
}

func with(t *testing.T, whole any, n int, by string) any {
	t.Helper()
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	leaves(v, n, by)
	return v
}

var (
	fenced  = regexp.MustCompile("(?ms)^```diff\n.*?^```$")
	comment = regexp.MustCompile("(?m)^<!-- [^>]* -->$")
	inCode  = regexp.MustCompile(`<code>[^<]*</code>`)
	ticks   = regexp.MustCompile("`+")
	markup  = regexp.MustCompile(`(^|[^\\])(@evil|!\[|\]\(//evil|<img|</details>$)`)
)

// withoutCode returns a line without its code spans: a run of backticks ends at the next
// one that is as long, and one that a backslash escapes begins none.
func withoutCode(line string) string {
	line = inCode.ReplaceAllString(line, "")
	rest := ""
	for {
		at := ticks.FindStringIndex(line)
		if at == nil {
			return rest + line
		}
		if at[0] > 0 && line[at[0]-1] == '\\' {
			at[1] = at[0] + 1
			rest, line = rest+line[:at[1]], line[at[1]:]
			continue
		}
		fence, end := line[at[0]:at[1]], -1
		for _, next := range ticks.FindAllStringIndex(line[at[1]:], -1) {
			if next[1]-next[0] == len(fence) {
				end = at[1] + next[1]
				break
			}
		}
		rest += line[:at[0]]
		if end < 0 {
			rest, line = rest+fence, line[at[1]:]
			continue
		}
		line = line[end:]
	}
}

// active is what a body does beside being read; "" if nothing.
func active(body string) string {
	for line := range strings.SplitSeq(body, "\n") {
		if strings.HasPrefix(line, "/") {
			return "a command: " + line
		}
	}
	rest := comment.ReplaceAllString(fenced.ReplaceAllString(body, ""), "")
	for line := range strings.SplitSeq(rest, "\n") {
		if line == "</details>" {
			continue
		}
		if found := markup.FindString(withoutCode(line)); found != "" {
			return fmt.Sprintf("%q in %q", found, line)
		}
	}
	if a, b := strings.Count(rest, "<details>"), strings.Count(rest, "\n</details>\n"); a != b {
		return fmt.Sprintf("%d folds begin and %d end", a, b)
	}
	return ""
}
