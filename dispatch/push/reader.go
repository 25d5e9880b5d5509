// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Reader asks one member what it runs, for people who look. It changes
// nothing. Its errors are those of a Member.
type Reader struct{ push *apiMember }

// NewReader asks a member behind a Kubernetes API. Nothing is requested until
// it is used.
func NewReader(cfg *rest.Config) (*Reader, error) {
	m, err := newPush(cfg, Options{})
	if err != nil {
		return nil, err
	}
	return &Reader{m}, nil
}

// Selection is which objects of a kind are asked for.
type Selection struct {
	Namespace string // "" is every namespace, or the cluster's own
	Name      string // "" is every name
	Labels    string // a selector
}

// Ready reports whether the member takes work. An error says that it does not
// answer.
func (r *Reader) Ready(ctx context.Context) (bool, error) {
	ready, err := r.push.Ready(ctx)
	return ready, inTime(ctx, err)
}

// Read reads a whole object; nil when it is absent.
func (r *Reader) Read(ctx context.Context, ref member.Ref) (map[string]any, error) {
	object, err := r.push.Read(ctx, ref)
	return object, inTime(ctx, err)
}

// Get reads the metadata of one object; nil when it is absent.
func (r *Reader) Get(ctx context.Context, ref member.Ref) (*member.Found, error) {
	found, err := r.push.Get(ctx, ref)
	return found, inTime(ctx, err)
}

// List yields the metadata of every object of a kind in a namespace.
func (r *Reader) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string) iter.Seq2[member.Found, error] {
	return func(yield func(member.Found, error) bool) {
		for found, err := range r.push.List(ctx, gvk, namespace) {
			if !yield(found, inTime(ctx, err)) {
				return
			}
		}
	}
}

// Ours yields the metadata of the objects of a kind that bear our label, in
// every namespace.
func (r *Reader) Ours(ctx context.Context, gvk schema.GroupVersionKind) iter.Seq2[member.Found, error] {
	return func(yield func(member.Found, error) bool) {
		e, err := r.push.kinds.find(ctx, gvk)
		if err != nil {
			yield(member.Found{}, inTime(ctx, err))
			return
		}
		for a, err := range r.pages(ctx, member.Ref{GroupVersionKind: gvk}, e, Selection{Labels: ours}, asMetadataList) {
			var list partialList
			if err == nil && json.Unmarshal(a.body, &list) != nil {
				err = notKubernetes(http.StatusOK)
			}
			a.done()
			if err != nil {
				yield(member.Found{}, err)
				return
			}
			for i := range list.Items {
				if !yield(list.Items[i].Metadata.found(gvk.GroupKind()), nil) {
					return
				}
			}
		}
	}
}

// ours selects what bears our label.
const ours = object.LabelManaged + "=true"

// OursWhole yields the same objects as a whole.
func (r *Reader) OursWhole(ctx context.Context, gvk schema.GroupVersionKind) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		e, err := r.push.kinds.find(ctx, gvk)
		if err != nil {
			yield(nil, inTime(ctx, err))
			return
		}
		r.whole(ctx, member.Ref{GroupVersionKind: gvk}, e, Selection{Labels: ours}, yield)
	}
}

// whole yields what the pages of a list hold.
func (r *Reader) whole(ctx context.Context, ref member.Ref, e endpoint, s Selection, yield func(map[string]any, error) bool) {
	for a, err := range r.pages(ctx, ref, e, s, "") {
		var all []unstructured.Unstructured
		if err == nil {
			all, err = objectsIn(a.body)
		}
		a.done()
		if err != nil {
			yield(nil, err)
			return
		}
		for i := range all {
			if !yield(all[i].Object, nil) {
				return
			}
		}
	}
}

// objectsIn reads a list, or a single object.
func objectsIn(body []byte) ([]unstructured.Unstructured, error) {
	var u unstructured.Unstructured // which reads whole numbers as int64
	if u.UnmarshalJSON(body) != nil {
		return nil, notKubernetes(http.StatusOK)
	}
	if !u.IsList() && u.GetName() == "" {
		return nil, nil // its items are null
	}
	if !u.IsList() {
		return []unstructured.Unstructured{u}, nil
	}
	list, err := u.ToList()
	if err != nil {
		return nil, notKubernetes(http.StatusOK)
	}
	for i := range list.Items {
		// The items of a typed list do not say what they are.
		if list.Items[i].GetKind() == "" {
			list.Items[i].SetGroupVersionKind(itemKind(u.GroupVersionKind()))
		}
	}
	return list.Items, nil
}

