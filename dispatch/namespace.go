// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/propagate"
)

var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// namespaces are those that a member is known to have besides those of the
// inventory. They are read when the first object is to be created in one that
// is not known, and not again. Guarded by lane.mu.
type namespaces struct {
	// making is held while a namespace is made, so that a hundred objects
	// that need it make it once.
	making sync.Mutex
	have   map[string]bool
	read   bool
	// unread: we may not list namespaces, so one counts as there until the
	// member says otherwise.
	unread  bool
	missing map[string]bool
}

// houses is implemented by a Member that sees to an object's namespace when it
// is told to apply the object.
type houses interface{ houses() }

func housed(m Member) bool {
	if dry, ok := m.(dryRun); ok {
		m = dry.Member
	}
	_, ok := m.(houses)
	return ok
}

// ensureNamespace creates a namespace that the member lacks, from the fleet's
// document if there is one.
func (l *lane) ensureNamespace(m Member, fleet Fleet, name string) error {
	if name == "" || housed(m) || l.hasNamespace(name) {
		return nil
	}
	l.namespaces.making.Lock()
	defer l.namespaces.making.Unlock()
	if err := l.readNamespaces(m); err != nil {
		return err
	}
	if l.hasNamespace(name) {
		return nil
	}
	_, err := m.Apply(l.d.ctx, onTheWay(name, fleet.Namespace(l.cluster, name)), ApplyOptions{})
	if err != nil && !errors.Is(err, Foreign) {
		return err
	}
	l.haveNamespace(name)
	return nil
}

// onTheWay is a namespace that is made because something needs it, from the
// fleet's document if there is one.
func onTheWay(name string, doc map[string]any) map[string]any {
	if doc == nil {
		doc = identity(Ref{namespaceKind, "", name})
	}
	return unplaced(doc)
}

// unplaced is an object that is ours, and that nobody placed: it bears no
// digest.
func unplaced(doc map[string]any) map[string]any {
	doc = runtime.DeepCopyJSON(doc)
	meta := section(doc, "metadata")
	section(meta, "labels")[LabelManaged] = "true"
	if annotations, ok := meta["annotations"].(map[string]any); ok {
		delete(annotations, AnnotationDigest)
	}
	return doc
}

// section is a map inside a map, made when it is not there.
func section(m map[string]any, field string) map[string]any {
	inner, ok := m[field].(map[string]any)
	if !ok {
		inner = map[string]any{}
		m[field] = inner
	}
	return inner
}

// Unplaced reports whether an object of ours, with its digest, is one that
// nobody placed: it is there because something needs it. The fleet may have
// given up one of that name before, and did not mean this one.
func Unplaced(id propagate.ID, digest string) bool {
	return foundation(id) && digest == ""
}

func isNamespace(id propagate.ID) bool { return id.Group == "" && id.Kind == "Namespace" }

func (l *lane) readNamespaces(m Member) error {
	l.mu.Lock()
	read := l.namespaces.read
	l.mu.Unlock()
	if read {
		return nil
	}
	_, err := l.listNamespaces(m, func(propagate.ID) bool { return false })
	return err
}

// listNamespaces reads which namespaces the member has, and returns those that
// are wanted; nil when it may not know. A list without kube-system is not of all
// that there are: somebody between us and the member leaves some out, and one
// that is not in it may well be there.
func (l *lane) listNamespaces(m Member, wanted func(propagate.ID) bool) (map[propagate.ID]*Found, error) {
	have, out := map[string]bool{}, map[propagate.ID]*Found{}
	for found, err := range m.List(l.d.ctx, namespaceKind, "") {
		if errors.Is(err, Forbidden) {
			have, out = nil, nil
			break
		}
		if err != nil {
			return nil, err
		}
		have[found.ID.Name] = true
		if wanted(found.ID) {
			out[found.ID] = trimmed(found)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.namespaces.have, l.namespaces.read, l.namespaces.unread = have, true, !have[kubeSystem.Name]
	return out, nil
}

func (l *lane) hasNamespace(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := &l.namespaces
	switch {
	case n.have[name] || n.missing[name]:
		return n.have[name]
	case n.read:
		return n.unread
	}
	return l.known[namespaceID(name)].UID != ""
}

func namespaceID(name string) propagate.ID { return propagate.ID{Kind: namespaceKind.Kind, Name: name} }

func (l *lane) haveNamespace(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.namespaces.missing, name)
	if l.namespaces.have == nil {
		l.namespaces.have = map[string]bool{}
	}
	l.namespaces.have[name] = true
}

// forgetNamespaces is for a member that may be another one. The lock is held.
func (l *lane) forgetNamespaces() {
	n := &l.namespaces
	n.have, n.read, n.unread, n.missing = nil, false, false, nil
}

// missNamespace notes that a namespace turned out to be absent.
func (l *lane) missNamespace(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.namespaces.have, name)
	if l.namespaces.missing == nil {
		l.namespaces.missing = map[string]bool{}
	}
	l.namespaces.missing[name] = true
}
