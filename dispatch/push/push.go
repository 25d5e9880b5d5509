// SPDX-License-Identifier: Apache-2.0

package push

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

const (
	requestTimeout = 30 * time.Second

	asMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	asMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// apiMember is a member behind a Kubernetes API. It speaks HTTP itself: requests
// are bytes that are at hand, of an answer only the metadata is decoded, and
// client-go's own retries would hide from the Dispatcher that a member asks
// to slow down.
type apiMember struct {
	client *http.Client
	base   *url.URL
	kinds  *kinds
	all    *ConnLimit
	large  oneLarge
}

// Options of a member. The zero value works.
type Options struct {
	// Keepalive says when a silent connection is given up.
	Keepalive Keepalive
	// Limit counts connections. By default all members of the process share one,
	// which leaves as many file descriptors as the rest of it needs.
	Limit *ConnLimit
}

// New is a member behind a Kubernetes API. Nothing is requested until it is
// used.
func New(cfg *rest.Config, opt Options) (member.Member, error) { return newPush(cfg, opt) }

func newPush(cfg *rest.Config, opt Options) (*apiMember, error) {
	s, all := opt.Keepalive.withDefaults(), cmp.Or(opt.Limit, processLimit)
	cfg = rest.CopyConfig(cfg)
	if cfg.UserAgent == "" {
		cfg.UserAgent = object.Manager
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("server address %q: %w", cfg.Host, err)
	}
	own := cfg.Transport == nil
	if own {
		connect(cfg, base.Scheme, s, all)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("credentials for %s: %w", cfg.Host, err)
	}
	if own {
		// client-go shares no transport between members that have dialers.
		s.listen(client.Transport, all)
	}
	p := &apiMember{base: base, all: all, large: newOneLarge(), client: &http.Client{
		Transport: client.Transport,
		// A member does not send us, and our credentials, elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	p.kinds = &kinds{ask: func(ctx context.Context, path string) (int, []byte, error) {
		a, err := p.send(ctx, request{method: http.MethodGet, path: path})
		defer a.done() // one kind is asked for at a time, and its answer decoded
		return a.status, a.body, err
	}}
	return p, nil
}

// connect has a member's connections counted, and its transport its own.
func connect(cfg *rest.Config, scheme string, s Keepalive, all *ConnLimit) {
	to := cfg.Dial
	if to == nil {
		to = s.dialer().DialContext
	}
	cfg.Dial = all.dialing(to, s.Dial)
	if scheme != "http" {
		return
	}

	proxy := cfg.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	// client-go would share one transport, with two idle connections per
	// host, between all members without TLS.
	cfg.Transport = &http.Transport{
		Proxy:               proxy,
		DialContext:         cfg.Dial,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
	}
	cfg.Dial, cfg.Proxy = nil, nil // they are the transport's now
}

type request struct {
	method, path string
	query        url.Values
	accept       string
	contentType  string
	body         []byte
	many         bool // the answer is about more than one object
}

// answer is what a member said. What it holds of the member's memory is given back
// by done, when it was decoded.
type answer struct {
	status int
	header http.Header
	body   []byte
	finish func()
}

func (a answer) done() {
	if a.finish != nil {
		a.finish()
	}
}

// send returns an error only when there is no answer.
func (p *apiMember) send(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u := *p.base
	u.Path = strings.TrimSuffix(u.Path, "/") + r.path
	u.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(r.body))
	if err != nil {
		return answer{}, &member.Error{Reason: member.Invalid, Err: err}
	}
	req.Header.Set("Accept", "application/json")
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return answer{}, unreachable(err)
	}
	defer resp.Body.Close()
	limit := maxObject
	if r.many {
		limit = maxAnswer
	}
	body, done, err := p.read(ctx, resp, limit)
	if err != nil {
		return answer{}, err
	}
	return answer{resp.StatusCode, resp.Header, body, done}, nil
}

// partial is the metadata of an answer.
type partial struct {
	Kind     string      `json:"kind"`
	Metadata partialMeta `json:"metadata"`
}

type partialMeta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               types.UID         `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	DeletionTimestamp *string           `json:"deletionTimestamp"`
}

func (m *partialMeta) found(gk schema.GroupKind) member.Found {
	f := member.Found{
		UID:             m.UID,
		ResourceVersion: m.ResourceVersion,
		Labels:          m.Labels,
		Annotations:     m.Annotations,
		Deleting:        m.DeletionTimestamp != nil,
	}
	f.ID.Group, f.ID.Kind, f.ID.Namespace, f.ID.Name = gk.Group, gk.Kind, m.Namespace, m.Name
	return f
}

// managers is decoded on its own, where it is needed.
type managers struct {
	Metadata struct {
		ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields"`
	} `json:"metadata"`
}