func itemKind(list schema.GroupVersionKind) schema.GroupVersionKind {
	return list.GroupVersion().WithKind(strings.TrimSuffix(list.Kind, "List"))
}

// alone reports whether the selection is one object, which is read and not listed:
// that is another permission.
func (s Selection) alone(e endpoint) bool {
	return s.Name != "" && (!e.namespaced || s.Namespace != "")
}

// pages yields the answers of a list, page by page, to be done with. A single
// object is a page of its own, and none when it is absent.
func (r *Reader) pages(ctx context.Context, ref member.Ref, e endpoint, s Selection, accept string) iter.Seq2[answer, error] {
	return func(yield func(answer, error) bool) {
		path := e.path(ref.GroupVersion(), s.Namespace, "")
		if s.alone(e) {
			path = e.path(ref.GroupVersion(), s.Namespace, url.PathEscape(s.Name))
			ref.Name = s.Name
			a, err := r.push.send(ctx, request{method: http.MethodGet, path: path, accept: accept})
			defer a.done()
			if err == nil && absent(a, ref) {
				return
			}
			if err == nil {
				_, err = r.push.decode(ref, a)
			}
			yield(a, inTime(ctx, err))
			return
		}
		for at := (pager{kind: ref.Kind}); ; {
			query := url.Values{}
			if s.Labels != "" {
				query.Set("labelSelector", s.Labels)
			}
			if s.Name != "" {
				query.Set("fieldSelector", "metadata.name="+s.Name)
			}
			a, err := r.push.send(ctx, request{method: http.MethodGet, path: path, query: at.ask(query), accept: accept, many: true})
			if at.shorter(err) {
				continue
			}
			var head listHead
			if err == nil {
				_, err = r.push.decode(ref, a)
			}
			if err == nil && json.Unmarshal(a.body, &head) != nil {
				err = notKubernetes(a.status)
			}
			if errors.Is(err, expired) && at.next != "" {
				// The rest of the list as it is now: what came in between is
				// missing, as it would be from any list that is read a page
				// at a time.
				if token := inconsistent(a.body); token != "" {
					a.done()
					if err = at.turnTo(token, 0); err == nil {
						continue
					}
				}
			}
			if err == nil {
				err = at.turnTo(head.Metadata.Continue, int(head.Items)+int(head.Rows))
			}
			if err != nil {
				a.done()
				yield(answer{}, inTime(ctx, err))
				return
			}
			more := yield(a, nil)
			a.done()
			if !more || at.next == "" {
				return
			}
		}
	}
}

// listHead is how a list goes on, and how many objects there are in a page.
type listHead struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items counted `json:"items"`
	Rows  counted `json:"rows"` // of a table
}

// counted is the length of a list that is not decoded.
type counted int

func (n *counted) UnmarshalJSON(text []byte) error {
	depth, all := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += stringEnd(text[i+1:])
		case '{', '[':
			depth++
			if depth == 2 {
				all++
			}
		case '}', ']':
			depth--
		}
	}
	*n = counted(all)
	return nil
}

// inconsistent is the token by which a server that has let a list go offers to
// continue it with what is there now.
func inconsistent(body []byte) string {
	var status struct {
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
	}
	if json.Unmarshal(body, &status) != nil {
		return ""
	}
	return status.Metadata.Continue
}

// inTime words the error of a request that ended because its caller's time was
// over.
func inTime(ctx context.Context, err error) error {
	var e *member.Error
	if !errors.As(err, &e) || e.Reason != member.Unreachable || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	out := *e
	out.Err = errors.New("no answer in time")
	if given, ok := ctx.Value(timeGiven{}).(time.Duration); ok {
		out.Err = fmt.Errorf("no answer within %s", given)
	}
	return &out
}

type timeGiven struct{}

// Within bounds what follows by a time that errors then name.
func Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(ctx, timeGiven{}, d), d)
}
