// SPDX-License-Identifier: Apache-2.0

package forge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/testenv/fakeforge"
)

// A marker is one line that ends where we end it, and every scope has its own.
func TestMarker(t *testing.T) {
	for scope, want := range map[string]string{
		"":                 "<!-- fairlead:plan:v1 -->",
		"acme/fleet:main":  "<!-- fairlead:plan:v1 scope=acme/fleet:main -->",
		"eu-1":             "<!-- fairlead:plan:v1 scope=eu-1 -->",
		"x --> @all":       "<!-- fairlead:plan:v1 scope=x%20-%2D%3E%20%40all -->",
		"a--!>b\n# c":      "<!-- fairlead:plan:v1 scope=a-%2D%21%3Eb%0A%23%20c -->",
		"-":                "<!-- fairlead:plan:v1 scope=%2D -->",
		"größe%20":         "<!-- fairlead:plan:v1 scope=gr%C3%B6%C3%9Fe%2520 -->",
		"two\u202ewords\t": "<!-- fairlead:plan:v1 scope=two%E2%80%AEwords%09 -->",
	} {
		if got := forge.Marker(scope); got != want {
			t.Errorf("%q: got %s, want %s", scope, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		m := forge.Marker(a)
		if a != b && m == forge.Marker(b) {
			t.Fatalf("%q and %q have the same marker", a, b)
		}
		if inner := strings.TrimSuffix(strings.TrimPrefix(m, "<!--"), "-->"); strings.Contains(inner, "--") || strings.ContainsAny(m, "\n\r") {
			t.Fatalf("%q ends its comment: %s", a, m)
		}
	})
}

func TestVerdictText(t *testing.T) {
	for verdict, want := range map[string]string{
		"11 now, 1 released; 2 held": "11 now, 1 released; 2 held",
		"[x](http://evil) @all":      "`[x](http://evil) @all`",
		"a`b|c":                      "`a'b¦c`",
		"":                           "",
	} {
		if got := forge.VerdictText(verdict); got != want {
			t.Errorf("%q: got %s, want %s", verdict, got, want)
		}
	}
}

// A code span has exactly the two backticks that it begins and ends with.
func TestCodeSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("`|<>@#\n\r\u202e\u200b")))).Draw(t, "text")
		got := forge.CodeSpan(text)
		if strings.Count(got, "`") != 2 || len(got) < 3 || strings.ContainsAny(got, "|\n\r\u202e") {
			t.Fatalf("%q: %q", text, got)
		}
	})
}

