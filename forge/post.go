// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/source"
)

// StatusContext is the name of the commit status. A scope follows it.
const StatusContext = "fairlead/plan"

// Timeout is how long a Post may take by default.
const Timeout = time.Minute

// Options say how a plan is posted.
type Options struct {
	Scope   string // of which fleet the plan is, where a repository has several
	Head    string // the commit that the plan was made for, from the event of the forge
	Path    string // of the fleet inside the repository, for annotations; "" is its root
	Timeout time.Duration
	DryRun  io.Writer // gets what would be written, and nothing is
}

// PostTo is Post on the forge of a target.
func PostTo(ctx context.Context, t Target, token string, p *plan.Plan, o Options) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()

	f, err := Open(ctx, t, token)
	if err != nil {
		return Result{}, err
	}
	o.Head = t.Head
	return Post(ctx, f, p, o)
}

// Post brings a pull request to what a plan says. A second call writes nothing.
func Post(ctx context.Context, f Forge, p *plan.Plan, o Options) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()

	pull, err := f.Pull(ctx)
	if err != nil {
		return Result{}, because("the pull request cannot be read", err)
	}
	if err := fits(p, pull, o.Head); err != nil {
		return Result{}, err
	}
	var self Account
	err = repeat(ctx, func() (err error) { self, err = f.Self(ctx); return err })
	if err != nil {
		return Result{}, because("whose token it is cannot be read", err)
	}
	d, err := newDraft(p, pull, o.Scope, f.MostBytes())
	if err != nil {
		return Result{}, err
	}

	if o.DryRun != nil {
		return d.print(ctx, f, self, o.DryRun)
	}
	r, err := d.post(ctx, f, self)
	if err != nil {
		return r, because("the comment cannot be written", err)
	}
	r.Status = d.status(r.URL)
	if err := repeat(ctx, func() error { return setStatus(ctx, f, pull.Head, r.Status) }); err != nil {
		return r, because("the comment is there, but the commit status cannot be written", err)
	}
	r.Notes = append(r.Notes, check(ctx, f, d.check(p, pull.Head, o.Path))...)
	return r, nil
}

// because words an error of a forge. The libraries put the whole request before what
// the forge said; one account of it is enough.
func because(what string, err error) error {
	return fmt.Errorf("%s: %w", what, bare(err))
}

func bare(err error) error {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused
	}
	return err
}

// fits refuses a plan of another commit than the one to be merged: its comment would
// speak of what nobody merges, and its status would be that commit's. The plan may be that
// of a merge which the forge made to test it.
func fits(p *plan.Plan, pull Pull, head string) error {
	planned := p.Head.Commit
	switch {
	case head != "":
		planned = head
	case planned == pull.Merge:
		return nil
	case p.Merge != nil && p.Merge.Brings != "":
		planned = p.Merge.Brings
	}

	if planned == pull.Head {
		return nil
	}
	return fmt.Errorf("the plan is of %s and the pull request is at %s: it was pushed to since, and a plan of that commit is to follow", source.Short(planned), source.Short(pull.Head))
}

// write is a comment to be written.
type write struct {
	edit int64 // which comment; 0 is a new one
	body string
}

// decide returns what is to be written, given what is there. The last is our comment;
// mine is that as it is, with the ID 0 if there is none.
func (d draft) decide(there []Comment, self Account) (todo []write, mine Comment) {
	find := func(first string) (Comment, bool) {
		for _, c := range there {
			if self.wrote(c) && firstLine(c.Body) == first {
				return c, true
			}
		}
		return Comment{}, false
	}

	mine, found := find(marker(d.scope))
	if !found {
		return []write{{body: d.comment(d.record)}}, mine
	}

	r := d.record
	if before, ok := readRecord(mine.Body); ok {
		r = r.after(before)
		if more := added(d.alarms, before); len(more) > 0 {
			first, body := d.alert(more, mine)
			if _, told := find(first); !told {
				todo = append(todo, write{body: body})
			}
		}
	}
	if body := d.comment(r); !sameBody(body, mine.Body) {
		todo = append(todo, write{edit: mine.ID, body: body})
	}
	return todo, mine
}

// post writes what is to be written.
func (d draft) post(ctx context.Context, f Forge, self Account) (Result, error) {
	r := Result{Comment: "unchanged"}
	err := repeat(ctx, func() error {
		there, err := f.Comments(ctx)
		if err != nil {
			return err
		}
		todo, mine := d.decide(there, self)
		r.URL = either(mine.URL, r.URL)
		return d.apply(ctx, f, todo, &r)
	})
	return r, err
}

// repeat does again what failed in a way that leaves open whether the forge has acted.
// So do looks first what is there, and nothing is written twice.
func repeat(ctx context.Context, do func() error) error {
	for pause := firstWait; ; pause = min(2*pause, mostWait) {
		err := do()
		if err == nil || !isOpen(err) {
			return err
		}
		if deadline, ok := ctx.Deadline(); ok && now().Add(pause).After(deadline) || wait(ctx, pause) != nil {
			return err
		}
	}
}

func (d draft) apply(ctx context.Context, f Forge, todo []write, r *Result) error {
	for _, w := range todo {
		if w.edit != 0 {
			if err := f.Edit(ctx, w.edit, w.body); err != nil {
				return err
			}
			r.Comment = "edited"
			continue
		}

		c, err := f.Post(ctx, w.body)
		if err != nil {
			return err
		}
		if firstLine(w.body) != marker(d.scope) {
			r.Alert = true
			continue
		}
		r.Comment, r.URL = "posted", c.URL
	}
	return nil
}

// isOpen reports whether a request failed in a way that does not tell if it was done.
func isOpen(err error) bool {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused.Status >= http.StatusInternalServerError
	}
	return isNetwork(err) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// status is the commit status of a plan.
func (d draft) status(url string) Status {
	return Status{Context: ScopedContext(d.scope), State: d.state, Description: d.record.Verdict, URL: url}
}

// setStatus writes a status that differs from what the commit has.
func setStatus(ctx context.Context, f Repository, commit string, want Status) error {
	has, err := f.Status(ctx, commit, want.Context)
	if err != nil && !refusedWith(err, http.StatusForbidden, http.StatusNotFound) {
		return err
	}
	if has != nil && has.State == want.State && has.Description == want.Description {
		return nil
	}
	return f.SetStatus(ctx, commit, want)
}

// check writes annotations where the forge has them and the token may. It is an extra:
// what goes wrong is a note.
func check(ctx context.Context, f Forge, c Check) []string {
	checker, ok := f.(Checker)
	if !ok {
		return nil
	}
	err := repeat(ctx, func() error { return checker.Check(ctx, c) })
	switch {
	case err == nil:
		return nil
	case refusedWith(err, http.StatusForbidden, http.StatusNotFound):
		return []string{"no annotations: " + because("the token may not write check runs (checks: write)", err).Error()}
	}
	return []string{because("no annotations", err).Error()}
}

// print shows what would be written.
func (d draft) print(ctx context.Context, f Forge, self Account, to io.Writer) (Result, error) {
	there, err := f.Comments(ctx)
	if err != nil {
		return Result{}, because("the comments cannot be read", err)
	}
	todo, mine := d.decide(there, self)
	r := Result{Comment: "unchanged", URL: mine.URL, Status: d.status(mine.URL)}
	for _, w := range todo {
		if _, err := fmt.Fprintf(to, "%s\n", w.body); err != nil {
			return r, err
		}
	}
	_, err = fmt.Fprintf(to, "%s: %s: %s\n", r.Status.Context, r.Status.State, r.Status.Description)
	return r, err
}
