// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"sync"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// namespaces are those that a member is known to have besides those of the
// inventory. They are listed when the first object is to be created in one that
// is not known, and not again. Its owner holds the lock.
type namespaces struct {
	have    map[string]bool
	missing map[string]bool
	listed  bool
	// partial: the list may lack some, so one counts as there until the member
	// says otherwise.
	partial bool
}

func (n *namespaces) has(name string, known bool) bool {
	switch {
	case n.have[name] || n.missing[name]:
		return n.have[name]
	case n.listed:
		return n.partial
	}
	return known
}

// learn takes the names of a list; nil when we may not list. A list without
// kube-system is partial: somebody between us and the member leaves some out.
func (n *namespaces) learn(have map[string]bool) {
	n.have, n.listed, n.partial = have, true, !have[kubeSystem.Name]
}

func (n *namespaces) add(name string) {
	delete(n.missing, name)
	if n.have == nil {
		n.have = map[string]bool{}
	}
	n.have[name] = true
}

// miss notes that a namespace turned out to be absent.
func (n *namespaces) miss(name string) {
	delete(n.have, name)
	if n.missing == nil {
		n.missing = map[string]bool{}
	}
	n.missing[name] = true
}

// forget is for a member that may be another one.
func (n *namespaces) forget() { *n = namespaces{} }

// namespaceCreator sees to the namespaces that a member lacks.
type namespaceCreator struct {
	w     *worker
	known namespaces // guarded by worker.mu
	// creating is held while a namespace is created, so that a hundred objects
	// that need it create it once.
	creating sync.Mutex
}

// ensure creates a namespace that the member lacks, from the fleet's document if
// there is one.
func (c *namespaceCreator) ensure(m member.Member, fleet Fleet, name string) error {
	if name == "" || member.Is[member.NamespaceCreator](m) || c.has(name) {
		return nil
	}

	c.creating.Lock()
	defer c.creating.Unlock()
	if err := c.listOnce(m, fleet); err != nil {
		return err
	}
	if c.has(name) {
		return nil
	}
	_, err := m.Apply(c.w.d.ctx, neededNamespace(name, fleet.Namespace(c.w.cluster, name), fleet.Marker()), member.ApplyOptions{})
	if err != nil && !errors.Is(err, member.Foreign) {
		return err
	}
	c.add(name)
	return nil
}

func (c *namespaceCreator) listOnce(m member.Member, fleet Fleet) error {
	c.w.mu.Lock()
	listed := c.known.listed
	c.w.mu.Unlock()
	if listed {
		return nil
	}
	_, err := c.list(m, fleet, func(object.ID) bool { return false })
	return err
}

// list reads which namespaces the member has, and returns those that are wanted;
// nil when it may not know.
func (c *namespaceCreator) list(m member.Member, fleet Fleet, wanted func(object.ID) bool) (map[object.ID]*member.Found, error) {
	have, out, of := map[string]bool{}, map[object.ID]*member.Found{}, fleet.Marker()
	for found, err := range m.List(c.w.d.ctx, member.NamespaceKind, "") {
		if errors.Is(err, member.Forbidden) {
			have, out = nil, nil
			break
		}
		if err != nil {
			return nil, err
		}
		have[found.ID.Name] = true
		if wanted(found.ID) {
			out[found.ID] = trimmed(found, of, c.w.d.opt.Knows != nil)
		}
	}

	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.known.learn(have)
	return out, nil
}

func (c *namespaceCreator) has(name string) bool {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.known.has(name, c.w.holdings.there(namespaceID(name)))
}

func (c *namespaceCreator) add(name string) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.known.add(name)
}

func (c *namespaceCreator) miss(name string) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.known.miss(name)
}

// neededNamespace is a namespace that is created because something needs it, from
// the fleet's document if there is one.
func neededNamespace(name string, doc map[string]any, of object.Marker) map[string]any {
	if doc == nil {
		doc = member.Identity(member.Ref{GroupVersionKind: member.NamespaceKind, Name: name})
	}
	return object.AsNeeded(doc, of)
}

func namespaceID(name string) object.ID {
	return object.ID{Kind: member.NamespaceKind.Kind, Name: name}
}
