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
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/decrypting"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/metrics"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/reconcile/checkpoint"
	"github.com/fairlead/fairlead/source"
)

type runFlags struct {
	fleetFlags
	kubeconfig, state     string
	decryption            string
	publish               publishFlags
	interval, timeout     time.Duration
	once, dryRun, verbose bool
	gates, encoding       string
	metrics, health       string
	verify                verifyFlags
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Follow a branch and reconcile every cluster with it",
		Long: `Follows a branch of a repository and reconciles every cluster of the fleet with it,
until it is stopped. A push cluster is reached through the context of --kubeconfig
that has its name. The manifests of a pull cluster are published to --publish, a
directory or the branches of a git repository, for the cluster's own Flux or Argo CD
to apply.`,
		Example: `  fairlead run -C https://git.example.com/acme/fleet --git-auth /etc/fleet --kubeconfig members.yaml
  fairlead run -C . --publish https://git.example.com/acme/deploy --publish-auth /etc/deploy
  fairlead run -C . --once --dry-run -v`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.bind(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig with a context named after each push cluster (default: the one that kubectl uses)")
	flags.StringVar(&f.decryption, "decryption", "", "directory of private keys for manifests that SOPS has encrypted: age in *.agekey, OpenPGP in *.asc")
	f.publish.bind(flags)
	f.verify.bind(flags)
	flags.StringVar(&f.state, "state", "", "directory of the checkpoint (default: one for each repository, ref and path under the user's state directory)")
	flags.DurationVar(&f.interval, "interval", 30*time.Second, "how often to fetch the repository")
	flags.DurationVar(&f.timeout, "timeout", 2*time.Minute, "how long --once may take")
	flags.BoolVar(&f.once, "once", false, "reconcile once and exit, with 1 if a cluster does not have what git wants")
	flags.BoolVar(&f.dryRun, "dry-run", false, "send nothing to any cluster and keep no state")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print every action on an object")
	flags.StringVar(&f.encoding, "log-encoding", "text", "text: one line for each event; json or console: as Flux controllers log")
	flags.StringVar(&f.metrics, "metrics-addr", "", "address to answer scrapes of Prometheus at, such as :8080")
	flags.StringVar(&f.health, "health-addr", "", "address to answer probes at, /healthz and /readyz, such as :9440")
	flags.StringVar(&f.gates, "feature-gates", "", "not supported by run: set feature gates in fairlead.yaml, so that they are part of the history")
	_ = flags.MarkHidden("feature-gates")
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command) error {
	if cmd.Flags().Changed("feature-gates") {
		return usagef("run takes feature gates only from fairlead.yaml in git")
	}
	if f.interval <= 0 {
		return usagef("--interval %s: must be greater than 0", f.interval)
	}
	if f.once && f.metrics+f.health != "" {
		return usagef("--metrics-addr and --health-addr are for a run that goes on, not for --once")
	}
	if f.timeout < 0 {
		return usagef("--timeout %s: must not be negative", f.timeout)
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

	verify, err := f.verify.read()
	if err != nil {
		return err
	}
	if _, err := decryption(f.decryption); err != nil {
		return err
	}

	origin := checkpoint.Origin{Repo: source.Redact(f.repo), Ref: f.ref, Path: f.path}
	if f.state == "" {
		if f.repo, err = absolute(f.repo); err != nil {
			return err
		}
		origin.Repo = source.Redact(f.repo)
		if f.state, err = checkpoint.DefaultDir(origin); err != nil {
			return err
		}
	}
	members := &members{kubeconfig: f.kubeconfig, decryption: f.decryption, pulled: pulled}
	out := newLines(cmd.ErrOrStderr(), f.encoding, f.verbose || f.dryRun)
	out.times = !f.once // who runs it once sees when
	told := metrics.New(time.Now)
	members.told = told
	err = f.follow(cmd.Context(), told, reconcile.Options{
		Repo: f.repo, Ref: f.ref, Path: f.path, Auth: auth, Verify: verify, StateDir: f.state,
		Interval: f.interval, Timeout: f.timeout, DryRun: f.dryRun,
		Watch: !f.once, Look: f.once, // once is over before there is anything to watch
		Members: members.member, Report: out.report, Progress: progressOf(cmd.Context()),
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

// follow runs the loop once, or until ctx is done.
func (f *runFlags) follow(ctx context.Context, told *metrics.Fleets, opt reconcile.Options) error {
	if err := f.serve(ctx, told, &opt); err != nil {
		return err
	}
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

// serve answers scrapes and probes, if their flags are given.
func (f *runFlags) serve(ctx context.Context, told *metrics.Fleets, opt *reconcile.Options) error {
	health := &metrics.Health{Now: time.Now, Patience: 3*f.interval + 10*time.Minute}
	opt.Observe = func(r reconcile.Result) {
		health.Looked()
		told.Observe(metrics.Name{Fleet: r.Fleet}, &r)
	}
	if f.metrics != "" {
		if err := metrics.Serve(ctx, f.metrics, told); err != nil {
			return fmt.Errorf("--metrics-addr: %w", err)
		}
	}
	if f.health != "" {
		if err := health.Serve(ctx, f.health); err != nil {
			return fmt.Errorf("--health-addr: %w", err)
		}
	}
	if f.metrics+f.health == "" {
		opt.Observe = nil // a Result costs something
	}
	return nil
}

// absolute makes a local repository's path independent of where we stand, so
// that the state directory is the same from everywhere.
func absolute(repo string) (string, error) {
	if isURL(repo) {
		return repo, nil
	}
	return filepath.Abs(repo)
}

// members connects to the clusters. A second call for a cluster reads the
// kubeconfig again: its credentials may have been rotated.
type members struct {
	kubeconfig string
	decryption string                             // directory of keys
	pulled     func(cluster string) member.Member // nil without --publish
	told       *metrics.Fleets                    // nil counts no requests

	contexts *push.Contexts
	given    map[string]bool // clusters that contexts was used for
}

func (m *members) member(c *fleet.Cluster) (member.Member, error) {
	if c.Spec.SyncMode == clusterv1alpha1.Pull {
		if m.pulled == nil {
			return nil, fmt.Errorf("it is a pull cluster: specify where to publish its manifests with --publish (%s)", c.Origin)
		}
		return m.pulled(c.Name), nil
	}
	if m.contexts == nil || m.given[c.Name] {
		contexts, err := push.LoadContexts(m.kubeconfig)
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

	if m.told != nil {
		config.Wrap(m.told.Requests(c.Name))
	}

	decrypt, err := decryption(m.decryption)
	if err != nil {
		return nil, err
	}
	pushed, err := push.New(config, push.Options{})
	if err != nil {
		return nil, err
	}

	return decrypting.Wrap(pushed, decrypt), nil
}

func checkEncoding(encoding string) error {
	if slices.Contains([]string{"text", "json", "console"}, encoding) {
		return nil
	}
	return usagef("--log-encoding %q must be one of text, json, console", encoding)
}
