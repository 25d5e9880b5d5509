// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var resource = schema.GroupResource{Resource: "configmaps"}

// fakeMaps are ConfigMaps as an API server has them. With held, each request waits until the
// test has it arrive, and has it answered.
type fakeMaps struct {
	held bool
	away string // the verb that fails

	mu      sync.Mutex
	version int
	stored  map[string]*corev1.ConfigMap
	calls   []*call
	counts  map[string]int
}

// call is a request on its way.
type call struct {
	do       func() error
	arrived  bool
	err      error
	answered chan struct{}
}

func newFake() *fakeMaps {
	return &fakeMaps{stored: map[string]*corev1.ConfigMap{}, counts: map[string]int{}}
}

// send has a request done, now or when the test says so.
func (f *fakeMaps) send(ctx context.Context, verb string, do func() error) error {
	f.mu.Lock()
	f.counts[verb]++
	if verb == f.away {
		f.mu.Unlock()
		return errors.New("away")
	}
	if !f.held {
		defer f.mu.Unlock()
		return do()
	}
	c := &call{do: do, answered: make(chan struct{})}
	f.calls = append(f.calls, c)
	f.mu.Unlock()

	select {
	case <-c.answered:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// arrive has a request arrive, if it has not, and reports whether it had.
func (f *fakeMaps) arrive(c *call) (before bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.arrived {
		c.err, c.arrived = c.do(), true
		return false
	}
	return true
}

// end takes a request away: it is answered, or its answer is lost.
func (f *fakeMaps) end(c *call, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = slices.DeleteFunc(f.calls, func(o *call) bool { return o == c })
	if lost {
		c.err = errors.New("lost")
	}
	close(c.answered)
}

// release has everything pass from now on.
func (f *fakeMaps) release() {
	f.mu.Lock()
	calls := slices.Clone(f.calls)
	f.held = false
	f.mu.Unlock()
	for _, c := range calls {
		f.arrive(c)
		f.end(c, false)
	}
}

func (f *fakeMaps) List(ctx context.Context, opts metav1.ListOptions) (*corev1.ConfigMapList, error) {
	selector, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return nil, err
	}
	list := &corev1.ConfigMapList{}
	err = f.send(ctx, "list", func() error {
		for _, name := range slices.Sorted(maps.Keys(f.stored)) {
			if m := f.stored[name]; selector.Matches(labels.Set(m.Labels)) {
				list.Items = append(list.Items, *m.DeepCopy())
			}
		}
		return nil
	})
	return list, err
}

func (f *fakeMaps) Create(ctx context.Context, m *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	m = m.DeepCopy()
	var stored *corev1.ConfigMap
	err := f.send(ctx, "create", func() error {
		if f.stored[m.Name] != nil {
			return apierrors.NewAlreadyExists(resource, m.Name)
		}
		stored = f.store(m)
		return nil
	})
	return stored, err
}

func (f *fakeMaps) Update(ctx context.Context, m *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	m = m.DeepCopy()
	var stored *corev1.ConfigMap
	err := f.send(ctx, "update", func() error {
		was := f.stored[m.Name]
		switch {
		case was == nil:
			return apierrors.NewNotFound(resource, m.Name)
		case was.ResourceVersion != m.ResourceVersion:
			return apierrors.NewConflict(resource, m.Name, errors.New("the object has been modified"))
		case equality.Semantic.DeepEqual(was, m):
			stored = was.DeepCopy()
			return nil
		}
		stored = f.store(m)
		return nil
	})
	return stored, err
}

func (f *fakeMaps) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	return f.send(ctx, "delete", func() error {
		was := f.stored[name]
		switch {
		case was == nil:
			return apierrors.NewNotFound(resource, name)
		case opts.Preconditions != nil && *opts.Preconditions.ResourceVersion != was.ResourceVersion:
			return apierrors.NewConflict(resource, name, errors.New("the object has been modified"))
		}
		delete(f.stored, name)
		return nil
	})
}

func (f *fakeMaps) store(m *corev1.ConfigMap) *corev1.ConfigMap {
	f.version++
	m.ResourceVersion = strconv.Itoa(f.version)
	f.stored[m.Name] = m
	return m.DeepCopy()
}

// taken are the requests since the last call.
func (f *fakeMaps) taken() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.counts
	f.counts = map[string]int{}
	return taken
}
