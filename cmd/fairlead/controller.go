// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/web"
)

type controllerFlags struct {
	controller.Options
	log         logger.Options
	kubeconfig  string
	pageProxies []string
}

func newController() *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Reconcile the Fleet resources of a cluster",
		Long: `Reconciles every Fleet resource of the cluster in which it runs: each follows a
branch, and has the clusters of its fleet reconciled. Flags, probes, metrics, events
and conditions are those of Flux's controllers. fairlead install sets it up.`,
		Example: `  fairlead controller --kubeconfig ~/.kube/config --storage-path /tmp/fairlead --log-encoding console`,
		Args:    mustNotHaveArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.bind(cmd.Flags())
	return cmd
}

func (f *controllerFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster that has the Fleets (default: the Pod's own, or the one that kubectl uses)")
	flags.StringVar(&f.StoragePath, "storage-path", "/data", "directory of the repositories' mirrors and the checkpoints; it is a cache")
	flags.StringVar(&f.MetricsAddr, "metrics-addr", ":8080", "the address of metrics and pprof")
	flags.StringVar(&f.HealthAddr, "health-addr", ":9440", "the address of the probes")
	flags.StringVar(&f.EventsAddr, "events-addr", os.Getenv("EVENTS_ADDR"), "the address to post events to, such as that of Flux's notification-controller")
	flags.StringVar(&f.WebhookAddr, "webhook-addr", ":9292", "the address of the receiver of webhooks")
	flags.StringVar(&f.PageAddr, "page-addr", "", "the address of the pages of the Fleets (default: they are not served)")
	flags.StringVar(&f.PageAuth, "page-auth", "", "who may see the pages: kubernetes (whoever may get fleets/page, by the bearer token), none (whoever reaches the address); required for an address that is not of this machine")
	flags.StringSliceVar(&f.pageProxies, "page-proxies", nil, "addresses and networks of the proxies in front of the pages, whose X-Forwarded-For says who a request is from")
	flags.IntVar(&f.Concurrent, "concurrent", 4, "how many Fleets are reconciled, and how many histories folded, at a time")
	flags.StringVar(&f.DefaultServiceAccount, "default-service-account", "", "the service account that is impersonated on the clusters of a Fleet that names none")
	flags.BoolVar(&f.Allow.Exec, "insecure-kubeconfig-exec", false, "allow kubeconfigs from Secrets to run programs")
	flags.BoolVar(&f.Allow.TLS, "insecure-kubeconfig-tls", false, "allow kubeconfigs from Secrets not to verify certificates, and plain HTTP")
	flags.BoolVar(&f.Allow.Proxy, "insecure-kubeconfig-proxy", false, "allow kubeconfigs from Secrets to name a proxy")
	flags.BoolVar(&f.Allow.Internal, "allow-internal-members", false, "allow clusters at loopback and link-local addresses, and at the address of this cluster's own API server")
	flags.BoolVar(&f.Sharding, "enable-sharding", false, "share the clusters of each Fleet between all replicas, instead of electing a leader")
	f.Watch.BindFlags(flags)
	f.Client.BindFlags(flags)
	f.LeaderElection.BindFlags(flags)
	f.RateLimiter.BindFlags(flags)
	f.Jitter.BindFlags(flags)
	f.ACL.BindFlags(flags)
	f.log.BindFlags(flags)
}

// checkPage refuses pages that strangers could see by mistake.
func (f *controllerFlags) checkPage() error {
	if f.PageAddr == "" || f.PageAddr == "0" {
		return nil
	}
	proxies, err := web.ParseProxies(f.pageProxies)
	if err != nil {
		return usagef("--page-proxies: %w", err)
	}
	f.PageProxies = proxies
	elsewhere, err := reachable(f.PageAddr)
	switch {
	case err != nil:
		return usagef("--page-addr: %w", err)
	case f.PageAuth == "" && elsewhere:
		return usagef("--page-addr %s can be reached from elsewhere: specify --page-auth kubernetes, or none if something in front decides who may see the pages", f.PageAddr)
	case f.PageAuth == "":
		return nil // to this machine alone
	}
	return checkOneOf("--page-auth", f.PageAuth, controller.PageAuthKubernetes, controller.PageAuthNone)
}

func (f *controllerFlags) run(cmd *cobra.Command) error {
	level, known := logLevels[f.log.LogLevel]
	if !known {
		return usagef("--log-level %q must be one of trace, debug, info, error", f.log.LogLevel)
	}
	if err := checkOneOf("--log-encoding", f.log.LogEncoding, "json", "console"); err != nil {
		return err
	}
	if f.Sharding && f.LeaderElection.Enable {
		return usagef("specify only one of --enable-sharding and --enable-leader-election: where the replicas share the clusters, none of them waits")
	}
	if err := f.checkPage(); err != nil {
		return err
	}
	f.Log = newLogger(cmd.ErrOrStderr(), f.log.LogEncoding, level)
	logger.SetLogger(f.Log)
	f.Namespace = os.Getenv("RUNTIME_NAMESPACE")
	if f.Namespace == "" {
		f.Namespace = "fairlead-system"
	}
	hub, err := push.OwnCluster(f.kubeconfig)
	if err != nil {
		return fmt.Errorf("the cluster that has the Fleets: %w", err)
	}

	return controller.Run(cmd.Context(), hub, f.Options)
}
