// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	fluxcontroller "github.com/fluxcd/pkg/runtime/controller"
	fluxevents "github.com/fluxcd/pkg/runtime/events"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	fluxmetrics "github.com/fluxcd/pkg/runtime/metrics"
	"github.com/fluxcd/pkg/runtime/pprof"
	"github.com/fluxcd/pkg/runtime/predicates"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller/webhook"
)

// shutdownTimeout is how long the loops may take to drain.
const shutdownTimeout = 30 * time.Second

// Run reconciles the Fleets of an API server until ctx is done, or leadership is lost.
func Run(ctx context.Context, hub *rest.Config, opt Options) error {
	opt = opt.withDefaults()
	if err := opt.Jitter.SetGlobalJitter(rand.New(rand.NewSource(time.Now().UnixNano()))); err != nil {
		return err
	}
	hub = rest.CopyConfig(hub)
	hub.QPS, hub.Burst = opt.Client.QPS, opt.Client.Burst
	opt.Allow.Own = append(opt.Allow.Own, hub.Host)

	mgr, err := newManager(hub, opt)
	if err != nil {
		return err
	}

	all := newFollowers(opt, mgr.GetAPIReader())
	if opt.Sharding {
		if all.shares, err = sharesOf(hub, opt.Namespace); err != nil {
			return err
		}
	}
	if err := setup(mgr, all, opt); err != nil {
		return err
	}
	if err := ctrlmetrics.Registry.Register(all.told); err != nil {
		return err
	}
	defer ctrlmetrics.Registry.Unregister(all.told)

	err = mgr.Start(ctx)
	all.close()
	if err != nil && strings.Contains(err.Error(), "leader election lost") {
		return fmt.Errorf("%w: another replica may reconcile now, or the API server is away; nothing more is sent to any cluster", err)
	}
	return err
}

// newManager connects to the API server of the Fleets.
func newManager(hub *rest.Config, opt Options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	selector, err := fluxcontroller.GetWatchSelector(opt.Watch)
	if err != nil {
		return nil, fmt.Errorf("--watch-label-selector: %w", err)
	}

	namespaces := map[string]cache.Config{}
	lease := Name + "-leader-election"
	if !opt.Watch.AllNamespaces {
		namespaces[opt.Namespace] = cache.Config{}
	}
	if opt.Watch.LabelSelector != "" {
		lease = leaderelection.GenerateID(lease, opt.Watch.LabelSelector)
	}
	return ctrl.NewManager(hub, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        opt.Log,
		Metrics:                       server.Options{BindAddress: address(opt.MetricsAddr), ExtraHandlers: pprof.GetHandlers()},
		HealthProbeBindAddress:        address(opt.HealthAddr),
		LeaderElection:                opt.LeaderElection.Enable,
		LeaderElectionReleaseOnCancel: opt.LeaderElection.ReleaseOnCancel,
		LeaseDuration:                 &opt.LeaderElection.LeaseDuration,
		RenewDeadline:                 &opt.LeaderElection.RenewDeadline,
		RetryPeriod:                   &opt.LeaderElection.RetryPeriod,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       opt.Namespace,
		GracefulShutdownTimeout:       ptr(shutdownTimeout),
		Cache: cache.Options{
			DefaultNamespaces: namespaces,
			ByObject:          map[client.Object]cache.ByObject{&v1alpha1.Fleet{}: {Label: selector}},
			DefaultTransform:  cache.TransformStripManagedFields(),
		},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}, Unstructured: false}},
		Controller: config.Controller{SkipNameValidation: ptr(true)},
	})
}

