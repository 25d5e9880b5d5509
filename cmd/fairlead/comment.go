// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/printable"
)

type commentFlags struct {
	forge.Target
	plan, scope string
	path        string
	timeout     time.Duration
	dryRun      bool
}

func newComment() *cobra.Command {
	f := commentFlags{}
	cmd := &cobra.Command{
		Use:   "comment --plan FILE",
		Short: "Show a plan on its pull request",
		Long: `Posts the plan that 'fairlead plan -o json' wrote as one comment on a pull request
of GitHub, GitLab, Gitea or Forgejo, or edits the comment that it posted before. It
sets the commit status fairlead/plan, and on GitHub it annotates the lines that cause
something. If nothing has changed it writes nothing.

In GitHub Actions, GitLab CI, Gitea Actions and Forgejo Actions it finds the pull
request by itself. The token comes from FAIRLEAD_FORGE_TOKEN, or else from
GITHUB_TOKEN, GITLAB_TOKEN or GITEA_TOKEN.`,
		Example: `  fairlead plan -o json > plan.json; fairlead comment --plan plan.json
  fairlead comment --plan plan.json --forge gitea --url https://git.example.com --repo acme/fleet --pull 7`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.comment(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.plan, "plan", "", "file with the plan as JSON; - is the standard input")
	flags.StringVar(&f.Kind, "forge", "", strings.Join(forge.Kinds, ", ")+" (gitea for Forgejo)")
	flags.StringVar(&f.URL, "url", "", "URL of the forge (default: the public GitHub or GitLab)")
	flags.StringVar(&f.Repo, "repo", "", "repository on the forge, OWNER/NAME")
	flags.Int64Var(&f.Pull, "pull", 0, "number of the pull request")
	flags.StringVar(&f.Head, "head", "", "commit that the plan was made for (default: that of the event, else that of the plan)")
	flags.StringVar(&f.scope, "scope", "", "name of the fleet, where one repository has several")
	flags.StringVar(&f.path, "path", ".", "directory of the fleet inside the repository, for annotations")
	flags.DurationVar(&f.timeout, "timeout", forge.Timeout, "how long to try when the forge limits requests or fails")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would be written, and write nothing")
	return cmd
}

func (f *commentFlags) comment(cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	target, token, err := f.where(forge.Process())
	if err != nil {
		return err
	}
	p, err := forge.ReadPlanFile(f.plan, cmd.InOrStdin())
	if err != nil {
		return err
	}

	o := forge.Options{Scope: f.scope, Path: f.path, Timeout: f.timeout}
	if f.dryRun {
		o.DryRun = cmd.OutOrStdout()
	}
	done, err := forge.PostTo(cmd.Context(), target, token, p, o)
	for _, note := range done.Notes {
		printable.Fprintf(cmd.ErrOrStderr(), "note: %s\n", note)
	}
	if err != nil || f.dryRun {
		return err
	}

	printable.Fprintf(cmd.OutOrStdout(), "%s\n", done.String())
	return nil
}

func (f *commentFlags) check() error {
	switch {
	case f.plan == "":
		return usagef("--plan is required")
	case f.timeout <= 0:
		return usagef("--timeout must be greater than 0")
	case !fs.ValidPath(path.Clean(f.path)):
		return usagef("--path %q must be a directory inside the repository", f.path)
	case f.Pull < 0:
		return usagef("--pull must be greater than 0")
	case len(f.scope) > forge.MostScope:
		return usagef("--scope must not be longer than %d bytes", forge.MostScope)
	case f.Kind == "":
		return nil
	}
	return checkOneOf("--forge", f.Kind, forge.Kinds...)
}

// where completes the target from the environment, and reads the token.
func (f *commentFlags) where(env forge.Environment) (forge.Target, string, error) {
	target, err := f.Or(env)
	if err != nil {
		return target, "", err
	}
	if flag := target.Missing(); flag != "" {
		return target, "", usagef("%s is required: nothing here says which pull request is meant", flag)
	}
	token, err := env.Token(target.Kind)
	return target, token, err
}
