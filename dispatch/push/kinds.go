// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// endpoint is where objects of a kind are served.
type endpoint struct {
	resource   string
	namespaced bool
}

// builtin is where a built-in kind is served; it is known without asking.
func builtin(gvk schema.GroupVersionKind) (endpoint, bool) {
	crd := gvk == apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	if !crd && !scheme.Scheme.Recognizes(gvk) {
		return endpoint{}, false
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	namespaced, known := object.BuiltinScope(gvk.Group, gvk.Kind)
	return endpoint{plural.Resource, namespaced || !known}, true
}

// path of a kind's collection, or of an object when name is not empty.
func (e endpoint) path(gv schema.GroupVersion, namespace, name string) string {
	var b strings.Builder
	if gv.Group == "" {
		b.WriteString("/api/")
	} else {
		b.WriteString("/apis/" + gv.Group + "/")
	}
	b.WriteString(gv.Version)
	if e.namespaced && namespace != "" {
		b.WriteString("/namespaces/" + namespace)
	}
	b.WriteString("/" + e.resource)
	if name != "" {
		b.WriteString("/" + name)
	}
	return b.String()
}

// kinds is what a member says about its custom kinds, read once per group
// and version, and again when a kind is missing.
type kinds struct {
	ask func(ctx context.Context, path string) (status int, body []byte, err error)

	mu    sync.Mutex
	known map[schema.GroupVersion]*served
}

type served struct {
	kinds map[string]endpoint
	at    time.Time
}

// fresh is how long a missing kind is believed to be missing, so that a
// hundred objects of it are one question.
const fresh = 200 * time.Millisecond

// find returns where a kind is served. The error NotServed is certain: the
// member said so in a well-formed answer.
func (k *kinds) find(ctx context.Context, gvk schema.GroupVersionKind) (endpoint, error) {
	if e, ok := builtin(gvk); ok {
		return e, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	gv := gvk.GroupVersion()
	s := k.known[gv]
	if s == nil || s.kinds[gvk.Kind].resource == "" && time.Since(s.at) > fresh {
		read, err := k.read(ctx, gv)
		if err != nil {
			return endpoint{}, err
		}
		s = &served{read, time.Now()}
		if k.known == nil {
			k.known = map[schema.GroupVersion]*served{}
		}
		k.known[gv] = s
	}
	if e := s.kinds[gvk.Kind]; e.resource != "" {
		return e, nil
	}
	return endpoint{}, notServed(gvk)
}

// forget has a kind asked for again.
func (k *kinds) forget(gv schema.GroupVersion) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, gv)
}

func (k *kinds) read(ctx context.Context, gv schema.GroupVersion) (map[string]endpoint, error) {
	status, body, err := k.ask(ctx, "/apis/"+gv.String())
	if err != nil {
		return nil, err
	}
	if status == http.StatusNotFound {
		return nil, k.confirmAbsent(ctx)
	}
	var list metav1.APIResourceList
	if status != http.StatusOK || json.Unmarshal(body, &list) != nil || list.Kind != "APIResourceList" {
		return nil, apiError(status, nil, body, false)
	}
	out := map[string]endpoint{}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			out[r.Kind] = endpoint{r.Name, r.Namespaced}
		}
	}
	return out, nil
}

// confirmAbsent asks for the list of groups: a proxy that answers 404 to
// everything is not a member without the kind.
func (k *kinds) confirmAbsent(ctx context.Context) error {
	status, body, err := k.ask(ctx, "/apis")
	if err != nil {
		return err
	}
	var list metav1.APIGroupList
	if status != http.StatusOK || json.Unmarshal(body, &list) != nil || list.Kind != "APIGroupList" {
		return apiError(status, nil, body, false)
	}
	return nil
}

func notServed(gvk schema.GroupVersionKind) *member.Error {
	return &member.Error{Reason: member.NotServed, Err: fmt.Errorf("the cluster does not serve %s in %s", gvk.Kind, gvk.GroupVersion())}
}
