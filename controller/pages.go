// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/web"
	"github.com/fairlead/fairlead/web/auth"
	"github.com/fairlead/fairlead/web/stream"
)

// Who may see the pages.
const (
	PageAuthKubernetes = "kubernetes" // whom Kubernetes lets get fleets/page
	PageAuthNone       = "none"       // whoever reaches the address
)

// pages serves the page of each Fleet at /fleets/NAMESPACE/NAME/, and at / their list. The
// page of a Fleet folds its history when it is asked for first, and is given up when nobody
// has asked for a while.
type pages struct {
	*followers
	client client.Reader
	guard  func(namespace, name string, next http.Handler) http.Handler
	files  http.Handler
	list   http.Handler
	local  bool // nobody but this machine
	limits *stream.Limits
	viewer func(*http.Request) string

	open sync.Mutex // one opens or ends a page at a time
	by   map[types.NamespacedName]*page
}

// page is that of one Fleet, on one loop.
type page struct {
	server *web.Server
	loop   *reconcile.Loop
	stop   context.CancelFunc
	asked  time.Time
	served int // requests, streams included
}

// pageKept is how long a page is kept that nobody asks for.
const pageKept = 10 * time.Minute

// newPages returns the pages of all Fleets.
func newPages(all *followers, c client.Reader, hub *rest.Config, opt Options) (*pages, error) {
	p := &pages{followers: all, client: c, files: web.AssetHandler(), limits: stream.NewLimits(0, 0), viewer: opt.PageProxies.Viewer, by: map[types.NamespacedName]*page{}}
	p.guard = func(_, _ string, next http.Handler) http.Handler { return next }
	p.list = web.Index(p.listed)
	if opt.PageAuth != PageAuthKubernetes {
		p.local = opt.PageAuth == ""
		return p, nil
	}

	clients, err := kubernetes.NewForConfig(hub)
	if err != nil {
		return nil, err
	}
	p.guard = auth.New(auth.Options{
		Tokens: clients.AuthenticationV1().TokenReviews(), Access: clients.AuthorizationV1().SubjectAccessReviews(),
		Log: func(text string) { opt.Log.Info(text) },
	}).Handler
	return p, nil
}

// serve listens until ctx ends.
func (p *pages) serve(addr string) func(context.Context) error {
	return func(ctx context.Context) error {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("--page-addr: %w", err)
		}
		go p.giveUp(ctx)
		return web.Serve(ctx, l, p.handler(ctx))
	}
}

// handler has the paths.
func (p *pages) handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /assets/{name}", p.files)
	mux.Handle("GET /{$}", p.guard("", "", p.list))
	mux.HandleFunc("/fleets/{namespace}/{name}/", func(w http.ResponseWriter, r *http.Request) {
		name := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
		p.guard(name.Namespace, name.Name, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.page(ctx, name, w, r)
		})).ServeHTTP(w, r)
	})
	if p.local {
		return web.LocalOnly(mux)
	}
	return mux
}

// listed are the Fleets of the list.
func (p *pages) listed() (all []web.Listed) {
	var list v1alpha1.FleetList
	if err := p.client.List(context.Background(), &list); err != nil {
		return nil // the cache has ended
	}
	for i := range list.Items {
		f := &list.Items[i]
		l := web.Listed{Path: pagePath(client.ObjectKeyFromObject(f)) + "/", Title: f.Namespace + "/" + f.Name}
		if ready := conditions.Get(f, meta.ReadyCondition); ready != nil {
			l.State, l.Text = string(ready.Status), ready.Message
		}
		all = append(all, l)
	}

	slices.SortFunc(all, func(a, b web.Listed) int { return cmp.Compare(a.Title, b.Title) })
	return all
}

func pagePath(name types.NamespacedName) string {
	return "/fleets/" + name.Namespace + "/" + name.Name
}

// page answers for one Fleet.
func (p *pages) page(ctx context.Context, name types.NamespacedName, w http.ResponseWriter, r *http.Request) {
	one, why := p.begin(ctx, name)
	if one == nil {
		http.Error(w, why, http.StatusNotFound)
		return
	}

	defer func() {
		p.open.Lock()
		defer p.open.Unlock()
		one.served--
		one.asked = time.Now()
	}()
	one.server.ServeHTTP(w, r)
}

// begin returns the page of a Fleet, or why there is none.
func (p *pages) begin(ctx context.Context, name types.NamespacedName) (*page, string) {
	p.open.Lock()
	defer p.open.Unlock()
	f := p.follower(name)
	if f == nil {
		p.end(name)
		return nil, fmt.Sprintf("there is no Fleet %s that is followed here", name)
	}
	loop, s := f.opened()
	if loop == nil {
		return nil, fmt.Sprintf("the history of Fleet %s is not read yet", name)
	}

	one := p.by[name]
	if one == nil || one.loop != loop {
		p.end(name)
		running, stop := context.WithCancel(ctx)
		one = &page{loop: loop, stop: stop, server: web.New(web.Options{
			Prefix: pagePath(name), Streams: p.limits, Address: p.viewer, Fleet: f.shown(loop, s), Log: func(text string) { p.log.Info(text, "namespace", name.Namespace, "name", name.Name) },
		})}
		p.by[name] = one
		go func() { _ = one.server.Run(running) }() // it ends when it is told to
	}
	one.served++
	return one, ""
}

// giveUp ends the pages that nobody has asked for.
func (p *pages) giveUp(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		p.open.Lock()
		for name, one := range p.by {
			if one.served == 0 && time.Since(one.asked) > pageKept {
				p.end(name)
			}
		}
		p.open.Unlock()
	}
}

// end ends the page of a Fleet. The lock is held.
func (p *pages) end(name types.NamespacedName) {
	if one := p.by[name]; one != nil {
		one.stop()
		delete(p.by, name)
	}
}

// shown is what the page of a Fleet shows: the commits that the loop has folded, and what
// it knows of the members.
func (f *follower) shown(loop *reconcile.Loop, s settings) web.Fleet {
	seen := &seen{follower: f, loop: loop}
	changed := make(chan struct{}, 1)
	f.page.Store(&changed)
	return web.Fleet{
		Ref: loop.Ref(), Changed: changed,
		Head:  func() string { return f.last().result.Head },
		Known: func() *history.Known { return f.last().result.Known },
		Open: func(context.Context) (*history.States, error) {
			states := &history.States{Repo: loop.Repo(), History: history.New(loop.Repo(), s.path)}
			states.Cache = history.NewCache(filepath.Join(f.stateDir(s), "states"), s.path, "", nil)
			return states, nil
		},
		Members: seen.members,
		Forge:   web.NewForge(s.repo, s.reviews.Target.Kind, s.path),
	}
}
