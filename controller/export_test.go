// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/reconcile"
)

// Report writes a Result to the status of a Fleet; err is why its loop cannot be opened.
func Report(f *v1alpha1.Fleet, r reconcile.Result, err error, now time.Time) {
	report(f, &observation{result: r, opened: err == nil, err: err, branch: "main", handled: "token"}, now)
}

// ReportStalled writes that a Fleet cannot be reconciled before it changes.
var ReportStalled = reportStalled

// Rollout is what the forge is told of the head.
func Rollout(r *reconcile.Result) string {
	is := newView(r, "main").rollout()
	if is.Commit == "" {
		return "<nothing>"
	}
	return string(is.State) + ": " + is.Text
}

// ForgeOf returns the URL and the repository of a forge, or what is missing.
func ForgeOf(spec *v1alpha1.PullRequestsSpec, repo string) string {
	t, err := targetOf(spec, repo)
	if err != nil {
		return err.Error()
	}
	return t.URL + " " + t.Repo
}

// TokenIn returns the token in the data of a Secret, or what is wrong.
func TokenIn(data map[string][]byte, title string) string {
	token, err := tokenIn(data, title)
	if err != nil {
		return err.Error()
	}
	return token
}

// SetRules has the Leases of shards last as long as a test wants.
func SetRules(o *Options, rules lease.Rules) { o.rules = rules }