// An edited or hostile body is no record, or a bounded one.
func TestRecordOfABody(t *testing.T) {
	const begin, end = "x\n<!-- fairlead:plan:v1:record ", " -->\n"
	whole := `{"head":"` + headSHA + `","verdict":"1 now"}`
	for name, test := range map[string]struct{ body, want string }{
		"none":                 {"x", ""},
		"one":                  {begin + whole + end, "<!-- fairlead:plan:v1:record " + whole + " -->"},
		"of a browser":         {strings.ReplaceAll(begin+whole+end, "\n", "\r\n"), "<!-- fairlead:plan:v1:record " + whole + " -->"},
		"the last one counts":  {begin + "{}" + end + begin + whole + end, "<!-- fairlead:plan:v1:record " + whole + " -->"},
		"cut off":              {begin + whole, ""},
		"no JSON":              {begin + "{" + end, ""},
		"another head":         {begin + `{"head":"../../x"}` + end, ""},
		"not at the beginning": {"x <!-- fairlead:plan:v1:record " + whole + end, ""},
		"too long":             {begin + `{"head":"` + headSHA + `","verdict":"` + strings.Repeat("x", 20_000) + `"}` + end, ""},
		"an end inside":        {begin + `{"head":"` + headSHA + `","verdict":"a --> b"}` + end, "<!-- fairlead:plan:v1:record " + `{"head":"` + headSHA + `","verdict":"a -\u002d\u003e b"}` + " -->"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := forge.Remembered(test.body); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Many pushes keep the comment bounded; the last verdicts are kept, and the others
// counted.
func TestManyPushes(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	base := h.move(t)
	f := h.forge(t)
	for range 15 {
		post(t, f, planOf(base, h.push(t), cell("update", "web", "eu-1")))
	}
	body := h.bodies(t)[0]
	has(t, body, "Earlier plans of this pull request (14)", "| | and 4 before |")
	if n := strings.Count(body, "| 1 now |"); n != 10 || len(h.bodies(t)) != 1 {
		t.Errorf("%d earlier plans in %d comments:\n%s", n, len(h.bodies(t)), body)
	}
}

// A comment whose record somebody destroyed is edited as before.
func TestEditedByHand(t *testing.T) {
	h := newFake(t, fakeforge.GitLab)
	base := h.move(t)
	f := h.forge(t)
	post(t, f, planOf(base, h.push(t), cell("update", "web", "eu-1")))
	h.Server.Fail(nil)
	h.Say(7, fakeforge.Bot, "<!-- fairlead:plan:v1 scope=other -->\r\nanother fleet")
	post(t, f, planOf(base, h.push(t), cell("delete", "web", "eu-1")))
	if got := h.bodies(t); len(got) != 3 || got[1] != "<!-- fairlead:plan:v1 scope=other -->\r\nanother fleet" {
		t.Errorf("the comments are %q", got)
	}
}

// The longest plan, with all that a comment remembers, is one that GitHub takes.
func TestLongestComment(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	base := h.move(t)
	f := h.forge(t)
	o := forge.Options{Scope: strings.Repeat("ß", forge.MostScope/2), Timeout: forge.Timeout}
	for range 13 {
		p := planOf(base, h.push(t))
		for n := range 200 {
			c := cell("delete", fmt.Sprintf("web-%03d-%s", n, strings.Repeat("x", 80)), fmt.Sprintf("cluster-%s-%03d", strings.Repeat("y", 60), n))
			c.Change = fmt.Sprint("c", n)
			more := planOf(base, h.head, c)
			p.Cells, p.Clusters = append(p.Cells, more.Cells...), append(p.Clusters, more.Clusters...)
			p.Changes = append(p.Changes, plan.Change{ID: c.Change, Object: c.Object, Action: c.Action, Disposition: c.Disposition, Clusters: []string{c.Cluster}, Cells: 1})
			p.Findings = append(p.Findings, plan.Finding{Code: fmt.Sprint("code-", n), Severity: fleet.SeverityNotice, Message: strings.Repeat("@acme ", 100)})
		}
		p.Summary.Cells.Deleted = 1 << 60
		if _, err := forge.Post(t.Context(), f, p, o); err != nil {
			t.Fatal(err)
		}
	}
	body := h.bodies(t)[0]
	if len(body) < 40_000 {
		t.Errorf("the plan is no long one: %d bytes", len(body))
	}
	has(t, body, "Earlier plans of this pull request (12)")
	if forge.Remembered(body) == "" {
		t.Error("it remembers nothing")
	}
}

// Each scope has a comment and a status of its own.
func TestScopes(t *testing.T) {
	h := newFake(t, fakeforge.Gitea)
	p := planOf(h.move(t), h.push(t), cell("update", "web", "eu-1"))
	f := h.forge(t)
	for _, scope := range []string{"eu", "us", "eu"} {
		if _, err := forge.Post(t.Context(), f, p, forge.Options{Scope: scope, Timeout: forge.Timeout}); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.bodies(t); len(got) != 2 || !strings.HasPrefix(got[0], "<!-- fairlead:plan:v1 scope=eu -->\n") {
		t.Errorf("the comments are %q", got)
	}
	var names []string
	for _, s := range h.Statuses(h.head) {
		names = append(names, s.Context)
	}
	if fmt.Sprint(names) != "[fairlead/plan/eu fairlead/plan/us]" {
		t.Errorf("the statuses are %v", names)
	}
}

// Too many deletions to remember are told once, and again when there are more.
func TestManyDeletions(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	base := h.move(t)
	f := h.forge(t)
	post(t, f, planOf(base, h.push(t)))
	for i, test := range []struct{ deletions, comments int }{{300, 2}, {300, 2}, {301, 3}, {5, 3}, {6, 4}} {
		var cells []plan.Cell
		for n := range test.deletions {
			cells = append(cells, cell("delete", "web", fmt.Sprintf("c%03d", n)))
		}
		post(t, f, planOf(base, h.push(t), cells...))
		if n := len(h.bodies(t)); n != test.comments {
			t.Fatalf("step %d: %d comments, want %d", i, n, test.comments)
		}
	}
	has(t, h.bodies(t)[1], "adds 300 deletions** that the plan did not have before", "- deletes `Deployment shop/web` on `c000`, `c001`, `c002`, `c003`, `c004` and 295 more\n")
	has(t, h.bodies(t)[3], "adds 1 deletion**", "- deletes `Deployment shop/web` on `c005`\n")
}

// A generated object that is replaced by one with another hash is no deletion.
func TestReplacementIsNoAlarm(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	base := h.move(t)
	f := h.forge(t)
	post(t, f, planOf(base, h.push(t)))
	p := planOf(base, h.push(t), cell("delete", "settings-abc", "eu-1"))
	p.Changes = []plan.Change{{ID: "c1", ReplacedBy: "settings-def"}}
	post(t, f, p)
	if n := len(h.bodies(t)); n != 1 {
		t.Errorf("there are %d comments", n)
	}
}

// What the short comment says of a plan is code, whatever the plan says (A16).
func TestAlertIsEscaped(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	base := h.move(t)
	f := h.forge(t)
	post(t, f, planOf(base, h.push(t)))
	hostile := planOf(base, h.push(t), cell("delete", "x`\n<img src=//evil> @acme/all", "c` | [l](//evil) -->\n# big"))
	hostile.Findings = []plan.Finding{{
		Code: "c` @all", Severity: fleet.SeverityCaution, Message: "@all", Policy: "p` @all\n- x", Object: &report.Object{Kind: "K` <b>", Name: "n"},
	}}
	post(t, f, hostile)
	if len(h.bodies(t)) != 2 {
		t.Fatalf("the comments are %q", h.bodies(t))
	}
	for i, line := range strings.Split(h.bodies(t)[1], "\n") {
		outside := ""
		for n, part := range strings.Split(line, "`") {
			if n%2 == 0 {
				outside += part
			}
		}
		if strings.HasPrefix(line, "[The whole plan](<"+h.URL) {
			continue // ours
		}
		if i > 0 && (strings.ContainsAny(outside, "@#|") || strings.Contains(outside, "evil") || strings.Count(line, "`")%2 != 0) {
			t.Errorf("line %d shows %q outside of code: %s", i, outside, line)
		}
	}
}

// The token of an app is no user in GitHub's REST API; a user who has the app's name is
// not the app.
func TestAppOfGitHub(t *testing.T) {
	for _, id := range []int64{0, fakeforge.Bot.ID} {
		h := newFake(t, fakeforge.GitHub)
		h.SetApp(id)
		p := planOf(h.move(t), h.push(t), cell("update", "web", "eu-1"))
		h.Say(7, fakeforge.User{ID: 66, Login: fakeforge.Bot.Login}, forge.Marker("")+"\nmine")
		post(t, h.forge(t), p)
		if done := post(t, h.forge(t), p); done.Comment != "unchanged" || len(h.bodies(t)) != 2 {
			t.Errorf("ID %d: %s, %q", id, done.Comment, h.bodies(t))
		}
	}
}

// Our comment is found behind pages of others.
func TestManyComments(t *testing.T) {
	for _, start := range []func(string) *fakeforge.Server{fakeforge.GitHub, fakeforge.GitLab, fakeforge.Gitea} {
		h := newFake(t, start)
		p := planOf(h.move(t), h.push(t))
		for range 7 {
			h.say(t, "hello")
		}
		post(t, h.forge(t), p)
		if done := post(t, h.forge(t), p); done.Comment != "unchanged" || len(h.bodies(t)) != 8 {
			t.Errorf("%s: %s, %q", h.Kind(), done.Comment, h.bodies(t))
		}
	}
}

// What a push adds is told once, also when the edit after it failed.
func TestEditThatFails(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	base := h.move(t)
	f := h.forge(t)
	post(t, f, planOf(base, h.push(t)))
	p := planOf(base, h.push(t), cell("delete", "web", "eu-1"))
	h.Fail(once(fakeforge.Answer{Code: 403, Body: `{"message":"no"}`}, func(r *http.Request) bool { return r.Method == http.MethodPatch }))
	if _, err := forge.Post(t.Context(), f, p, forge.Options{Timeout: forge.Timeout}); err == nil || len(h.bodies(t)) != 2 {
		t.Fatalf("%v, %q", err, h.bodies(t))
	}
	if done := post(t, f, p); done.Comment != "edited" || done.Alert || len(h.bodies(t)) != 2 {
		t.Errorf("%+v, %q", done, h.bodies(t))
	}
}

// A run of a fork names a branch; the pull request of it at the run's commit is meant.
func TestPullOfAFork(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	base, head := h.move(t), h.push(t)
	target := h.target()
	target.Pull, target.Branch, target.Head = 0, "acme:change", head
	p := planOf(base, mergeSHA, cell("update", "web", "eu-1"))
	o := forge.Options{Timeout: forge.Timeout}
	if _, err := forge.PostTo(t.Context(), target, secret, p, o); err != nil || len(h.bodies(t)) != 1 {
		t.Errorf("%v, %q", err, h.bodies(t))
	}
	target.Branch = "mallory:change"
	if _, err := forge.PostTo(t.Context(), target, secret, p, o); err == nil || !strings.Contains(err.Error(), "0 open pull requests of mallory:change are at this run's commit") {
		t.Errorf("got %v", err)
	}
}

// A merge that GitHub made of the head is a plan of the head.
func TestPlanOfTheMerge(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	base := h.move(t)
	h.push(t)
	h.SetPull(7, fakeforge.Pull{Head: h.head, Merge: mergeSHA, Target: "main"})
	post(t, h.forge(t), planOf(base, mergeSHA))
	if got := h.status(t, h.head); got == "" {
		t.Error("the head has no status")
	}
}

// Gitea and GitLab name no such merge, and the plan says what it brings.
func TestPlanThatSaysWhatItBrings(t *testing.T) {
	h := newFake(t, fakeforge.Gitea)
	p := planOf(h.move(t), mergeSHA)
	p.Merge = &plan.Merge{Commit: mergeSHA, Brings: h.push(t)}
	post(t, h.forge(t), p)
	h.push(t)
	if _, err := forge.Post(t.Context(), h.forge(t), p, forge.Options{Timeout: forge.Timeout}); err == nil {
		t.Error("it is posted, although it is of an earlier head")
	}
}

func TestChecks(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	p := planOf(h.move(t), h.push(t), cell("update", "web", "eu-1"), cell("update", "web", "us-1"))
	for n := range 120 {
		p.Findings = append(p.Findings, plan.Finding{Code: "hold-expired", Severity: fleet.SeverityNotice, Message: "x\ny", File: "policies/web.yaml", Line: n + 1})
	}
	p.Findings = append(p.Findings, plan.Finding{Code: "no-file", Severity: fleet.SeverityNotice, Message: "x"},
		plan.Finding{Code: "outside", Severity: fleet.SeverityNotice, Message: "x", File: "../../etc/passwd", Line: 1})
	for range 2 {
		if _, err := forge.Post(t.Context(), h.forge(t), p, forge.Options{Path: "fleets/eu", Timeout: forge.Timeout}); err != nil {
			t.Fatal(err)
		}
	}
	checks := h.Checks()
	if len(checks) != 1 || checks[0].Commit != h.head || checks[0].Status != "completed" || checks[0].Conclusion != "success" || len(checks[0].Annotations) != 121 {
		t.Fatalf("the checks are %+v", checks)
	}
	var last struct {
		Path, Message string
		Line          int `json:"start_line"`
	}
	if err := json.Unmarshal(checks[0].Annotations[120], &last); err != nil || last.Path != "fleets/eu/apps/web.yaml" || last.Line != 3 || last.Message != "2 works on 2 clusters: update, now" {
		t.Errorf("the last annotation is %+v, %v", last, err)
	}
}

// A token without the permission gets a note and no failure.
func TestChecksNeedAPermission(t *testing.T) {
	for _, code := range []int{403, 404} {
		h := newFake(t, fakeforge.GitHub)
		p := planOf(h.move(t), h.push(t))
		h.Fail(func(r *http.Request) *fakeforge.Answer {
			if strings.Contains(r.URL.Path, "check-runs") {
				return &fakeforge.Answer{Code: code, Body: `{"message":"Resource not accessible by integration"}`}
			}
			return nil
		})
		done := post(t, h.forge(t), p)
		if len(done.Notes) != 1 || !strings.Contains(done.Notes[0], "checks: write") {
			t.Errorf("%d: the notes are %q", code, done.Notes)
		}
	}
}

// Without a status the comment is not all that was asked for.
func TestStatusNeedsAPermission(t *testing.T) {
	for _, start := range []func(string) *fakeforge.Server{fakeforge.GitHub, fakeforge.GitLab, fakeforge.Gitea} {
		h := newFake(t, start)
		p := planOf(h.move(t), h.push(t))
		h.Fail(func(r *http.Request) *fakeforge.Answer {
			if strings.Contains(r.URL.Path, "/status") {
				return &fakeforge.Answer{Code: 403, Body: `{"message":"no"}`}
			}
			return nil
		})
		_, err := forge.Post(t.Context(), h.forge(t), p, forge.Options{Timeout: forge.Timeout})
		if err == nil || !strings.Contains(err.Error(), "the comment is there, but the commit status cannot be written: POST ") {
			t.Errorf("%s: got %v", h.Kind(), err)
		}
	}
}

// A base that the token may not read is no stale plan.
func TestBaseThatCannotBeRead(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	post(t, h.forge(t), planOf(headSHA, h.push(t)))
	lacks(t, h.bodies(t)[0], "planned on")
}

func TestDryRun(t *testing.T) {
	h := newFake(t, fakeforge.GitHub)
	p := planOf(h.move(t), h.push(t), cell("update", "web", "eu-1"))
	var out bytes.Buffer
	if _, err := forge.Post(t.Context(), h.forge(t), p, forge.Options{Timeout: forge.Timeout, DryRun: &out}); err != nil {
		t.Fatal(err)
	}
	has(t, out.String(), "<!-- fairlead:plan:v1 -->\n### Fleet plan: 1 now", "\nfairlead/plan: success: 1 now\n")
	if n := h.writes(t); n > 0 {
		t.Errorf("it wrote %d times", n)
	}
}

func TestReadPlan(t *testing.T) {
	good, err := json.Marshal(planOf(headSHA, mergeSHA))
	if err != nil {
		t.Fatal(err)
	}
	text := string(good)
	withDiff := func(diff string) string {
		p := planOf(headSHA, mergeSHA)
		p.Changes = []plan.Change{{Action: "update", Disposition: "now", Diff: diff}}
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, test := range map[string]struct{ plan, want string }{
		"good":          {text, ""},
		"a later minor": {strings.Replace(text, `"1.0"`, `"1.7","new":{"a":[1]}`, 1), ""},
		"a later major": {strings.Replace(text, `"1.0"`, `"2.0"`, 1), `has format "2.0"`},
		"a diff":        {withDiff("@@ -1 +1 @@\n \n-a\n+b\n\\ No newline at end of file\n"), ""},
		"a cut diff":    {withDiff("@@ -1 +1 @@\n-a\n… 12 more lines\n"), ""},
		"a cut inside":  {withDiff("@@ -1 +1 @@\n… 12 more lines\n-a\n"), "a diff that is not one"},
		"no diff":       {withDiff("@@ -1 +1 @@\n```\n/merge\n"), "a diff that is not one"},
		"a bare line":   {withDiff("-a\n\n+b\n"), "a diff that is not one"},
		"another kind":  {strings.Replace(text, `"Plan"`, `"List"`, 1), "no plan of fairlead.dev/v1"},
		"no commits":    {strings.Replace(text, headSHA, "main", 1), "names no commits"},
		"an option":     {strings.Replace(text, headSHA, "--upload-pack=x", 1), "names no commits"},
		"nothing":       {"", "is not the output of 'fairlead plan -o json'"},
		"cut off":       {text[:len(text)/2], "is not the output of 'fairlead plan -o json'"},
		"two":           {text + text, "more than one value"},
		"deep":          {strings.Repeat("[", 1_000_000), "is not the output"},
		"long":          {strings.Repeat(" ", 65<<20) + text, "longer than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := forge.ReadPlan(strings.NewReader(test.plan))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
