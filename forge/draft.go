// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/source"
)

// draft is what there is to say of a plan on a pull request.
type draft struct {
	scope   string
	body    string // the plan's own Markdown, without a marker
	stale   string // a line that says so; "" if the plan is not
	record  record
	alarms  []alarm
	state   State
	mostLen int
}

// newDraft renders a plan for a pull request.
func newDraft(p *plan.Plan, pull Pull, scope string, most int) (draft, error) {
	body, err := markdown(p, most-roomForOurs)
	if err != nil {
		return draft{}, err
	}

	d := draft{scope: scope, body: body, stale: stale(p, pull), alarms: alarms(p), state: stateOf(p), mostLen: most}
	d.record = record{Head: pull.Head, Verdict: shortened(p.Headline())}
	all := keys(d.alarms)
	d.record.Alarms = len(all)
	if len(all) <= mostKeys {
		d.record.Keys = all
	}
	return d, nil
}

// roomForOurs is what the marker, the earlier plans and the record take at most.
const roomForOurs = 5_000

// markdown returns the plan's own Markdown without its marker. It is the one place that
// asks for it. A plan that somebody made up may contradict itself in ways that no plan of
// ours does.
func markdown(p *plan.Plan, most int) (body string, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the plan contradicts itself and cannot be shown")
		}
	}()

	var b strings.Builder
	if err := p.Markdown(&b, most); err != nil {
		return "", err
	}
	// A line of a note that begins with a slash is a command to GitLab.
	body = strings.ReplaceAll(b.String(), "\n/", "\n /")
	return strings.TrimPrefix(body, plan.Marker+"\n"), nil
}

// stateOf is red where a merge would not do what the pull request asks for, or needs
// somebody's word.
func stateOf(p *plan.Plan) State {
	if !p.Complete || slices.ContainsFunc(p.Findings, func(f plan.Finding) bool {
		return f.Trailer != "" || f.Severity == fleet.SeverityError
	}) {
		return StateFailure
	}
	return StateSuccess
}

// stale returns a line that says that the target has moved on; "" if it has not, or if
// nobody knows.
func stale(p *plan.Plan, pull Pull) string {
	if pull.Base == "" || pull.Base == p.Base.Commit {
		return ""
	}
	return fmt.Sprintf("%s is at %s now, and this was planned on %s: plan again to see the merge as it would be today.",
		codeSpan(cutTo(pull.Target, mostName)), codeSpan(source.Short(pull.Base)), codeSpan(source.Short(p.Base.Commit)))
}

// comment returns the body of the comment, with a record.
func (d draft) comment(r record) string {
	body := d.compose(r)
	if len(body) > d.mostLen && len(r.Earlier) > 0 {
		r.Dropped, r.Earlier = r.Dropped+len(r.Earlier), nil
		body = d.compose(r)
	}
	if len(body) > d.mostLen {
		r.Keys = nil
		body = d.compose(r)
	}
	return body
}

func (d draft) compose(r record) string {
	heading, rest, _ := strings.Cut(d.body, "\n")
	if d.stale != "" {
		rest = "\n" + d.stale + "\n" + rest
	}

	footer := ""
	if at := strings.LastIndex(rest, "\n<sub>"); at >= 0 {
		rest, footer = rest[:at], rest[at:]
	}
	return marker(d.scope) + "\n" + heading + "\n" + rest + r.fold() + footer + "\n" + r.String() + "\n"
}

// alert returns the body of the short comment about what a push added.
func (d draft) alert(more []alarm, of Comment) (first, body string) {
	first = alertMarker(d.scope, keyOf(append(keys(more), d.record.Head)...))
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n**%s adds %s** that the plan did not have before:\n\n%s", first, codeSpan(source.Short(d.record.Head)), counted(more), lines(more))
	if of.URL != "" {
		fmt.Fprintf(&b, "\n[The whole plan](<%s>)\n", linkable(of.URL))
	}
	return first, b.String()
}

// counted reads "2 deletions and 1 caution".
func counted(all []alarm) string {
	n := map[string]int{}
	for _, a := range all {
		n[a.kind]++
	}

	var parts []string
	for _, kind := range []string{"deletion", "error", "caution"} {
		if n[kind] > 0 {
			parts = append(parts, plural(n[kind], kind))
		}
	}
	if last := len(parts) - 1; last > 0 {
		return strings.Join(parts[:last], ", ") + " and " + parts[last]
	}
	return strings.Join(parts, "")
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// linkable returns a URL of the forge as it may stand between angle brackets.
func linkable(url string) string {
	return strings.NewReplacer("<", "%3C", ">", "%3E", "\n", "", "\r", "", " ", "%20").Replace(url)
}
