// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/install"
	"github.com/fairlead/fairlead/printable"
)

// hubFlags say which cluster the controller runs in, and how long to wait for it.
type hubFlags struct {
	kubeconfig, context string
	timeout             time.Duration
}

func (f *hubFlags) bind(flags *pflag.FlagSet, timeout time.Duration) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster that the controller runs in (default: the one that kubectl uses)")
	flags.StringVar(&f.context, "context", "", "context of the kubeconfig (default: the current one)")
	flags.DurationVar(&f.timeout, "timeout", timeout, "how long to wait")
}

// with connects to the cluster and does something there until it is done or timed out.
// Steps are told on stderr, and the last line is the outcome.
func (f *hubFlags) with(cmd *cobra.Command, do func(context.Context, *install.Cluster) (string, error)) error {
	if f.timeout <= 0 {
		return usagef("--timeout must be greater than 0")
	}
	cluster, err := install.Connect(f.kubeconfig, f.context, steps(cmd))
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	done, err := do(ctx, cluster)
	if err != nil {
		steps(cmd)(install.Failed, err.Error())
		return &exitError{exitFailed}
	}

	steps(cmd)(install.Done, done)
	return nil
}

// steps prints each step on stderr, as Flux does.
func steps(cmd *cobra.Command) install.Tell {
	return func(mark install.Mark, text string) {
		printable.Fprintf(cmd.ErrOrStderr(), "%s %s\n", string(mark), text)
	}
}

type installFlags struct {
	hubFlags
	install.Options
	export bool
}

func newInstall() *cobra.Command {
	f := installFlags{}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the controller into a cluster, or upgrade it",
		Long: `Applies what 'fairlead controller' needs, and waits until it is ready: the definition
of the kind Fleet, a namespace with Pod Security restricted, a StatefulSet, Services,
NetworkPolicies, and roles that may do no more than is needed. The same stands in
config/default of the repository, for kubectl apply -k.`,
		Example: `  fairlead install
  fairlead install --export > fairlead.yaml`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.install(cmd) },
	}
	flags := cmd.Flags()
	f.hubFlags.bind(flags, 5*time.Minute)
	flags.BoolVar(&f.export, "export", false, "print the manifests as YAML, and apply nothing")
	flags.StringVarP(&f.Namespace, "namespace", "n", install.Namespace, "namespace of the controller")
	flags.StringVar(&f.Image, "image", "", "image of the controller (default: "+install.Repository+" with the version of this program)")
	flags.StringVar(&f.EventsAddr, "events-addr", "", "where the controller posts events, for example http://notification-controller.flux-system.svc.cluster.local./")
	return cmd
}

func (f *installFlags) install(cmd *cobra.Command) error {
	f.Version = release()
	objects, err := install.Manifests(f.Options)
	if err != nil {
		return err
	}
	if f.export {
		return install.Write(cmd.OutOrStdout(), objects...)
	}

	return f.with(cmd, func(ctx context.Context, cluster *install.Cluster) (string, error) {
		steps(cmd)(install.Action, "installing components in "+f.Namespace+" namespace")
		return "install finished", cluster.Install(ctx, objects)
	})
}

// release is the version that images are tagged with; empty for one that was built from
// a checkout.
func release() string {
	if version == "dev" {
		return ""
	}
	return version
}

type uninstallFlags struct {
	hubFlags
	keep      install.Keep
	namespace string
	yes       bool
}

func newUninstall() *cobra.Command {
	f := uninstallFlags{}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the controller and every Fleet from a cluster, and touch no member",
		Long: `Deletes what 'fairlead install' applied, and what config/page and
config/sharding add to it: first the controller, then the definition of
the kind Fleet with every Fleet, then the namespace with what is in it. Nothing is
deleted on any member: what runs there goes on running, and bears the marks of its fleet,
so that the same fleet can take it up again.`,
		Example: `  fairlead uninstall --yes
  fairlead uninstall --keep-crds --keep-namespace --yes`,
		Args: mustNotHaveArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.uninstall(cmd) },
	}
	flags := cmd.Flags()
	f.hubFlags.bind(flags, 5*time.Minute)
	flags.StringVarP(&f.namespace, "namespace", "n", install.Namespace, "namespace of the controller")
	flags.BoolVar(&f.keep.CRDs, "keep-crds", false, "leave the definition of the kind Fleet, and every Fleet")
	flags.BoolVar(&f.keep.Namespace, "keep-namespace", false, "leave the namespace")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	flags.BoolVarP(&f.yes, "silent", "s", false, "the same as --yes")
	return cmd
}

func (f *uninstallFlags) uninstall(cmd *cobra.Command) error {
	if !f.yes {
		if terminalOf(cmd.ErrOrStderr()) == nil {
			return usagef("nobody can be asked here: --yes is required")
		}
		if !confirmed(cmd, "Remove fairlead and every Fleet of this cluster? Members are not touched. [y/N] ") {
			return &exitError{exitFailed}
		}
	}

	objects, err := install.Installed(install.Options{Namespace: f.namespace})
	if err != nil {
		return err
	}
	return f.with(cmd, func(ctx context.Context, cluster *install.Cluster) (string, error) {
		steps(cmd)(install.Action, "deleting components in "+f.namespace+" namespace")
		return "uninstall finished", cluster.Uninstall(ctx, objects, f.keep)
	})
}

// confirmed asks on the terminal.
func confirmed(cmd *cobra.Command, question string) bool {
	fmt.Fprint(cmd.ErrOrStderr(), question)
	answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