// setup registers the reconciler, its watches and the probes.
func setup(mgr manager.Manager, all *followers, opt Options) error {
	r := &reconciler{client: mgr.GetClient(), reader: mgr.GetAPIReader(), opt: opt, followers: all}
	r.metrics = fluxcontroller.NewMetrics(mgr, recorder(), v1alpha1.Finalizer)
	r.hub = mgr.GetEventRecorderFor(Name) //nolint:staticcheck // Flux's recorder takes this kind
	if opt.EventsAddr != "" {
		// The API server has them already, and those of a GitRepository are source-controller's.
		nowhere := &record.FakeRecorder{}
		to, err := fluxevents.NewRecorderForScheme(mgr.GetScheme(), nowhere, opt.Log, opt.EventsAddr, Name)
		if err != nil {
			return fmt.Errorf("--events-addr: %w", err)
		}
		r.posts = newPosts(to, opt.Log)
		if err := mgr.Add(r.posts); err != nil {
			return err
		}
	}

	wanted := predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{})
	if opt.Sharding {
		wanted = predicate.Or(wanted, shardsChanged)
	}
	c, err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Fleet{}, builder.WithPredicates(wanted)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
			return all.secretChanged(o.GetNamespace(), o.GetName())
		})).
		WatchesRawSource(source.Func(all.start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: opt.Concurrent, RateLimiter: fluxcontroller.GetRateLimiter(opt.RateLimiter)}).
		Build(r)
	if err != nil {
		return err
	}

	r.watchSources = sync.OnceFunc(func() {
		if err := watchSources(mgr, c, all); err != nil {
			opt.Log.Error(err, "cannot watch GitRepositories")
		}
	})
	if address(opt.WebhookAddr) != "0" {
		if err := mgr.Add(receiver(all, mgr.GetClient(), opt)); err != nil {
			return err
		}
	}
	if address(opt.PageAddr) != "0" {
		served, err := newPages(all, mgr.GetClient(), mgr.GetConfig(), opt)
		if err != nil {
			return err
		}
		if err := mgr.Add(manager.RunnableFunc(served.serve(opt.PageAddr))); err != nil {
			return err
		}
	}
	return probes(mgr, all)
}

// shardsChanged has a Fleet reconciled of which a replica has said something about a shard:
// the one that leads adds it up.
var shardsChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Fleet)
		after, also := e.ObjectNew.(*v1alpha1.Fleet)
		return ok && also && !equality.Semantic.DeepEqual(before.Status.Shards, after.Status.Shards)
	},
}

// receiver listens for what forges say of pushes, while this replica leads.
func receiver(all *followers, c client.Client, opt Options) manager.RunnableFunc {
	look := all.look
	if opt.Sharding {
		look = func(namespace, name string) { all.lookEverywhere(c, namespace, name) }
	}
	handler := webhook.New(webhook.Options{Hook: all.hook, Look: look, Count: all.told.Webhook})
	return func(ctx context.Context) error {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", opt.WebhookAddr)
		if err != nil {
			return fmt.Errorf("--webhook-addr: %w", err)
		}
		return webhook.Serve(ctx, l, handler)
	}
}

// watchSources has the Fleets of a GitRepository reconciled when it changes. It is called
// when the first Fleet names one: before that, Flux need not be there.
func watchSources(mgr manager.Manager, c controller.Controller, followed *followers) error {
	fleets := func(ctx context.Context, o *unstructured.Unstructured) (all []ctrl.Request) {
		var list v1alpha1.FleetList
		if err := mgr.GetClient().List(ctx, &list); err != nil {
			return nil
		}
		for i := range list.Items {
			if isSource(&list.Items[i], client.ObjectKeyFromObject(o)) {
				name := client.ObjectKeyFromObject(&list.Items[i])
				followed.sourceChanged(name)
				all = append(all, ctrl.Request{NamespacedName: name})
			}
		}
		return all
	}
	return c.Watch(source.Kind(mgr.GetCache(), newGitRepository(), handler.TypedEnqueueRequestsFromMapFunc(fleets)))
}

// probes are ready when the caches are filled, and healthy while no loop is stuck.
func probes(mgr manager.Manager, all *followers) error {
	ready := func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the Fleets are not read yet")
		}
		return nil
	}
	healthy := func(*http.Request) error {
		if names := all.stuck(time.Now()); len(names) > 0 {
			return fmt.Errorf("stuck: %s", strings.Join(names, ", "))
		}
		return nil
	}
	return errors.Join(mgr.AddReadyzCheck("cache", ready), mgr.AddHealthzCheck("loops", healthy))
}

// recorder is the one of the process: its metrics can be registered once.
var recorder = sync.OnceValue(fluxmetrics.MustMakeRecorder)

// address is what controller-runtime listens on; it has "0" for nothing.
func address(addr string) string {
	if addr == "" {
		return "0"
	}
	return addr
}

func ptr[T any](v T) *T { return &v }
