// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fairlead/fairlead/testenv/fakeforge"
)

// forgeToken must be nowhere in what a script prints.
const forgeToken = "canary-forge-token"

func startForge(ts *testscript.TestScript, _ bool, args []string) {
	start := map[string]func(string) *fakeforge.Server{"github": fakeforge.GitHub, "gitlab": fakeforge.GitLab, "gitea": fakeforge.Gitea}[args[0]]
	if start == nil {
		ts.Fatalf("there is no forge %q", args[0])
	}
	s := start(forgeToken)
	ts.Defer(s.Close)
	ts.Setenv("FORGE", s.URL)
	ts.Setenv("FAIRLEAD_FORGE_TOKEN", forgeToken)
	forges(ts)[ts.Getenv("WORK")] = s
}

// forges has the forge of a script, which is the last that it started.
func forges(ts *testscript.TestScript) map[string]*fakeforge.Server {
	return ts.Value("forge").(map[string]*fakeforge.Server)
}

func openPull(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	s := forges(ts)[ts.Getenv("WORK")]
	s.SetBranch("main", commitOf(ts, args[2]))
	s.SetPull(n, fakeforge.Pull{Head: commitOf(ts, args[1]), Target: "main", Branch: "mallory:change"})
}

func commitOf(ts *testscript.TestScript, revision string) string {
	cmd := exec.Command("git", "rev-parse", revision)
	cmd.Dir = ts.MkAbs(".")
	out, err := cmd.Output()
	ts.Check(err)
	return strings.TrimSpace(string(out))
}

func printComments(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	s := forges(ts)[ts.Getenv("WORK")]
	if len(s.Comments(n)) == 0 {
		fmt.Fprintln(ts.Stdout(), "none")
	}
	for _, c := range s.Comments(n) {
		fmt.Fprintf(ts.Stdout(), "== %s\n%s", c.Author.Login, strings.ReplaceAll(c.Body, s.URL, "http://forge"))
	}
	for _, status := range s.Statuses(s.Pull(n).Head) {
		fmt.Fprintf(ts.Stdout(), "== %s: %s: %s\n", status.Context, status.State, status.Description)
	}
}