// at resolves where ref is served.
func (p *apiMember) at(ctx context.Context, ref member.Ref) (string, error) {
	e, err := p.kinds.find(ctx, ref.GroupVersionKind)
	if err != nil {
		return "", err
	}
	if e.namespaced && ref.Namespace == "" {
		return "", &member.Error{Reason: member.Invalid, Err: fmt.Errorf("%s needs a namespace", ref.Kind)}
	}
	if !e.namespaced && ref.Namespace != "" {
		return "", &member.Error{Reason: member.Invalid, Err: fmt.Errorf("%s is cluster-scoped here, and in namespace %s in the fleet: its CustomResourceDefinition in the fleet would tell", ref.Kind, ref.Namespace)}
	}
	return e.path(ref.GroupVersion(), ref.Namespace, url.PathEscape(ref.Name)), nil
}

// appliedObject is what Apply reads of an answer.
type appliedObject struct {
	Kind     string `json:"kind"`
	Metadata struct {
		partialMeta
		ManagedFields []manager `json:"managedFields"`
	} `json:"metadata"`
}

// decode reads the metadata of an answer's object, or says why there is none.
func (p *apiMember) decode(ref member.Ref, a answer) (*partial, error) {
	o, err := decodeAs[partial](p, ref, a)
	if err == nil && o.Kind == "" {
		return nil, notKubernetes(a.status)
	}
	return o, err
}

func decodeAs[T any](p *apiMember, ref member.Ref, a answer) (*T, error) {
	if a.status != http.StatusOK && a.status != http.StatusCreated && a.status != http.StatusAccepted {
		err := apiError(a.status, a.header, a.body, ref.Kind == "Secret" && ref.Group == "")
		if err.Reason == member.NotServed {
			p.kinds.forget(ref.GroupVersion())
			err.Err = notServed(ref.GroupVersionKind).Err
		}
		return nil, err
	}
	var o T
	if err := json.Unmarshal(a.body, &o); err != nil {
		return nil, notKubernetes(a.status)
	}
	return &o, nil
}

func (p *apiMember) Apply(ctx context.Context, manifest map[string]any, opt member.ApplyOptions) (member.Applied, error) {
	applied, shared, err := p.apply(ctx, manifest, opt)
	if err != nil || !shared || !opt.Force {
		return applied, err
	}
	if err := p.takePublished(ctx, member.RefOf(manifest), applied.UID); err != nil {
		return member.Applied{}, err
	}
	opt.UID = applied.UID
	applied, _, err = p.apply(ctx, manifest, opt)
	return applied, err
}

// apply is one request. It reports whether somebody else applied a file of ours
// there.
func (p *apiMember) apply(ctx context.Context, manifest map[string]any, opt member.ApplyOptions) (applied member.Applied, shared bool, err error) {
	ref := member.RefOf(manifest)
	path, err := p.at(ctx, ref)
	if err != nil {
		return member.Applied{}, false, err
	}
	if opt.UID != "" {
		manifest = withUID(manifest, opt.UID)
	}
	sent := object.Stored(manifest)
	body, err := json.Marshal(sent)
	if err != nil {
		return member.Applied{}, false, &member.Error{Reason: member.Invalid, Err: err}
	}
	query := url.Values{"fieldManager": {object.Manager}}
	if opt.Force {
		query.Set("force", "true")
	}
	a, err := p.send(ctx, request{
		method:      http.MethodPatch,
		path:        path,
		query:       query,
		accept:      asMetadata,
		contentType: "application/apply-patch+yaml", // JSON is YAML
		body:        body,
	})
	if err != nil {
		return member.Applied{}, false, err
	}
	defer a.done()
	o, err := decodeAs[appliedObject](p, ref, a)
	if err != nil {
		return member.Applied{}, false, masked(masked(err, manifest), sent)
	}
	if o.Metadata.UID == "" || o.Kind == "" {
		return member.Applied{}, false, notKubernetes(a.status)
	}
	applied = member.Applied{
		UID:      o.Metadata.UID,
		Created:  a.status == http.StatusCreated,
		Deleting: o.Metadata.DeletionTimestamp != nil,
		Fields:   owned(o.Metadata.ManagedFields),
		Version:  versionOf(o.Metadata.ResourceVersion),
	}
	if !applied.Created && opt.UID == "" {
		var m managers
		if err := json.Unmarshal(a.body, &m); err != nil {
			return member.Applied{}, false, notKubernetes(a.status)
		}
		applied.Managers = m.Metadata.ManagedFields
	}
	return applied, slices.ContainsFunc(o.Metadata.ManagedFields, appliedPublished), nil
}

// withUID is the manifest with the UID of the object that must be there, at
// which a server refuses another one.
func withUID(manifest map[string]any, uid types.UID) map[string]any {
	out, meta := map[string]any{}, map[string]any{}
	for k, v := range manifest {
		out[k] = v
	}
	was, _ := manifest["metadata"].(map[string]any)
	for k, v := range was {
		meta[k] = v
	}
	meta["uid"] = string(uid)
	out["metadata"] = meta
	return out
}

func (p *apiMember) Get(ctx context.Context, ref member.Ref) (*member.Found, error) {
	a, o, err := p.get(ctx, ref, asMetadata)
	defer a.done()
	if err != nil || o == nil {
		return nil, err
	}
	var m managers
	if err := json.Unmarshal(a.body, &m); err != nil {
		return nil, notKubernetes(a.status)
	}
	f := o.Metadata.found(ref.GroupKind())
	f.Managers = m.Metadata.ManagedFields
	return &f, nil
}

