// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
)

type runFlags struct {
	fleetFlags
	kubeconfig, state     string
	publish               publishFlags
	interval, timeout     time.Duration
	once, dryRun, verbose bool
	gates, encoding       string
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Follow a branch and bring every cluster to what it says",
		Long: `Follows a branch of a repository and brings every cluster of the fleet to what
it says, until it is told to end. A push cluster is reached by the context of
--kubeconfig that bears its name; what a pull cluster should run is written to
--publish, a directory or the branches of a git repository, for the cluster's own
Flux or Argo CD to apply.`,
		Example: `  fairlead run -C https://git.example.com/acme/fleet --git-auth /etc/fleet --kubeconfig members.yaml
  fairlead run -C . --publish https://git.example.com/acme/deploy --publish-auth /etc/deploy
  fairlead run -C . --once --dry-run -v`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.bind(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "file with a context for each push cluster, named like it (default: where kubectl looks)")
	f.publish.bind(flags)
	flags.StringVar(&f.state, "state", "", "directory of the checkpoint (default: one for each repository, ref and path under the user's state directory)")
	flags.DurationVar(&f.interval, "interval", 30*time.Second, "time between two looks at the repository")
	flags.DurationVar(&f.timeout, "timeout", 2*time.Minute, "how long --once waits for the clusters")
	flags.BoolVar(&f.once, "once", false, "go round once; exit 1 when a cluster is not where git wants it")
	flags.BoolVar(&f.dryRun, "dry-run", false, "send nothing to any cluster and keep no state")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print every single act")
	flags.StringVar(&f.encoding, "log-encoding", "text", "text, one line for each thing that happens, or json or console as Flux controllers log")
	flags.StringVar(&f.gates, "feature-gates", "", "not for run: feature gates live in fairlead.yaml, so that they are part of the history")
	_ = flags.MarkHidden("feature-gates")
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command) error {
	if cmd.Flags().Changed("feature-gates") {
		return usagef("run takes feature gates from fairlead.yaml in git alone")
	}
	if f.interval <= 0 {
		return usagef("--interval %s: there is no time between two looks", f.interval)
	}
	if f.timeout < 0 {
		return usagef("--timeout %s is over before it begins", f.timeout)
	}
	if err := checkEncoding(f.encoding); err != nil {
		return err
	}
	pulled, err := f.publish.open()
	if err != nil {
		return err
	}
	auth, err := f.credentials()
	if err != nil {
		return err
	}
	origin := reconcile.Origin{Repo: f.repo, Ref: f.ref, Path: f.path}
	if f.state == "" {
		if f.repo, err = absolute(f.repo); err != nil {
			return err
		}
		origin.Repo = f.repo
		if f.state, err = reconcile.DefaultStateDir(origin); err != nil {
			return err
		}
	}
	members := &members{kubeconfig: f.kubeconfig, pulled: pulled}
	out := newLines(cmd.ErrOrStderr(), f.encoding, f.verbose || f.dryRun)
	err = f.follow(cmd.Context(), reconcile.Options{
		Repo: f.repo, Ref: f.ref, Path: f.path, Auth: auth, StateDir: f.state,
		Interval: f.interval, Timeout: f.timeout, DryRun: f.dryRun,
		Watch: !f.once, Look: f.once, // once is over before there is anything to watch
		Members: members.member, Report: out.report,
	})
	if err == nil {
		out.summary()
	} else {
		out.failure(err)
		err = &exitError{exitFailed}
	}
	out.close()
	return err
}

// follow goes round once, or until it is told to end.
func (f *runFlags) follow(ctx context.Context, opt reconcile.Options) error {
	loop, err := reconcile.Open(ctx, opt)
	if err != nil {
		return err
	}
	if f.once {
		err = loop.Once(ctx)
	} else {
		err = loop.Run(ctx)
	}
	if closeErr := loop.Close(); err == nil {
		err = closeErr
	}
	return err
}

// absolute makes a local repository's path independent of where we stand, so
// that the state directory is the same from everywhere.
func absolute(repo string) (string, error) {
	if isURL(repo) {
		return repo, nil
	}
	return filepath.Abs(repo)
}

// members finds the way to a cluster. Whoever asks for one again wants it as
// the kubeconfig says it now: the credentials may have been rotated.
type members struct {
	kubeconfig string
	pulled     func(cluster string) dispatch.Member // nil: it is not said where to write

	contexts *dispatch.Contexts
	given    map[string]bool // clusters that were found in contexts
}

func (m *members) member(c *propagate.Cluster) (dispatch.Member, error) {
	if c.Spec.SyncMode == clusterv1alpha1.Pull {
		if m.pulled == nil {
			return nil, fmt.Errorf("it is a pull cluster, and --publish does not say where to write for it (%s)", c.Origin)
		}
		return m.pulled(c.Name), nil
	}
	if m.contexts == nil || m.given[c.Name] {
		contexts, err := dispatch.LoadContexts(m.kubeconfig)
		if err != nil {
			return nil, err
		}
		m.contexts, m.given = contexts, map[string]bool{}
	}
	m.given[c.Name] = true
	config, err := m.contexts.For(c.Name)
	if err != nil {
		return nil, err
	}
	return dispatch.Push(config)
}

func checkEncoding(encoding string) error {
	if slices.Contains([]string{"text", "json", "console"}, encoding) {
		return nil
	}
	return usagef("--log-encoding %q is none of text, json, console", encoding)
}
