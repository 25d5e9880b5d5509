// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/look/listing"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/report"
)

// candidates are what may stand where the cursor is. They come from git alone, through
// the cache of the looks: completion asks no cluster, and shows no error.
type candidates func(cmd *cobra.Command, args []string) []string

// completeAll gives every command and flag of root what completes it.
func completeAll(root *cobra.Command) {
	colors := fixed(colorAuto, colorAlways, colorNever)
	_ = root.RegisterFlagCompletionFunc("color", colors.completed(false)) // as below
	for _, cmd := range root.Commands() {
		if of := argumentsOf[cmd.Name()]; of != nil {
			cmd.ValidArgs, cmd.ValidArgsFunction = nil, of.completed(cmd.Name() == "get")
		} else if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if of := valuesOf(cmd.Name(), flag); of != nil {
				_, list := flag.Value.(pflag.SliceValue)
				_ = cmd.RegisterFlagCompletionFunc(flag.Name, of.completed(list)) // the flag exists, and this is its only one
			}
		})
	}
}

// completed returns the function that cobra calls. list is set for values with commas
// between them, of which the last one is completed.
func (c candidates) completed(list bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		before := ""
		if at := strings.LastIndex(begun, ","); at >= 0 && list {
			before = begun[:at+1]
		}

		var found []string
		directive := cobra.ShellCompDirectiveNoFileComp
		for _, word := range c(cmd, args) {
			if word = before + word; !strings.HasPrefix(word, begun) {
				continue
			}
			if strings.HasSuffix(word, "=") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			found = append(found, word)
		}
		return found, directive
	}
}

// argumentsOf is by command what its arguments may be.
var argumentsOf = map[string]candidates{
	"get": func(cmd *cobra.Command, args []string) []string {
		if len(args) == 0 {
			return fromGit(listing.Words.Resources)(cmd, args)
		}
		return first(1, fromGit(func(w listing.Words) []string { return w.Names(args[0]) }))(cmd, args[1:])
	},
	"why": first(1, fromGit(listing.Words.Objects)), "history": first(1, fromGit(listing.Words.Objects)),
	"wait": first(1, fromGit(listing.Words.Objects)), "adopt": first(1, fromGit(listing.Words.Objects)),
	"diff": func(cmd *cobra.Command, args []string) []string {
		if len(args) == 0 {
			return clusterNames(cmd, args)
		}
		return first(2, fromGit(listing.Words.Objects))(cmd, args)
	},
	"suspend": first(1, fromGit(listing.Words.Policies)), "resume": first(1, fromGit(listing.Words.Policies)),
	"promote": first(1, fromGit(listing.Words.Policies)), "activate": first(1, fromGit(listing.Words.Policies)),
	"rollback": first(1, fromGit(listing.Words.Policies)),
	"taint":    first(1, clusterNames), "cordon": first(1, clusterNames), "uncordon": first(1, clusterNames),
}

// valuesOf returns what the value of a flag may be; nil if only its user knows, or if it
// is a file.
func valuesOf(command string, flag *pflag.Flag) candidates {
	switch flag.Name {
	case "cluster":
		if command == "adopt" {
			return clusterNames
		}
		return fromGit(listing.Words.Clusters)
	case "namespace":
		return fromGit(listing.Words.Namespaces)
	case "ref", "base", "head", "since":
		return revisions
	case "only":
		return fixed(report.Words...)
	case "for":
		if command == "wait" {
			return fixed("healthy", "position=")
		}
		return fromGit(listing.Words.Objects)
	case "output":
		return fixed(formsIn(flag.Usage)...)
	case "fail-on":
		return fixed(plan.GateWords...)
	case "log-encoding":
		return fixed("text", "json", "console")
	case "feature-gates":
		var gates []string
		for _, gate := range knownGates() {
			gates = append(gates, gate+"=true", gate+"=false")
		}
		return fixed(gates...)
	}
	return nil
}

// formsIn reads the forms that the usage of -o lists.
func formsIn(usage string) (forms []string) {
	list, _, _ := strings.Cut(usage, ": ")
	for form := range strings.SplitSeq(list, ", ") {
		forms = append(forms, strings.TrimSuffix(form, "..."))
	}
	return forms
}

func fixed(words ...string) candidates {
	return func(*cobra.Command, []string) []string { return words }
}

// first limits candidates to the first arguments.
func first(n int, c candidates) candidates {
	return func(cmd *cobra.Command, args []string) []string {
		if len(args) >= n {
			return nil
		}
		return c(cmd, args)
	}
}

var clusterNames = fromGit(func(w listing.Words) []string { return w.Names("clusters") })

// fromGit returns what a command line can name at its --ref.
func fromGit(words func(listing.Words) []string) candidates {
	return func(cmd *cobra.Command, _ []string) []string {
		f := sameFleet(cmd)
		if f == nil {
			return nil
		}
		_, state, err := f.folded(cmd.Context())
		if err != nil {
			return nil
		}
		w := listing.Words{State: &state}
		if n := cmd.Flags().Lookup("namespace"); n != nil {
			w.Namespace = n.Value.String()
		}
		return words(w)
	}
}

// revisions are the branches and tags of the repository.
func revisions(cmd *cobra.Command, _ []string) []string {
	f := sameFleet(cmd)
	if f == nil {
		return nil
	}
	repo, err := f.fleetFlags.open(cmd.Context())
	if err != nil {
		return nil
	}
	names, err := repo.Revisions()
	if err != nil {
		return nil
	}
	return names
}

// sameFleet are the flags of a command line that select its fleet; nil if that is not
// on this machine, because nobody waits for a network at a prompt.
func sameFleet(cmd *cobra.Command) *lookFlags {
	var f lookFlags
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.bind(own)
	own.VisitAll(func(flag *pflag.Flag) {
		given := cmd.Flags().Lookup(flag.Name)
		if given == nil || !given.Changed || flag.Name == "since" && cmd.Name() == "events" {
			return
		}
		_ = own.Set(flag.Name, given.Value.String()) // what is not valid completes nothing
	})

	if _, err := os.Stat(f.repo); err != nil {
		return nil
	}
	return &f
}
