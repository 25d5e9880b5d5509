// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/change"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
)

// Exit codes of every command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitDifferences = 2 // only with --detailed-exitcode
	exitStopped     = 3 // of plan, by --fail-on
	exitOtherPlan   = 4 // of plan, by --expect-digest
	exitTimedOut    = 5 // of wait
	exitUsage       = 64
)

// run is the program: everything it prints goes to the writers.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stdout, stderr = printable.NewWriter(stdout), printable.NewWriter(stderr)
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := executed(func() (*cobra.Command, error) { return root.ExecuteContextC(withProgress(ctx, stderr)) })
	var usage *usageError
	var option *change.OptionError
	var quiet *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &quiet):
		return quiet.code
	case errors.As(err, &usage), errors.As(err, &option):
		fmt.Fprintf(stderr, "fairlead: %v\nRun '%s --help' for usage.\n", err, cmd.CommandPath())
		return exitUsage
	}

	fmt.Fprintf(stderr, "fairlead: %v\n", err)
	return exitFailed
}

// executed turns the panic of what a command cannot read any more into its error.
func executed(execute func() (*cobra.Command, error)) (cmd *cobra.Command, err error) {
	defer func() {
		if r := recover(); r != nil {
			lost, ok := r.(fleet.Unavailable)
			if !ok {
				panic(r)
			}
			err = lost
		}
	}()
	return execute()
}

// usageError is the error of an invalid command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// parseReference reads the object that a command line names.
func parseReference(args []string, namespace string) (object.Reference, error) {
	r, err := object.ParseReference(args, namespace)
	if err != nil {
		return object.Reference{}, &usageError{err}
	}
	return r, nil
}

// optionalReference is parseReference of a flag's value; nil where it is empty.
func optionalReference(value, namespace string) (*object.Reference, error) {
	if value == "" {
		return nil, nil
	}
	r, err := parseReference([]string{value}, namespace)
	return &r, err
}

// exitError is an exit code, with everything printed already.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "fairlead",
		Short: "Manage a fleet of Kubernetes clusters with a git repository as the control plane",
		Long: `fairlead reads Karmada-style policies and ordinary Kubernetes templates from a
git repository, decides which cluster gets what, and applies it there.

The fleet is a pure function of git history: each commit of the tracked branch
is one step, and the same history always gives the same fleet.

Look commands change nothing. They read commits and need no cluster, except for
those that show what the clusters really run. Edit commands show the effect of an
edit, and write it to git and nowhere else. Run commands reconcile the clusters
with git. Controller commands install what does that inside a cluster.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddGroup(&cobra.Group{ID: "look", Title: "Look:"}, &cobra.Group{ID: "edit", Title: "Edit:"}, &cobra.Group{ID: "run", Title: "Run:"}, &cobra.Group{ID: "controller", Title: "Controller:"})
	add(root, "look", newGet(), newWhy(), newHistory(), newEvents(), newStatus(), newWait(), newDiff(), newPlan(), newComment(), newValidate(), newRender(), newSchema(), newServe())
	add(root, "edit", newSuspend(), newResume(), newPromote(), newRollback(), newActivate(), newAdopt(), newTaint(),
		newCordon("cordon", "Mark a cluster as unschedulable"), newCordon("uncordon", "Mark a cluster as schedulable"))
	add(root, "run", newRun(), newDemo())
	add(root, "controller", newController(), newInstall(), newUninstall(), newCreate(), newReconcile())
	root.AddCommand(newVersion())
	root.SetHelpCommand(newHelp())
	root.SuggestionsMinimumDistance = 2
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	color := root.PersistentFlags().String("color", colorAuto, "colours for states: auto (on a terminal, unless NO_COLOR is set), always, never")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		return checkOneOf("--color", *color, colorAuto, colorAlways, colorNever)
	}
	completeAll(root)
	return root
}

// checkOneOf refuses a value of a flag that is none of those known.
func checkOneOf(flag, value string, known ...string) error {
	if !slices.Contains(known, value) {
		return usagef("%s %q must be one of %s", flag, value, strings.Join(known, ", "))
	}
	return nil
}

func add(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
	}
	root.AddCommand(commands...)
}

// newHelp is cobra's help command, except that an unknown command is an error.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			for _, c := range cmd.Root().Commands() {
				names = append(names, c.Name())
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			return about.Help()
		},
	}
}

// unknownCommand names the commands that may have been meant.
func unknownCommand(root *cobra.Command, name string) error {
	meant := root.SuggestionsFor(name)
	if len(meant) == 0 {
		return usagef("unknown command %q", name)
	}
	return usagef("unknown command %q; did you mean %s?", name, strings.Join(meant, ", "))
}

// arguments makes a wrong number of arguments a usage error that quotes the
// command's usage line.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > most && most == 0:
			return usagef("%s takes no arguments: unexpected %q", cmd.Name(), args[0])
		case len(args) > most:
			return usagef("unexpected argument %q: %s", args[most], strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		case len(args) < least:
			return usagef("missing argument: %s", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		}
		return nil
	}
}
