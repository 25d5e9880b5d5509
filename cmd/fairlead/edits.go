// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/change"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/printable"
)

// editFlags are those of the commands that edit the fleet in git.
type editFlags struct {
	lookFlags
	commit bool
	push   string
	dryRun bool
	author string
}

func (f *editFlags) bind(cmd *cobra.Command) {
	f.lookFlags.bind(cmd.Flags())
	cmd.Flags().Lookup("ref").Usage = "branch to edit (default: the one checked out; with --push the repository's default branch)"
	cmd.Flags().BoolVar(&f.commit, "commit", false, "commit the edit, and nothing else, on the branch")
	cmd.Flags().StringVar(&f.push, "push", "", "commit the edit and push it to a `branch` of the remote for review; without a value the name is derived from the edit")
	cmd.Flags().Lookup("push").NoOptDefVal = derivedBranch
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan and the patch, and write nothing")
	cmd.Flags().StringVar(&f.author, "author", "", "author of the edit, 'Name <mail>' (default: git's user.name and user.email)")
}

// derivedBranch stands for --push without a name. Help shows it, and no branch
// can have this name.
const derivedBranch = "fairlead/..."

// edit opens a session for a change, prints what it does, and writes it.
func (f *editFlags) edit(cmd *cobra.Command, c change.Change) error {
	if err := c.Check(); err != nil {
		return err
	}
	s, err := f.session(cmd.Context(), c)
	if err != nil {
		return err
	}
	e, err := c.Edit(s)
	if err != nil {
		return err
	}

	return f.finish(cmd, s, e)
}

// session opens the session that a change is prepared in.
func (f *editFlags) session(ctx context.Context, c change.Change) (*change.Session, error) {
	if f.commit && f.push != "" {
		return nil, usagef("--commit and --push cannot be used together")
	}
	states, err := f.open(ctx)
	if err != nil {
		return nil, err
	}

	opt := change.Options{Repo: f.repo, Ref: f.ref, Path: f.path, Commit: f.commit, DryRun: f.dryRun, Credentials: f.credentials,
		Author: func() (change.Author, error) { return findAuthor(f.author, states.Repo) }}
	switch f.push {
	case "":
	case derivedBranch:
		opt.Push = "fairlead/" + change.BranchName(c.Name())
	default:
		opt.Push = f.push
	}

	return change.Open(states, opt)
}

// finish prints the plan of an edit and writes it.
func (f *editFlags) finish(cmd *cobra.Command, s *change.Session, e change.Edit) error {
	out, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
	p, err := s.Preview(e, time.Now())
	if err != nil {
		return err
	}

	switch {
	case p.Empty():
		say(out, stderr, e.Said, s.Notes())
		return nil
	case len(p.Problems) > 0:
		for _, problem := range p.Problems {
			fmt.Fprintln(out, problem.Error())
		}
		printable.Fprintf(stderr, "fairlead: the edit would be refused: %s; nothing is written\n", report.Count(len(p.Problems), "problem"))
		return &exitError{exitFailed}
	}

	warn(stderr, s.State())
	if err := p.Plan.Text(out, plan.View{Screen: screenOf(cmd)}); err != nil {
		return err
	}

	fmt.Fprintln(out)
	if f.dryRun {
		if _, err := printable.Raw(out).Write(p.Patch()); err != nil {
			return err
		}
		fmt.Fprintln(out)
		say(out, stderr, append(e.Said, "nothing is written: this is a dry run"), s.Notes())
		return nil
	}

	done, err := s.Write(cmd.Context(), p)
	if err != nil {
		return err
	}

	say(out, stderr, append(e.Said, done), s.Notes())
	return nil
}

func say(out, stderr io.Writer, said, notes []string) {
	for _, line := range said {
		fmt.Fprintln(out, line)
	}
	for _, note := range notes {
		printable.Fprintf(stderr, "note: %s\n", note)
	}
}
