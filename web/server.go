// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/web/stream"
)

// Options are what a Server is made of.
type Options struct {
	Fleet Fleet
	// Prefix is where the page is served, such as /fleets/shop/web; "" is the root.
	Prefix string
	// Now is the clock, for ages. Nil is time.Now.
	Now func() time.Time
	// Log is told what goes wrong and no request is about. Nil tells nobody.
	Log func(text string)
	// Streams are the limits of event streams, shared by the pages of a process; nil is a
	// limit of its own. Address is whom a stream counts for; nil is the other end.
	Streams *stream.Limits
	Address func(*http.Request) string
	// Waiting is how many requests may wait for the history to be folded. 0 is 32.
	Waiting int
}

// Server serves the page of one fleet. Run follows its branch.
type Server struct {
	options Options
	mux     *http.ServeMux
	nudge   chan struct{}

	line      atomic.Pointer[line]
	progress  atomic.Pointer[progress]
	trouble   atomic.Pointer[string]  // why the branch cannot be followed
	unfetched atomic.Pointer[string]  // why the repository is not fetched
	unasked   atomic.Pointer[string]  // why the clusters are not asked
	seen      atomic.Pointer[Members] // what they answered
	askNow    chan struct{}

	travel *travel
	views  *views
	plans  *recent[string, *planned]
	sent   *recent[string, []byte] // pages that were made just now, by what they show

	hub       *stream.Hub
	published string // the version that the hub has; only Run knows
}

// New returns the server of a fleet.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Fleet.FetchEvery == 0 {
		o.Fleet.FetchEvery = 30 * time.Second
	}
	if o.Waiting == 0 {
		o.Waiting = 32
	}
	s := &Server{options: o, mux: http.NewServeMux(), nudge: make(chan struct{}, 1), askNow: make(chan struct{}, 1)}
	s.travel = newTravel(s, o.Waiting)
	s.views = &views{}
	s.plans = newRecent[string, *planned](maxPlans)
	s.sent = newRecent[string, []byte](maxSent)
	s.hub = stream.New(stream.Options{Limits: o.Streams, Address: o.Address})
	s.routes()
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page only reads: use GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// secure sets the headers of every answer. Nothing is loaded from elsewhere, nothing runs
// that is not a file of ours, and nobody else may frame the page.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// routes are the pages by their paths.
func (s *Server) routes() {
	handle := func(path string, page func(*request) error) {
		s.mux.Handle("GET "+s.options.Prefix+path, s.handler(page))
	}

	handle("/{$}", s.matrixPage)
	handle("/ruler", s.rulerPage)
	handle("/clusters", s.clustersPage)
	handle("/clusters/{name}", s.clusterPage)
	handle("/templates/{kind}/{namespace}/{name}", s.templatePage)
	handle("/policies", s.policiesPage)
	handle("/policies/{kind}/{namespace}/{name}", s.policyPage)
	handle("/holds", s.holdsPage)
	handle("/plan", s.planPage)
	handle("/plans/{number}", s.pullRequestPage)
	handle("/timeline", s.timelinePage)
	handle("/search", s.searchPage)
	handle("/", s.noPage)

	s.mux.Handle("GET "+s.options.Prefix+"/api/v1/{report}", s.apiHandler())
	s.mux.Handle("GET "+s.options.Prefix+"/assets/{name}", http.HandlerFunc(serveAsset))
	s.mux.Handle("GET "+s.options.Prefix+"/events", s.hub)
	s.mux.HandleFunc("GET "+s.options.Prefix+"/healthz", s.healthz)
}

// healthz answers as soon as there is something to show: before, and while the branch
// cannot be followed, a load balancer sends nobody here.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if s.line.Load() != nil {
		_, _ = w.Write([]byte("ok\n"))
		return
	}
	text := "the history is not folded yet"
	if trouble := s.trouble.Load(); trouble != nil {
		text = *trouble
	}
	http.Error(w, strings.TrimSpace(text), http.StatusServiceUnavailable)
}

// moved has every page show a new line. If it is of another history, what was folded of
// the last one says nothing any more.
func (s *Server) moved(next *line) {
	last := s.line.Swap(next)
	select {
	case s.askNow <- struct{}{}:
	default:
	}
	if last != nil && last.log != next.log {
		s.travel.folded.clear()
		s.views.clear()
		s.plans.clear()
		s.sent.clear()
	}
}
