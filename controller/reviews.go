// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/review"
	"github.com/fairlead/fairlead/source"
)

// ReasonPullRequestsFailed is that of the event that a pull request, or the status of a
// commit, could not be written. It concerns no condition.
const ReasonPullRequestsFailed = "PullRequestsFailed"

// leastReview is the least time between two looks at the open pull requests that nobody
// has asked for: forges limit how often they are asked.
const leastReview = time.Minute

// readReviews reads which forge to report to. A Secret that is not there, or wrong, is a
// failure of that alone: the clusters are reconciled all the same.
func (s *settings) readReviews(ctx context.Context, f *v1alpha1.Fleet, own *secrets) error {
	spec := f.Spec.PullRequests
	s.reviewed = spec != nil
	if spec == nil {
		return nil
	}
	target, err := targetOf(spec, s.repo)
	if err != nil {
		return &StalledError{ReasonInvalidSpec, fmt.Errorf("spec.pullRequests: %w", err)}
	}

	s.reviews = review.Settings{Target: target, Forks: spec.Forks, Interval: max(s.interval, leastReview)}
	data, err := own.find(ctx, spec.SecretRef.Name)
	if err != nil {
		return err
	}
	s.reviews.Token, s.notReviewed = tokenIn(data, own.title(spec.SecretRef.Name))
	return nil
}

// tokenIn returns the token of a forge from the data of a Secret, nil if there is none.
func tokenIn(data map[string][]byte, title string) (string, error) {
	if data == nil {
		return "", fmt.Errorf("%s: not found", title)
	}
	for _, key := range []string{"token", "password"} {
		token := strings.TrimSpace(string(data[key]))
		if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
			return "", fmt.Errorf("%s: the key %s holds more than a token: it has blanks or control characters", title, key)
		}
		if token != "" {
			return token, nil
		}
	}
	return "", fmt.Errorf("%s: has neither token nor password", title)
}

// targetOf returns the repository on the forge, with what the spec leaves open taken from
// the address that is fetched.
func targetOf(spec *v1alpha1.PullRequestsSpec, repo string) (forge.Target, error) {
	t := forge.Target{Kind: spec.Provider, URL: spec.URL, Repo: spec.Repository}
	if t.URL != "" && t.Repo != "" {
		return t, nil
	}
	u, err := url.Parse(repo)
	if err != nil || u.Hostname() == "" {
		return t, errors.New("specify url and repository: the address of the repository names no host")
	}

	host := &url.URL{Scheme: "https", Host: u.Hostname()}
	if u.Scheme == "http" || u.Scheme == "https" {
		host.Scheme, host.Host = u.Scheme, u.Host
	}
	t.URL = cmp.Or(t.URL, host.String())
	t.Repo = cmp.Or(t.Repo, strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git"))
	if parts := strings.Count(t.Repo, "/"); parts == 0 || parts > 1 && t.Kind != forge.KindGitLab {
		return t, fmt.Errorf("specify repository: %q is not of the form OWNER/NAME", t.Repo)
	}
	return t, nil
}

// review starts the reviewer of an open loop. end ends it, and does not wait for a plan.
func (f *follower) review(ctx context.Context, loop *reconcile.Loop, s settings) (end func()) {
	if !s.reviewed {
		return func() {}
	}

	reviewer := review.New(review.Options{
		Settings: s.reviews, Fleet: f.name.Name, Scope: scopeOf(f.name.Name, s.path), Branch: loop.Ref(), Path: s.path,
		Dir: filepath.Join(f.stateDir(s), "pulls"), Loop: loop, Turn: f.turn, Report: f.noted,
	})
	f.reviewer.Store(reviewer)

	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		reviewer.Run(ctx)
	}()
	return func() {
		f.reviewer.Store(nil)
		cancel()
		<-ended
	}
}

// scopeOf names a fleet where its repository may have several: if it is not all of it.
func scopeOf(name, path string) string {
	if path == "." {
		return ""
	}
	return name
}

// noted logs what a reviewer has to say, and keeps what has failed for an event.
func (f *follower) noted(n review.Note) {
	text := printable.Line(n.Text)
	if n.Err == nil {
		f.log.Info(text)
		return
	}
	f.log.Error(nil, "pull requests: "+text)
	f.mu.Lock()
	f.notReviewed = shortened(text)
	f.mu.Unlock()
	f.tell()
}

// takeNotReviewed returns what has failed since the last call, "" if nothing.
func (f *follower) takeNotReviewed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.notReviewed
	f.notReviewed = ""
	return text
}

// rollout says how far the head is, in one line.
func (v *view) rollout() review.Rollout {
	is := review.Rollout{Commit: v.Head, State: forge.StateFailure}
	var unverified *source.VerificationError
	switch {
	case errors.As(v.Err, &unverified):
		is.Commit, is.Text = unverified.Commit, unverified.Error()
	case v.Refusal != nil && v.Refusal.Guard != nil:
		is.Text = "awaits confirmation"
	case v.Refusal != nil && len(v.Refusal.Problems) > 0:
		is.Text = "refused: " + v.Refusal.Problems[0].Error()
	case v.Refusal != nil:
		is.Text = "refused"
	case v.Accepted != v.Head:
		return review.Rollout{} // it is being folded
	default:
		is.State, is.Text = v.progress()
	}

	is.Text = printable.Line(is.Text)
	return is
}

// progress says how far the accepted commit is.
func (v *view) progress() (forge.State, string) {
	done, all := v.done(), count(v.all, "cluster")
	held, failing := v.of[reconcile.ClusterHeld], v.of[reconcile.ClusterFailed]
	switch {
	case v.arrived() && held > 0:
		return forge.StateSuccess, fmt.Sprintf("applied on %d of %s, held on %d", done-held, all, held)
	case v.arrived():
		return forge.StateSuccess, fmt.Sprintf("applied on %d of %s", done, all)
	case failing > 0:
		return forge.StatePending, fmt.Sprintf("applying: on %d of %s, failing on %d", done, all, failing)
	}
	return forge.StatePending, fmt.Sprintf("applying: on %d of %s", done, all)
}