// get returns no object when it is absent, which only a well-formed answer
// about that very object says. The answer is to be done with.
func (p *apiMember) get(ctx context.Context, ref member.Ref, accept string) (answer, *partial, error) {
	path, err := p.at(ctx, ref)
	if err != nil {
		return answer{}, nil, err
	}
	a, err := p.send(ctx, request{method: http.MethodGet, path: path, accept: accept})
	if err != nil {
		return answer{}, nil, err
	}
	if absent(a, ref) {
		return a, nil, nil
	}
	o, err := p.decode(ref, a)
	if err == nil && o.Metadata.UID == "" {
		err = notKubernetes(a.status)
	}
	if err != nil {
		return a, nil, err
	}
	return a, o, nil
}

// scaled is what Replicas reads of an object.
type scaled struct {
	Spec struct {
		Replicas *int64 `json:"replicas"`
	} `json:"spec"`
}

func (p *apiMember) Replicas(ctx context.Context, ref member.Ref) (int64, bool, error) {
	a, o, err := p.get(ctx, ref, "")
	defer a.done()
	if err != nil || o == nil {
		return 0, false, err
	}
	var s scaled
	if err := json.Unmarshal(a.body, &s); err != nil {
		return 0, false, notKubernetes(a.status)
	}
	if s.Spec.Replicas == nil {
		return 0, false, nil
	}
	return *s.Spec.Replicas, true, nil
}

func (p *apiMember) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[member.Found, error] {
	return func(yield func(member.Found, error) bool) {
		e, err := p.kinds.find(ctx, gvk)
		if err != nil {
			yield(member.Found{}, err)
			return
		}
		path := e.path(gvk.GroupVersion(), namespace, "")
		at := pager{kind: gvk.Kind}
		for {
			page, err := p.page(ctx, member.Ref{GroupVersionKind: gvk}, path, at.ask(url.Values{}))
			if errors.Is(err, expired) && at.next != "" {
				// What was yielded is yielded again; the caller keeps the last.
				if err = at.again(); err == nil {
					continue
				}
			}
			if at.shorter(err) {
				continue
			}
			if err != nil {
				yield(member.Found{}, err)
				return
			}
			for i := range page.Items {
				if !yield(page.Items[i].Metadata.found(gvk.GroupKind()), nil) {
					return
				}
			}
			if err := at.turnTo(page.Metadata.Continue, len(page.Items)); err != nil {
				yield(member.Found{}, err)
				return
			}
			if at.next == "" {
				return
			}
		}
	}
}

type partialList struct {
	Kind     string `json:"kind"`
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []partial `json:"items"`
}

func (p *apiMember) page(ctx context.Context, ref member.Ref, path string, query url.Values) (*partialList, error) {
	a, err := p.send(ctx, request{method: http.MethodGet, path: path, query: query, accept: asMetadataList, many: true})
	if err != nil {
		return nil, err
	}
	defer a.done()
	if _, err := p.decode(ref, a); err != nil {
		return nil, err
	}
	var list partialList
	err = json.Unmarshal(a.body, &list)
	if err != nil || !strings.HasSuffix(list.Kind, "List") || list.Metadata.ResourceVersion == "" {
		return nil, notKubernetes(a.status)
	}
	return &list, nil
}

func (p *apiMember) Delete(ctx context.Context, ref member.Ref, uid types.UID, of object.Marker) error {
	return p.DeleteVersion(ctx, ref, uid, "", of)
}

// DeleteVersion deletes an object of a version; "" is any.
func (p *apiMember) DeleteVersion(ctx context.Context, ref member.Ref, uid types.UID, version string, _ object.Marker) error {
	path, err := p.at(ctx, ref)
	if errors.Is(err, member.NotServed) {
		return nil // and neither is the object
	}
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		PropagationPolicy: &background,
	}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	if uid != "" && version != "" {
		options.Preconditions.ResourceVersion = &version
	}
	body, err := json.Marshal(options)
	if err != nil {
		return &member.Error{Reason: member.Invalid, Err: err}
	}
	a, err := p.send(ctx, request{
		method:      http.MethodDelete,
		path:        path,
		accept:      asMetadata,
		contentType: "application/json",
		body:        body,
	})
	if err != nil {
		return err
	}
	defer a.done()
	if absent(a, ref) {
		return nil
	}
	_, err = p.decode(ref, a)
	if errors.Is(err, member.Gone) {
		return nil
	}
	return err
}

// HasIdentity: it has a namespace kube-system.
func (p *apiMember) HasIdentity() {}

// Close gives back the connections that are not in use.
func (p *apiMember) Close() {
	for t := p.client.Transport; t != nil; {
		if c, ok := t.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
			return
		}
		w, ok := t.(utilnet.RoundTripperWrapper)
		if !ok {
			return
		}
		t = w.WrappedRoundTripper()
	}
}
