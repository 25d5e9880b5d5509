// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"os"
	"path"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller/webhook"
	"github.com/fairlead/fairlead/metrics"
)

// followers are those of all Fleets.
type followers struct {
	opt    Options
	reader client.Reader
	shares shares
	log    logr.Logger
	turns  chan struct{}
	told   *metrics.Fleets

	mu      sync.Mutex
	by      map[types.NamespacedName]*follower
	queue   workqueue.TypedRateLimitingInterface[ctrl.Request] // nil before the controller has started
	hooks   map[string]types.NamespacedName                    // by the end of their path
	asked   map[types.NamespacedName]*secrets                  // of Fleets that are not followed yet
	changes map[types.NamespacedName]int                       // how often what a Fleet refers to has changed
	ended   bool
}

func newFollowers(opt Options, reader client.Reader) *followers {
	return &followers{opt: opt, reader: reader, log: opt.Log, told: metrics.New(time.Now), turns: make(chan struct{}, opt.Concurrent), by: map[types.NamespacedName]*follower{}, hooks: map[string]types.NamespacedName{}, asked: map[types.NamespacedName]*secrets{}, changes: map[types.NamespacedName]int{}}
}

// version is what settings are resolved from. It is taken before they are: what changes
// while they are resolved makes another one.
type version struct {
	generation int64 // of the Fleet
	changes    int   // of its Secrets and its GitRepository
}

func (fs *followers) version(f *v1alpha1.Fleet) version {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return version{f.Generation, fs.changes[client.ObjectKeyFromObject(f)]}
}

// upToDate returns the follower of a Fleet if it was resolved from a version; otherwise nil.
func (fs *followers) upToDate(name types.NamespacedName, v version) *follower {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.by[name]
	if f == nil || f.version != v {
		return nil
	}
	return f
}

// ensure returns the follower of a Fleet, with its settings; begun reports whether it is
// a new one. One of another place is drained first.
func (fs *followers) ensure(name types.NamespacedName, s settings, own *secrets, v version) (f *follower, begun bool) {
	fs.mu.Lock()
	f = fs.by[name]
	if f != nil && f.settings.place == s.place {
		f.version = v
		fs.setHook(name, s.hook)
		fs.mu.Unlock()
		f.set(s)
		return f, false
	}
	fs.mu.Unlock()

	fs.remove(name)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f = &follower{
		name: name, dir: directory(fs.opt.StoragePath, name), settings: s, version: v,
		members: newMembers(s.place, own, fs.opt.Allow, fs.told),
		told:    fs.told,
		log:     fs.log.WithValues("controller", "fleet", "controllerGroup", "fairlead.dev", "controllerKind", "Fleet", "namespace", name.Namespace, "name", name.Name),
		tell:    func() { fs.enqueue(name) },
		turn:    fs.turn,
		shares:  fs.shares,
		opt:     fs.opt,
	}
	fs.by[name] = f
	delete(fs.asked, name)
	fs.setHook(name, s.hook)
	if !fs.ended {
		f.start()
	}
	return f, true
}

// secretsOf returns the reader of a Fleet's Secrets: the one that its follower has, or
// will have.
func (fs *followers) secretsOf(name types.NamespacedName) *secrets {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.by[name]; f != nil {
		return f.members.secrets
	}
	if fs.asked[name] == nil {
		fs.asked[name] = newSecrets(fs.reader, name.Namespace)
	}
	return fs.asked[name]
}

// remove ends the follower of a Fleet. What it keeps on disk stays, as a cache.
func (fs *followers) remove(name types.NamespacedName) {
	fs.mu.Lock()
	f := fs.by[name]
	delete(fs.by, name)
	delete(fs.asked, name)
	fs.setHook(name, webhook.Hook{})
	fs.mu.Unlock()
	if f != nil && f.ended != nil {
		f.stop()
	}
	fs.told.Forget(metrics.Name{Namespace: name.Namespace, Fleet: name.Name})
}

// forget removes what is on disk of a Fleet that is gone.
func (fs *followers) forget(name types.NamespacedName) {
	if err := os.RemoveAll(directory(fs.opt.StoragePath, name)); err != nil {
		fs.log.Error(err, "cannot remove the state of a Fleet that is gone", "namespace", name.Namespace, "name", name.Name)
	}

	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.changes, name)
}

// follower returns the one of a Fleet, nil if there is none.
func (fs *followers) follower(name types.NamespacedName) *follower {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.by[name]
}

// close drains all, side by side.
func (fs *followers) close() {
	fs.mu.Lock()
	fs.ended = true
	all := fs.by
	fs.by = map[types.NamespacedName]*follower{}
	fs.mu.Unlock()

	var wait sync.WaitGroup
	for _, f := range all {
		if f.ended != nil {
			wait.Go(f.stop)
		}
	}
	wait.Wait()
}

// turn lets few histories be folded at a time.
func (fs *followers) turn(ctx context.Context) (done func(), err error) {
	select {
	case fs.turns <- struct{}{}:
		return func() { <-fs.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// enqueue has a Fleet reconciled.
func (fs *followers) enqueue(name types.NamespacedName) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.queue != nil {
		fs.queue.Add(ctrl.Request{NamespacedName: name})
	}
}

// start keeps the queue of the controller; it is a source of events.
func (fs *followers) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.queue = queue
	return nil
}

// hook returns the hook of a path, for the receiver.
func (fs *followers) hook(digest string) (webhook.Hook, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.by[fs.hooks[digest]]
	if f == nil {
		return webhook.Hook{}, false
	}
	return f.hook(), true
}

// look has a Fleet looked at now.
func (fs *followers) look(namespace, name string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.by[types.NamespacedName{Namespace: namespace, Name: name}]; f != nil {
		f.lookNow()
	}
}

// setHook makes the hook of a Fleet known. The lock is held.
func (fs *followers) setHook(name types.NamespacedName, h webhook.Hook) {
	maps.DeleteFunc(fs.hooks, func(_ string, of types.NamespacedName) bool { return of == name })
	if h.Token != "" {
		fs.hooks[digestOf(h)] = name
	}
}

// digestOf returns the end of the path of a hook.
func digestOf(h webhook.Hook) string { return path.Base(webhook.Path(h.Token, h.Namespace, h.Name)) }

// secretChanged tells the followers that use a Secret, and returns the Fleets to
// reconcile because of it.
func (fs *followers) secretChanged(namespace, secret string) (fleets []ctrl.Request) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for name, f := range fs.by {
		if name.Namespace != namespace || !f.members.secrets.uses(secret) {
			continue
		}
		fs.changes[name]++
		f.secretChanged(secret)
		fleets = append(fleets, ctrl.Request{NamespacedName: name})
	}
	// What is not there yet may be what a Fleet waits for.
	for name, own := range fs.asked {
		if name.Namespace == namespace && own.uses(secret) {
			fs.changes[name]++
			fleets = append(fleets, ctrl.Request{NamespacedName: name})
		}
	}
	return fleets
}

// sourceChanged has a Fleet resolved again.
func (fs *followers) sourceChanged(name types.NamespacedName) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.changes[name]++
}

// stuck returns the Fleets whose round lasts longer than it may.
func (fs *followers) stuck(now time.Time) (names []string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for name, f := range fs.by {
		if f.isStuck(now) {
			names = append(names, name.String())
		}
	}
	return names
}
