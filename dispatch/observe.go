// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/propagate"
)

// Observer is a Member that can be asked for more than dispatch needs. Its
// errors are those of a Member.
type Observer interface {
	// Ready is whether the member takes work. An error says that it does not
	// answer.
	Ready(ctx context.Context) (bool, error)
	// Read reads a whole object; nil when it is absent.
	Read(ctx context.Context, ref Ref) (map[string]any, error)
}

func (p *push) Ready(ctx context.Context) (bool, error) {
	a, err := p.send(ctx, request{method: http.MethodGet, path: "/readyz"})
	// One that will not tell us serves all the same.
	return a.status == http.StatusOK || a.status == http.StatusUnauthorized || a.status == http.StatusForbidden, err
}

func (p *push) Read(ctx context.Context, ref Ref) (map[string]any, error) {
	a, o, err := p.get(ctx, ref, "")
	if err != nil || o == nil {
		return nil, err
	}
	var object unstructured.Unstructured // which reads whole numbers as int64
	if err := object.UnmarshalJSON(a.body); err != nil {
		return nil, notKubernetes(a.status)
	}
	return object.Object, nil
}

// Observer is the way to ask a cluster's member, nil when there is none or
// when it cannot be asked.
func (d *Dispatcher) Observer(cluster string) Observer {
	l := d.lane(cluster)
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o, _ := l.member.(Observer)
	return o
}

// Gone is whether a cluster is known not to hold an object: it was asked, and
// has confirmed what it was told to delete.
func (d *Dispatcher) Gone(cluster string, id propagate.ID) bool {
	l := d.lane(cluster)
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.known[id]
	return l.contacted && l.jobs[id] == nil && !known
}

// Acknowledged is whether a cluster has confirmed the content that is wanted
// of an object.
func (d *Dispatcher) Acknowledged(cluster string, id propagate.ID) bool {
	l := d.lane(cluster)
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fleet == nil {
		return false
	}
	want := l.fleet.Desire(cluster, id)
	return want.Verb == Apply && l.settled(id, want)
}

func (d *Dispatcher) lane(cluster string) *lane {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lanes[cluster]
}
