// SPDX-License-Identifier: Apache-2.0

package forge_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/testenv/fakeforge"
)

// The list of open pull requests goes on over pages, says when there are more than it may
// have, and tells forks and drafts; what is no commit is left out.
func TestOpenPullRequests(t *testing.T) {
	for _, start := range []func(string) *fakeforge.Server{fakeforge.GitHub, fakeforge.GitLab, fakeforge.Gitea} {
		h := newFake(t, start)
		t.Run(h.Kind(), func(t *testing.T) {
			began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for n := range int64(7) {
				h.SetPull(n+1, fakeforge.Pull{Head: h.commit(), Target: "main", Branch: "acme:change", Updated: began.Add(time.Duration(n) * time.Hour)})
			}
			h.SetPull(8, fakeforge.Pull{Head: "../../main", Target: "main", Updated: began.AddDate(1, 0, 0)})
			h.SetPull(9, fakeforge.Pull{Head: h.commit(), Target: "next", Updated: began.AddDate(1, 0, 0)})
			h.SetPull(2, fakeforge.Pull{Head: h.commit(), Target: "main", Fork: true, Draft: true, Updated: began.AddDate(0, 1, 0)})
			h.SetPull(3, fakeforge.Pull{Head: h.commit(), Target: "main", Closed: true})

			target := h.target()
			repo, err := forge.OpenRepository(t.Context(), target, secret)
			check(t, err)
			open, more, err := repo.Pulls(t.Context(), "main", 200)
			check(t, err)
			var numbers []int64
			for _, p := range open {
				numbers = append(numbers, p.Number)
			}
			if want := []int64{2, 7, 6, 5, 4, 1}; more || !slices.Equal(numbers, want) {
				t.Errorf("listed are %v, more %v; want %v", numbers, more, want)
			}
			if p := open[0]; !p.Fork || !p.Draft || !p.Updated.Equal(began.AddDate(0, 1, 0)) {
				t.Errorf("the fork is listed as %+v", p)
			}

			if open, more, err = repo.Pulls(t.Context(), "main", 3); err != nil || len(open) != 3 || !more {
				t.Errorf("of the first three are %d, more %v: %v", len(open), more, err)
			}

			h.Fail(func(*http.Request) *fakeforge.Answer {
				return &fakeforge.Answer{Code: http.StatusForbidden, Body: `{"message": "token ` + secret + ` may not"}`}
			})
			if _, _, err = repo.Pulls(t.Context(), "main", 3); err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("a refusal is %v", err)
			}
		})
	}
}
