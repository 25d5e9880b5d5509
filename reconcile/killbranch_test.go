// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
)

// branch is a member whose every question and commit is two steps.
func (s *steps) branch(publish, cluster string) (member.Member, error) {
	to, err := source.OpenBranches(publish, source.Auth{})
	if err != nil {
		return nil, err
	}
	return pull.Branch(stepping{reconcile.Publish(to), s}, "fairlead/"+cluster), nil
}

type stepping struct {
	pull.Branches
	*steps
}

func (s stepping) Head(ctx context.Context, branch string) (string, error) {
	s.step("before head of " + branch)
	defer s.step("after head of " + branch)
	return s.Branches.Head(ctx, branch)
}

func (s stepping) Commit(ctx context.Context, c pull.BranchCommit) (string, error) {
	s.step("before commit to " + c.Branch)
	defer s.step("after commit to " + c.Branch)
	return s.Branches.Commit(ctx, c)
}

// F01-F10 for pull clusters: killed between any two steps, the next run ends
// with the very same commits. None is made twice, and none is left out.
func TestKilledAnywhereMakesTheSameCommits(t *testing.T) {
	if testing.Short() {
		t.Skip("a process for every step")
	}
	want, _ := branchesKilledAt(t, 0)
	if got := strings.Count(want, "fleet "); got != 2*len(names) {
		t.Fatalf("undisturbed it makes\n%s", want)
	}
	for n := int64(1); ; n++ {
		got, killed := branchesKilledAt(t, n)
		if killed == "" {
			if n < 15 {
				t.Errorf("only %d steps were seen", n)
			}
			return
		}
		if got != want {
			t.Errorf("killed %s (step %d): the branches end as\n%s\nwant\n%s", killed, n, got, want)
		}
	}
}

// branchesKilledAt is killedAt for clusters that pull.
func branchesKilledAt(t *testing.T, n int64) (commits, killed string) {
	w := newWorld(t, nil)
	d := newDeploy(t)
	opt := childOptions{Repo: w.repo.Dir, State: w.state, Publish: "file://" + d.bare}
	w.repo.Commit("before", toBeKilled("Pull"))
	if out, err := spawn(opt, 0); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.repo.Commit("after", killedIn)
	killed = spawnTwice(t, opt, n)
	d.in("fsck", "--strict")
	for _, name := range names {
		commits += name + "\n" + d.in("log", "--format=%H %s", "fairlead/"+name) + "\n" + d.in("ls-tree", "-r", "fairlead/"+name) + "\n"
	}
	return commits, killed
}
