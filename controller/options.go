// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"os"
	"time"

	"github.com/fluxcd/pkg/runtime/acl"
	fluxclient "github.com/fluxcd/pkg/runtime/client"
	fluxcontroller "github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/jitter"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/go-logr/logr"

	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/web"
)

// Name is the controller's: of its events, its field manager and its Lease.
const Name = "fairlead-controller"

// Options of the controller. Their flags and defaults are those of Flux's controllers.
type Options struct {
	// Namespace is where the controller runs, and has its Lease.
	Namespace string
	// StoragePath is the directory of the mirrors and checkpoints. It is a cache.
	StoragePath string
	// The addresses that are listened on; "" or "0" is none.
	MetricsAddr, HealthAddr, WebhookAddr string
	// PageAddr is where the pages of the Fleets are served, "" or "0" for nowhere, and
	// PageAuth who may see them: PageAuthKubernetes, PageAuthNone, or "" for whoever asks
	// for a host name of this machine.
	PageAddr, PageAuth string
	// PageProxies are in front of the pages: a request through one counts for who sent it.
	PageProxies web.Proxies
	// EventsAddr is where events are posted in Flux's form; "" is nowhere.
	EventsAddr string
	// Concurrent is how many Fleets are reconciled, and how many histories folded, at a
	// time.
	Concurrent int

	Watch          fluxcontroller.WatchOptions
	Client         fluxclient.Options
	LeaderElection leaderelection.Options
	// Sharding has the replicas share the clusters of each Fleet, and Pod is the name of
	// this one: by default POD_NAME, or else the host's.
	Sharding    bool
	Pod         string
	RateLimiter fluxcontroller.RateLimiterOptions
	Jitter      jitter.IntervalOptions
	ACL         acl.Options

	// DefaultServiceAccount is impersonated on the members of a Fleet that names none.
	DefaultServiceAccount string
	// Allow is what a kubeconfig from a Secret may do.
	Allow push.Allow
	Log   logr.Logger

	// steady is how long all is quiet before what happened is announced; for tests.
	steady time.Duration
	// rules are the timings of the Leases of shards; for tests.
	rules lease.Rules
}

func (o Options) withDefaults() Options {
	o.Concurrent = max(o.Concurrent, 1)
	o.steady = cmp.Or(o.steady, time.Second)
	o.Pod = cmp.Or(o.Pod, os.Getenv("POD_NAME"))
	if host, err := os.Hostname(); err == nil {
		o.Pod = cmp.Or(o.Pod, host)
	}
	return o
}
