// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/install"
)

func newCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a Fleet in the cluster that the controller runs in",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return usagef("unknown kind %q; did you mean fleet?", args[0])
		},
	}
	cmd.AddCommand(newCreateFleet())
	return cmd
}

type createFlags struct {
	hubFlags
	install.FleetOptions
	export bool
}

func newCreateFleet() *cobra.Command {
	f := createFlags{}
	cmd := &cobra.Command{
		Use:   "fleet NAME",
		Short: "Create or change a Fleet, and wait until it is ready",
		Example: `  fairlead create fleet acme --url https://git.example.com/acme/fleet --branch main --secret-ref acme-git --kubeconfig-secret-ref members
  fairlead create fleet acme --source-ref GitRepository/acme --kubeconfig-secret-ref members --export > fleet.yaml`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.create(cmd, args[0]) },
	}
	flags := cmd.Flags()
	f.hubFlags.bind(flags, 5*time.Minute)
	flags.BoolVar(&f.export, "export", false, "print the Fleet as YAML, and apply nothing")
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "namespace of the Fleet (default: that of the kubeconfig's context)")
	flags.StringVar(&f.URL, "url", "", "URL of the fleet's repository")
	flags.StringVar(&f.Branch, "branch", "", "branch to follow (default: that of the repository)")
	flags.StringVar(&f.SecretRef, "secret-ref", "", "Secret with credentials for the repository, in Flux's layout")
	flags.StringVar(&f.SourceRef, "source-ref", "", "GitRepository/NAME of Flux, instead of --url; GitRepository/NAME.NAMESPACE for another namespace")
	flags.StringVar(&f.Path, "path", "", "directory of the fleet inside the repository")
	flags.DurationVar(&f.Interval, "interval", 0, "how often to fetch the repository (default 1m)")
	flags.StringVar(&f.KubeConfigSecret, "kubeconfig-secret-ref", "", "Secret with a kubeconfig that has a context for each cluster")
	flags.StringVar(&f.ServiceAccount, "service-account", "", "service account to impersonate on every cluster")
	flags.StringVar(&f.DecryptionSecret, "decryption-secret", "", "Secret with age and OpenPGP keys of SOPS")
	flags.StringVar(&f.PublishURL, "publish-url", "", "repository for the manifests of pull clusters")
	flags.StringVar(&f.PublishSecret, "publish-secret-ref", "", "Secret with credentials for --publish-url")
	return cmd
}

func (f *createFlags) create(cmd *cobra.Command, name string) error {
	switch {
	case (f.URL == "") == (f.SourceRef == ""):
		return usagef("specify exactly one of --url and --source-ref")
	case f.SourceRef != "" && (f.Branch != "" || f.SecretRef != ""):
		return usagef("--branch and --secret-ref are for --url: the GitRepository has its own")
	case f.PublishSecret != "" && f.PublishURL == "":
		return usagef("--publish-secret-ref is for --publish-url")
	case f.Interval < 0:
		return usagef("--interval must be greater than 0")
	}
	f.Name = name
	fleet, err := install.NewFleet(f.FleetOptions)
	if err != nil {
		return usagef("--source-ref %w", err)
	}
	if f.export {
		return install.Write(cmd.OutOrStdout(), fleet)
	}

	return f.with(cmd, func(ctx context.Context, cluster *install.Cluster) (string, error) {
		fleet.SetNamespace(cmp.Or(f.Namespace, cluster.Namespace))
		return cluster.CreateFleet(ctx, fleet)
	})
}

func newReconcile() *cobra.Command {
	var f hubFlags
	var namespace string
	cmd := &cobra.Command{
		Use:   "reconcile NAME",
		Short: "Have the controller reconcile a Fleet now, and wait until it has",
		Long: `Annotates a Fleet with reconcile.fluxcd.io/requestedAt, waits until the controller has
handled that, and prints the message of the condition Ready. Exits with 1 if the Fleet is
not ready.`,
		Example: `  fairlead reconcile acme -n fleets`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, func(ctx context.Context, cluster *install.Cluster) (string, error) {
				key := types.NamespacedName{Namespace: cmp.Or(namespace, cluster.Namespace), Name: args[0]}
				return cluster.Reconcile(ctx, key, time.Now())
			})
		},
	}
	f.bind(cmd.Flags(), 2*time.Minute)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the Fleet (default: that of the kubeconfig's context)")
	return cmd
}
