// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fairlead/fairlead/testenv/fakeforge"
	"github.com/fairlead/fairlead/testenv/forge"
)

// forgeToken must be nowhere in what a script prints.
const forgeToken = "canary-forge-token"

// scriptForge is what a script does to its forge.
type scriptForge interface {
	openPull(ts *testscript.TestScript, n int64, head, base string)
	mergePull(ts *testscript.TestScript, n int64)
	// shown is the comments on a pull request, and the statuses of a commit.
	shown(ts *testscript.TestScript, n int64, commit string) string
}

// forgeOf is the forge of a script, which is the last that it started.
func forgeOf(ts *testscript.TestScript) *scriptForge { return ts.Value("forge").(*scriptForge) }

func startForge(ts *testscript.TestScript, _ bool, args []string) {
	start := map[string]func(string) *fakeforge.Server{"github": fakeforge.GitHub, "gitlab": fakeforge.GitLab, "gitea": fakeforge.Gitea}[args[0]]
	if args[0] == "real" {
		*forgeOf(ts) = startRealForge(ts)
		return
	}
	if start == nil {
		ts.Fatalf("there is no forge %q", args[0])
	}
	s := start(forgeToken)
	ts.Defer(s.Close)
	ts.Setenv("FORGE", s.URL)
	ts.Setenv("FAIRLEAD_FORGE_TOKEN", forgeToken)
	*forgeOf(ts) = playedForge{s}
}

func openPull(ts *testscript.TestScript, _ bool, args []string) {
	(*forgeOf(ts)).openPull(ts, pullNumber(ts, args), args[1], args[2])
}

func mergePull(ts *testscript.TestScript, _ bool, args []string) {
	(*forgeOf(ts)).mergePull(ts, pullNumber(ts, args))
}

func printComments(ts *testscript.TestScript, _ bool, args []string) {
	shown := (*forgeOf(ts)).shown(ts, pullNumber(ts, args), commitOf(ts, args[1]))
	if shown == "" {
		shown = "none\n"
	}
	fmt.Fprint(ts.Stdout(), strings.ReplaceAll(shown, ts.Getenv("FORGE"), "http://forge"))
}

// awaitStatus waits until the comments on a pull request, and the statuses of a commit, have
// a text.
func awaitStatus(ts *testscript.TestScript, _ bool, args []string) {
	commit, shown := commitOf(ts, args[1]), ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if shown = (*forgeOf(ts)).shown(ts, pullNumber(ts, args), commit); strings.Contains(shown, args[2]) {
			return
		}
	}
	ts.Fatalf("not within a minute: %s\n%s", args[2], shown)
}

func pullNumber(ts *testscript.TestScript, args []string) int64 {
	n, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	return n
}

func commitOf(ts *testscript.TestScript, revision string) string {
	cmd := exec.Command("git", "rev-parse", revision)
	cmd.Dir = ts.MkAbs(".")
	out, err := cmd.Output()
	ts.Check(err)
	return strings.TrimSpace(string(out))
}

// playedForge is one that the tests play.
type playedForge struct{ *fakeforge.Server }

func (f playedForge) openPull(ts *testscript.TestScript, n int64, head, base string) {
	f.SetBranch("main", commitOf(ts, base))
	f.SetPull(n, fakeforge.Pull{Head: commitOf(ts, head), Target: "main", Branch: "mallory:change"})
}

func (f playedForge) mergePull(ts *testscript.TestScript, _ int64) {
	ts.Fatalf("only a real forge merges")
}

func (f playedForge) shown(_ *testscript.TestScript, n int64, commit string) string {
	var b strings.Builder
	for _, c := range f.Comments(n) {
		fmt.Fprintf(&b, "== %s\n%s", c.Author.Login, c.Body)
	}
	for _, status := range f.Statuses(commit) {
		fmt.Fprintf(&b, "== %s: %s: %s\n", status.Context, status.State, status.Description)
	}
	return b.String()
}

// realForge is a Gitea with the repository ann/fleet, on which fleet-bot comments.
type realForge struct {
	*forge.Server
	ann forge.User
}

func startRealForge(ts *testscript.TestScript) scriptForge {
	s, err := forge.Run(ts.MkAbs(ts.Getenv("WORK")))
	ts.Check(err)
	ts.Defer(func() { ts.Check(s.Stop()) })
	ann, err := s.User("ann")
	ts.Check(err)
	bot, err := s.User("fleet-bot")
	ts.Check(err)
	ts.Check(s.Repo(ann, "fleet"))
	ts.Check(s.Do(ann, "PUT", "/repos/ann/fleet/collaborators/fleet-bot", map[string]string{"permission": "write"}, nil))
	ts.Setenv("FORGE", s.URL())
	ts.Setenv("REMOTE", s.CloneURL(ann, "ann/fleet"))
	ts.Setenv("FAIRLEAD_FORGE_TOKEN", bot.Token)
	return realForge{s, ann}
}

// forkRepo gives mallory a fork, at $FORK.
func forkRepo(ts *testscript.TestScript, _ bool, _ []string) {
	f, ok := (*forgeOf(ts)).(realForge)
	if !ok {
		ts.Fatalf("only a real forge has forks")
	}
	mallory, err := f.User("mallory")
	ts.Check(err)
	ts.Check(f.Fork(mallory, "ann/fleet"))
	ts.Setenv("FORK", f.CloneURL(mallory, "mallory/fleet"))
}

// reportPushes has a real forge report pushes to an address, where the path is what the last
// command printed.
func reportPushes(ts *testscript.TestScript, _ bool, args []string) {
	f, ok := (*forgeOf(ts)).(realForge)
	if !ok {
		ts.Fatalf("only a real forge reports")
	}
	ts.Check(f.Report(f.ann, "ann/fleet", "http://"+args[0]+strings.TrimSpace(ts.ReadFile("stdout")), args[1]))
}

func (f realForge) openPull(ts *testscript.TestScript, n int64, head, base string) {
	number, err := f.OpenPull(f.ann, "ann/fleet", head, base)
	ts.Check(err)
	if number != n {
		ts.Fatalf("it is pull request %d", number)
	}
}

func (f realForge) mergePull(ts *testscript.TestScript, n int64) {
	ts.Check(f.Merge(f.ann, "ann/fleet", n))
}

func (f realForge) shown(ts *testscript.TestScript, n int64, commit string) string {
	var b strings.Builder
	comments, err := f.Server.Comments(f.ann, "ann/fleet", n)
	ts.Check(err)
	for _, c := range comments {
		fmt.Fprintf(&b, "== %s\n%s", c.User.Login, c.Body)
	}
	statuses, err := f.Server.Statuses(f.ann, "ann/fleet", commit)
	ts.Check(err)
	for _, status := range statuses {
		fmt.Fprintf(&b, "== %s: %s: %s\n", status.Context, status.Status, status.Description)
	}
	return b.String()
}
