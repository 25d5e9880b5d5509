// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Options of a Server. The zero value works.
type Options struct {
	// Name of the cluster and context in the kubeconfig. Default "embedded".
	Name string
	// Address to listen on. Default is a free port of 127.0.0.1.
	Address string
	// Behind is the URL of a server that passes requests on, without its path: this one
	// does not listen then.
	Behind string
}

// Server is an API server in this process.
type Server struct {
	name   string
	url    string
	http   *http.Server // nil behind another server
	faults faults
	log    requests
	store  *store
}

// Start serves until Close.
func Start(opt Options) (*Server, error) {
	if opt.Name == "" {
		opt.Name = "embedded"
	}
	s := &Server{name: opt.Name, url: opt.Behind, store: newStore()}
	if opt.Behind != "" {
		return s, nil
	}

	if opt.Address == "" {
		opt.Address = "127.0.0.1:0"
	}
	listen, err := net.Listen("tcp", opt.Address)
	if err != nil {
		return nil, fmt.Errorf("embedded server %s: %w", opt.Name, err)
	}
	s.url = "http://" + listen.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(listen) }() // it always ends with an error, at Close
	return s, nil
}

// Close ends the server and its connections.
func (s *Server) Close() {
	s.store.close()
	if s.http != nil {
		_ = s.http.Close()
	}
}

// URL of the server.
func (s *Server) URL() string { return s.url }

// Config is how to reach the server.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.URL(), QPS: -1} }

// Kubeconfig is the same for other programs. Its context has the server's
// name.
func (s *Server) Kubeconfig() []byte {
	cfg := api.NewConfig()
	cfg.Clusters[s.name] = &api.Cluster{Server: s.URL()}
	cfg.AuthInfos[s.name] = &api.AuthInfo{}
	cfg.Contexts[s.name] = &api.Context{Cluster: s.name, AuthInfo: s.name}
	cfg.CurrentContext = s.name
	raw, err := clientcmd.Write(*cfg)
	if err != nil {
		panic(err) // it is ours from the first field to the last
	}
	return raw
}

// Request is one that was received.
type Request struct {
	Method, Path, Query, ContentType, UserAgent string
	At                                          time.Time
}

type requests struct {
	mu   sync.Mutex
	seen []Request
}

// longest is how many requests are remembered.
const longest = 1 << 17

func (l *requests) add(r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.seen) == longest {
		l.seen = append(l.seen[:0], l.seen[longest/2:]...)
	}
	l.seen = append(l.seen, Request{
		Method:      r.Method,
		Path:        r.URL.Path,
		Query:       r.URL.RawQuery,
		ContentType: r.Header.Get("Content-Type"),
		UserAgent:   r.UserAgent(),
		At:          time.Now(),
	})
}

// Requests are those received since the last ResetRequests, except those of a
// partition. Only the newest are kept when there are very many.
func (s *Server) Requests() []Request {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return append([]Request(nil), s.log.seen...)
}

// ResetRequests forgets them.
func (s *Server) ResetRequests() {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.seen = nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.faults.partitioned() {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	s.log.add(r)
	if s.faults.stand(w, r) {
		return
	}
	switch path := strings.Trim(r.URL.Path, "/"); {
	case path == "healthz" || path == "livez" || path == "readyz":
		_, _ = w.Write([]byte("ok"))
	case path == "version":
		send(w, http.StatusOK, versionInfo)
	case path == "api" || path == "apis" || strings.HasPrefix(path, "openapi/"):
		s.discover(w, r, path)
	default:
		s.resource(w, r, path)
	}
	// A partition that began meanwhile loses the answer, not the write.
	if s.faults.partitioned() {
		panic(http.ErrAbortHandler)
	}
}

// call is a request for a resource.
type call struct {
	*kind
	namespace, name, subresource string
	r                            *http.Request
	s                            *store
}

// resource serves /api/v1/... and /apis/GROUP/VERSION/...
func (s *Server) resource(w http.ResponseWriter, r *http.Request, path string) {
	parts := strings.Split(path, "/")
	var gv schema.GroupVersion
	switch {
	case parts[0] == "api" && len(parts) >= 2:
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case parts[0] == "apis" && len(parts) == 2:
		s.discoverGroup(w, parts[1])
		return
	case parts[0] == "apis" && len(parts) >= 3:
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		http.NotFound(w, r)
		return
	}
	if len(parts) == 0 {
		s.discoverVersion(w, r, gv)
		return
	}
	c := call{r: r, s: s.store}
	// /namespaces/NAME and its subresources are the namespace itself.
	if parts[0] == "namespaces" && len(parts) >= 3 && parts[2] != "status" && parts[2] != "finalize" {
		c.namespace, parts = parts[1], parts[2:]
	}
	c.kind = s.store.kindAt(gv, parts[0])
	if c.kind == nil {
		if !s.store.serves(gv) && gv.Group != "" && !s.store.servesGroup(gv.Group) {
			http.NotFound(w, r)
			return
		}
		refuse(w, notServed())
		return
	}
	if len(parts) > 1 {
		c.name = parts[1]
	}
	if len(parts) > 2 {
		c.subresource = parts[2]
	}
	if len(parts) > 3 || c.kind.namespaced != (c.namespace != "") && (c.name != "" || c.namespace != "" || r.Method == http.MethodPost) ||
		c.subresource != "" && !c.kind.hasSubresource(c.subresource) {
		refuse(w, notServed())
		return
	}
	c.serve(w)
}

func (c *call) serve(w http.ResponseWriter) {
	var (
		o       *stored
		err     error
		created bool
	)
	switch method := c.r.Method; {
	case c.subresource == "scale":
		c.scale(w)
		return
	case method == http.MethodGet && c.r.URL.Query().Get("watch") != "" && c.r.URL.Query().Get("watch") != "false":
		c.watch(w)
		return
	case method == http.MethodGet && c.name == "":
		c.list(w)
		return
	case method == http.MethodGet:
		o, err = c.s.get(c.kind, c.namespace, c.name)
	case method == http.MethodPost && c.name == "":
		o, err = c.create()
		created = true
	case method == http.MethodPut && c.name != "":
		o, err = c.update()
	case method == http.MethodPatch && c.name != "":
		o, created, err = c.patch()
	case method == http.MethodDelete && c.name != "" && c.subresource == "":
		c.delete(w)
		return
	case method == http.MethodDelete && c.name == "":
		c.deleteCollection(w)
		return
	default:
		err = apierrors.NewMethodNotSupported(c.kind.groupResource(), strings.ToLower(method))
	}
	if err != nil {
		refuse(w, err)
		return
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	c.answer(w, code, o)
}

func send(w http.ResponseWriter, code int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(code)
	_, _ = w.Write(raw)
}

// refuse sends an error as a Status, as a real server words it.
func refuse(w http.ResponseWriter, err error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(d.RetryAfterSeconds))
	}
	send(w, int(status.Code), status)
}

func notServed() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotFound,
		Reason:  metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{},
	}}
}
