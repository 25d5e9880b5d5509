// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/source"
)

// maxPlans is how many plans are kept, and planFor how long one is used for a pull request
// before its head is asked for again.
const (
	maxPlans = 16
	planFor  = 30 * time.Second
)

// planned is a plan that was made, and when its day decided about holds.
type planned struct {
	plan *plan.Plan
	page *plan.Page
}

// planPage is what a branch would do.
func (s *Server) planPage(q *request) error {
	base, err := q.one("base")
	if err != nil {
		return err
	}
	head, err := q.one("head")
	if err != nil {
		return err
	}
	b := &planBody{links: q.links, Base: base, Head: head, Branch: q.line.branch}
	if head == "" {
		b.Branches = q.branches()
		q.answer(200, "plan", "Plan", b)
		return nil
	}

	baseHash, err := q.commitOf("base", cmp.Or(base, q.commit.Hash))
	if err != nil {
		return err
	}
	headHash, err := q.commitOf("head", head)
	if err != nil {
		return err
	}
	if b.planned, err = q.plan(baseHash, headHash, cmp.Or(base, q.line.branch), head); err != nil {
		return err
	}
	q.answer(200, "plan", "Plan of "+head, b)
	return nil
}

// pullRequestPage is what a pull request would do.
func (s *Server) pullRequestPage(q *request) error {
	n, err := strconv.Atoi(q.PathValue("number"))
	if err != nil || n < 1 || n > 1_000_000_000 {
		return malformed("%q is not the number of a pull request", q.PathValue("number"))
	}
	head, ref, err := q.pullRequestHead(n)
	if err != nil {
		return err
	}
	b := &planBody{links: q.links, Head: ref, Branch: q.line.branch, Number: n, Forge: s.options.Fleet.Forge.PullRequest(n)}
	if b.planned, err = q.plan(q.commit.Hash, head, q.line.branch, ref); err != nil {
		return err
	}
	q.answer(200, "plan", fmt.Sprintf("Plan of #%d", n), b)
	return nil
}

// planBody is a plan as its page shows it, or the question for one.
type planBody struct {
	links
	*planned
	Base, Head, Branch, Forge string
	Number                    int
	Branches                  []branchLink
}

type branchLink struct{ Name, Address string }

// View is the plan; nil before anybody has asked for one.
func (b *planBody) View() *plan.Page {
	if b.planned == nil {
		return nil
	}
	return b.page
}

// mostBranches is how many branches are offered.
const mostBranches = 200

// branches are those that may be planned.
func (q *request) branches() (all []branchLink) {
	names, err := q.line.repo.Revisions()
	if err != nil {
		return nil // the form takes any revision
	}
	for _, name := range names {
		if name == "HEAD" || name == q.line.branch || len(all) == mostBranches || !revision.MatchString(name) {
			continue
		}
		if hash, err := q.line.repo.Resolve(name); err == nil {
			if _, _, merged := q.line.log.Commit(hash); !merged {
				all = append(all, branchLink{name, q.Page("/plan", "head", name)})
			}
		}
	}
	return all
}

// plan makes a plan, or has it from before.
func (q *request) plan(base, head, baseName, headName string) (*planned, error) {
	s := q.server
	now := s.options.Now()
	key := strings.Join([]string{base, head, baseName, headName, now.UTC().Format(time.DateOnly)}, " ")
	if p, ok := s.plans.get(key); ok {
		return p, nil
	}

	ctx, cancel := context.WithTimeout(q.Context(), travelTimeout)
	defer cancel()
	var made *planned
	err := s.travel.do(ctx, func(states *history.States) error {
		if p, ok := s.plans.get(key); ok {
			made = p
			return nil
		}
		r, err := plan.Make(states, plan.Request{Base: named(states.Repo, base, baseName), Head: named(states.Repo, head, headName), Now: now})
		if err != nil {
			return err
		}
		made = &planned{r, r.Page()}
		s.plans.put(key, made)
		return nil
	})
	var status *statusError
	if err == nil || errors.Is(err, errBusy) || ctx.Err() != nil || source.IsUnavailable(err) || errors.As(err, &status) {
		return made, err
	}
	return nil, &statusError{http.StatusUnprocessableEntity, fmt.Sprintf("%s cannot be planned: %v", headName, err)}
}

// named is the name of a commit, as long as that is what it names.
func named(repo *source.Repo, commit, name string) string {
	if hash, err := repo.Resolve(name); err == nil && hash == commit {
		return name
	}
	return commit
}

// pullRequestHead returns the head of a pull request, and the ref that has it. A mirror
// fetches it, unless it has done so just now.
func (q *request) pullRequestHead(n int) (hash, ref string, err error) {
	refs := []string{fmt.Sprintf("refs/pull/%d/head", n), fmt.Sprintf("refs/merge-requests/%d/head", n)}
	if q.server.options.Fleet.Forge.kind == "gitlab" {
		slices.Reverse(refs)
	}
	err = q.server.travel.fetchPull(q.Context(), n, refs)
	if err != nil {
		return "", "", err
	}
	for _, ref := range refs {
		if hash, err := q.line.repo.Resolve(ref); err == nil {
			return hash, ref, nil
		}
	}
	return "", "", unknown("there is no pull request %d: the repository has neither %s", n, strings.Join(refs, " nor "))
}

// fetchPull fetches the head of a pull request. That there is none is found out later.
func (t *travel) fetchPull(ctx context.Context, n int, refs []string) error {
	now := t.server.options.Now()
	if at, ok := t.fetched.get(n); ok && now.Sub(at) < planFor {
		return nil
	}
	return t.do(ctx, func(states *history.States) error {
		if at, ok := t.fetched.get(n); ok && now.Sub(at) < planFor {
			return nil
		}
		for _, ref := range refs {
			err := states.Repo.FetchRef(ctx, ref)
			if err == nil {
				break
			}
			if !errors.Is(err, source.ErrUnknownRevision) {
				return err
			}
		}
		t.fetched.put(n, now)
		return nil
	})
}
