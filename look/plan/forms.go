// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"io"

	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/propagate"
)

// The forms of a plan that other reports do not have.
const (
	FormMarkdown = "markdown" // the body of a comment on a pull request
	FormHTML     = "html"     // a page of its own
	FormGitLab   = "gitlab"   // the totals that a merge request shows
)

// Form is a way to write a plan.
type Form struct {
	Name  string
	Write func(*Plan, io.Writer, View) error
}

// Forms are all of them.
var Forms = []Form{
	{output.FormText, (*Plan).Text},
	{output.FormWide, (*Plan).Text},
	{FormMarkdown, offScreen(func(r *Plan, out io.Writer) error { return r.Markdown(out, GitHubLimit) })},
	{FormHTML, offScreen((*Plan).HTML)},
	{output.FormJSON, offScreen(inForm(output.FormJSON))},
	{output.FormYAML, offScreen(inForm(output.FormYAML))},
	{FormGitLab, offScreen((*Plan).GitLab)},
}

// FormNames are the names of Forms.
func FormNames() (names []string) {
	for _, f := range Forms {
		names = append(names, f.Name)
	}
	return names
}

// FormOf returns the form with a name.
func FormOf(name string) (Form, bool) {
	for _, f := range Forms {
		if f.Name == name {
			return f, true
		}
	}
	return Form{}, false
}

// offScreen is a form that is the same in every view.
func offScreen(write func(*Plan, io.Writer) error) func(*Plan, io.Writer, View) error {
	return func(r *Plan, out io.Writer, _ View) error { return write(r, out) }
}

func inForm(name string) func(*Plan, io.Writer) error {
	return func(r *Plan, out io.Writer) error { return output.Value(out, name, r) }
}

// GitLab writes the totals of GitLab's Terraform report, which its merge requests show:
// what a merge sends to clusters now. A generated object that takes the place of another
// one is an update. For what cannot be planned there are none, and GitLab says that the
// report is not valid.
func (r *Plan) GitLab(out io.Writer) error {
	if !r.Complete {
		return json.NewEncoder(out).Encode(struct{}{})
	}
	var totals struct {
		Create int `json:"create"`
		Update int `json:"update"`
		Delete int `json:"delete"`
	}
	come, replaced := r.replacements()
	for _, c := range r.Cells {
		if replaced[c.Change] || c.Disposition != propagate.Now && c.Disposition != propagate.Released {
			continue
		}
		switch {
		case c.Action == propagate.ActionCreate && !come[c.Change]:
			totals.Create++
		case c.Action == propagate.ActionDelete:
			totals.Delete++
		case c.Action == propagate.ActionNone:
		default:
			totals.Update++
		}
	}
	return json.NewEncoder(out).Encode(totals)
}
