// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// store is what a server holds. One lock covers it: a request is short, and
// speed comes from the number of servers.
type store struct {
	mu      sync.RWMutex
	version int64
	kinds   map[schema.GroupVersionResource]*kind
	objects map[schema.GroupResource]map[string]*stored // by NAMESPACE/NAME
	events  []event
	changed chan struct{} // closed at the next event
	life    int           // counts the backups that were restored
	ended   bool
}

// stored is an object at one version, as its encoding: a thousand servers
// hold a few hundred megabytes of it, and many times that decoded. It is never
// altered, so it may be read without the lock.
type stored struct {
	namespace, name string
	labels          map[string]string
	version         int64
	raw             []byte
}

func newObject(u *unstructured.Unstructured, version int64) *stored {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		panic(err) // it came from JSON
	}
	return &stored{u.GetNamespace(), u.GetName(), u.GetLabels(), version, raw}
}

// decoded is a copy that the caller may alter.
func (o *stored) decoded() *unstructured.Unstructured {
	var content map[string]any
	if err := utiljson.Unmarshal(o.raw, &content); err != nil {
		panic(err) // it is our own encoding
	}
	return &unstructured.Unstructured{Object: content}
}

func (o *stored) key() string { return key(o.namespace, o.name) }

func key(namespace, name string) string { return namespace + "/" + name }

func newStore() *store {
	s := &store{
		kinds:   map[schema.GroupVersionResource]*kind{},
		objects: map[schema.GroupResource]map[string]*stored{},
		changed: make(chan struct{}),
	}
	for _, k := range builtin() {
		s.kinds[k.GroupVersion().WithResource(k.resource)] = k
	}
	namespaces := s.kinds[schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}]
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": name},
		}}
		begin(u)
		setDefaults(namespaces, u.Object)
		s.put(namespaces, u, added)
	}
	return s
}

// begin gives an object what a server gives it at birth.
func begin(u *unstructured.Unstructured) {
	meta := u.Object["metadata"].(map[string]any)
	meta["uid"] = newUID()
	meta["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
}

func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// kindAt returns nil when nothing is served there.
func (s *store) kindAt(gv schema.GroupVersion, resource string) *kind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.kinds[gv.WithResource(resource)]
}

func (s *store) serves(gv schema.GroupVersion) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for at := range s.kinds {
		if at.GroupVersion() == gv {
			return true
		}
	}
	return false
}

func (s *store) servesGroup(group string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for at := range s.kinds {
		if at.Group == group {
			return true
		}
	}
	return false
}

// all kinds, sorted by group, version and resource.
func (s *store) all() []*kind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*kind
	for _, k := range s.kinds {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b *kind) int {
		return strings.Compare(a.Group+"/"+a.Version+"/"+a.resource, b.Group+"/"+b.Version+"/"+b.resource)
	})
	return out
}

func (s *store) get(k *kind, namespace, name string) (*stored, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	o := s.objects[k.groupResource()][key(namespace, name)]
	if o == nil {
		return nil, apierrors.NewNotFound(k.groupResource(), name)
	}
	return o, nil
}

// list returns the objects of a namespace, or of all, in the order of keys,
// and the version they are of.
func (s *store) list(k *kind, namespace string) ([]*stored, int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	table := s.objects[k.groupResource()]
	keys := make([]string, 0, len(table))
	for at := range table {
		if namespace == "" || strings.HasPrefix(at, namespace+"/") {
			keys = append(keys, at)
		}
	}
	slices.Sort(keys)
	out := make([]*stored, len(keys))
	for i, at := range keys {
		out[i] = table[at]
	}
	return out, s.version
}

// put stores a new version of an object and tells the watchers. The lock is
// held, or the store is not in use yet.
func (s *store) put(k *kind, u *unstructured.Unstructured, what string) *stored {
	s.version++
	u.SetResourceVersion(strconv.FormatInt(s.version, 10))
	o := newObject(u, s.version)
	table := s.objects[k.groupResource()]
	if table == nil {
		table = map[string]*stored{}
		s.objects[k.groupResource()] = table
	}
	table[key(u.GetNamespace(), u.GetName())] = o
	s.tell(event{what, k.groupResource(), o})
	if k.Group == "apiextensions.k8s.io" {
		s.define(u)
	}
	return o
}

// drop removes an object and what goes with it: the content of a namespace,
// the resources of a definition. It alters u. The lock is held.
func (s *store) drop(k *kind, u *unstructured.Unstructured) *stored {
	delete(s.objects[k.groupResource()], key(u.GetNamespace(), u.GetName()))
	s.version++
	u.SetResourceVersion(strconv.FormatInt(s.version, 10))
	o := newObject(u, s.version)
	s.tell(event{deleted, k.groupResource(), o})
	switch {
	case k.Kind == "Namespace" && k.Group == "":
		for _, other := range s.kinds {
			s.dropAll(other, u.GetName()+"/")
		}
	case k.Group == "apiextensions.k8s.io":
		for _, gone := range custom(u.Object) {
			s.dropAll(gone, "")
			delete(s.kinds, gone.GroupVersion().WithResource(gone.resource))
		}
	}
	return o
}

// dropAll removes the objects of a kind whose key begins with prefix, whatever
// their finalizers: there is no controller to wait for.
func (s *store) dropAll(k *kind, prefix string) {
	for at, o := range s.objects[k.groupResource()] {
		if strings.HasPrefix(at, prefix) && (prefix == "" || k.namespaced) {
			s.drop(k, o.decoded())
		}
	}
}

// define serves the kinds of a definition, and no others of it.
func (s *store) define(definition *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	for at := range s.kinds {
		if at.Group == group && at.Resource == plural {
			delete(s.kinds, at)
		}
	}
	for _, k := range custom(definition.Object) {
		s.kinds[k.GroupVersion().WithResource(k.resource)] = k
	}
}

func (s *store) hasNamespace(name string) bool {
	return s.objects[schema.GroupResource{Resource: "namespaces"}][key("", name)] != nil
}
