// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fairlead/fairlead/lease"
)

// Leases are those of one namespace: what of client-go's LeaseInterface is used.
type Leases interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	List(ctx context.Context, opts metav1.ListOptions) (*coordinationv1.LeaseList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Create(ctx context.Context, l *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, l *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// send sends a request, and tells the machine how it ended.
func (r *Runner) send(ctx context.Context, req lease.Request) {
	limited, cancel := context.WithTimeout(ctx, r.rules.Request)
	defer cancel()
	if req.Verb == lease.List {
		r.list(ctx, limited, req)
		return
	}

	l, err := r.request(limited, req)
	answer := lease.Answer{Request: req}
	if err == nil && l != nil {
		answer.Record, err = r.record(l)
	}
	switch {
	case err == nil:
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		answer.Outcome = lease.Conflict
	case apierrors.IsNotFound(err) && req.Verb != lease.Create: // then the namespace is gone
		answer.Outcome = lease.NotFound
	default:
		answer.Outcome = lease.Failed
		r.failed(fmt.Errorf("%s lease %s: %w", req.Verb, req.Record.Name, err))
	}
	r.tell(func(m *lease.Machine, at time.Duration) { m.Answered(at, answer) })
}

func (r *Runner) request(ctx context.Context, req lease.Request) (*coordinationv1.Lease, error) {
	version := strconv.FormatInt(req.Record.Version, 10)
	switch req.Verb {
	case lease.Create:
		return r.leases.Create(ctx, r.lease(req.Record), metav1.CreateOptions{})
	case lease.Update:
		l := r.lease(req.Record)
		l.ResourceVersion = version
		return r.leases.Update(ctx, l, metav1.UpdateOptions{})
	case lease.Delete:
		return nil, r.leases.Delete(ctx, req.Record.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	}
	return r.leases.Get(ctx, req.Record.Name, metav1.GetOptions{})
}

// list lists the Leases of the fleet as they are at this moment, and watches them
// from there on.
func (r *Runner) list(ctx, limited context.Context, req lease.Request) {
	selector := lease.LabelFleet + "=" + lease.FleetLabel(r.options.Fleet)
	list, err := r.leases.List(limited, metav1.ListOptions{LabelSelector: selector})
	var version int64
	if err == nil {
		version, err = strconv.ParseInt(list.ResourceVersion, 10, 64)
	}
	var records []lease.Record
	for i := 0; err == nil && i < len(list.Items); i++ {
		var rec lease.Record
		rec, err = r.record(&list.Items[i])
		records = append(records, rec)
	}
	if err != nil {
		r.failed(fmt.Errorf("list leases: %w", err))
		r.tell(func(m *lease.Machine, at time.Duration) {
			m.Answered(at, lease.Answer{Request: req, Outcome: lease.Failed})
		})
		return
	}

	r.tell(func(m *lease.Machine, at time.Duration) { m.Listed(at, req.ID, version, records) })
	r.watchFrom(ctx, selector, list.ResourceVersion)
}

// watchFrom watches until the next list, and asks for one if that ends too early.
func (r *Runner) watchFrom(ctx context.Context, selector, version string) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	if r.watching != nil {
		r.watching()
	}
	r.watching = cancel
	r.mu.Unlock()

	r.requests.Go(func() {
		defer cancel()
		seconds := int64(2 * r.rules.Relist / time.Second)
		w, err := r.leases.Watch(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: version, TimeoutSeconds: &seconds})
		if err == nil {
			defer w.Stop()
			err = r.follow(ctx, w)
		}
		if err != nil && ctx.Err() == nil {
			r.failed(fmt.Errorf("watch leases: %w", err))
		}

		select {
		case <-ctx.Done(): // the next list has begun its own
		case <-time.After(r.rules.Retry):
			r.tell((*lease.Machine).Resync)
		}
	})
}

func (r *Runner) follow(ctx context.Context, w watch.Interface) error {
	for {
		var event watch.Event
		var open bool
		select {
		case <-ctx.Done():
			return nil
		case event, open = <-w.ResultChan():
		}
		if !open {
			return nil
		}
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}

		l, ok := event.Object.(*coordinationv1.Lease)
		if !ok {
			continue
		}
		rec, err := r.record(l)
		if err != nil {
			return err
		}
		r.tell(func(m *lease.Machine, at time.Duration) {
			if event.Type == watch.Deleted {
				m.Deleted(at, rec)
			} else {
				m.Seen(at, rec)
			}
		})
	}
}

func (r *Runner) failed(err error) {
	if r.options.Failed != nil {
		r.options.Failed(err)
	}
}

// store has the Leases as they were seen last, for what others wrote into them.
type store struct {
	mu   sync.Mutex
	last map[string]*coordinationv1.Lease
}

// record is what a Lease says.
func (r *Runner) record(l *coordinationv1.Lease) (lease.Record, error) {
	if of := l.Labels[lease.LabelFleet]; of != lease.FleetLabel(r.options.Fleet) {
		return lease.Record{}, fmt.Errorf("lease %s/%s: label %s is %q: it is not one of fleet %s", l.Namespace, l.Name, lease.LabelFleet, of, r.options.Fleet)
	}
	version, err := strconv.ParseInt(l.ResourceVersion, 10, 64)
	if err != nil {
		return lease.Record{}, fmt.Errorf("lease %s/%s: resourceVersion: %w", l.Namespace, l.Name, err)
	}

	r.store.mu.Lock()
	if r.store.last == nil {
		r.store.last = map[string]*coordinationv1.Lease{}
	}
	r.store.last[l.Name] = l
	r.store.mu.Unlock()
	return lease.Record{
		Name: l.Name, Kind: lease.Kind(l.Labels[lease.LabelLease]), Version: version,
		Holder: value(l.Spec.HolderIdentity), Transitions: value(l.Spec.LeaseTransitions),
		Duration: time.Duration(value(l.Spec.LeaseDurationSeconds)) * time.Second,
		Sent:     l.Annotations[lease.AnnotationSent],
		Engine:   l.Annotations[lease.AnnotationEngine],
		Next:     l.Annotations[lease.AnnotationNext],
	}, nil
}

// lease is a Lease that says so.
func (r *Runner) lease(rec lease.Record) *coordinationv1.Lease {
	l := &coordinationv1.Lease{}
	r.store.mu.Lock()
	if last := r.store.last[rec.Name]; last != nil && rec.Version > 0 {
		last.DeepCopyInto(l)
	}
	r.store.mu.Unlock()
	l.ManagedFields = nil

	l.Name = rec.Name
	l.Labels, l.Annotations = with(l.Labels), with(l.Annotations)
	l.Labels[lease.LabelFleet] = lease.FleetLabel(r.options.Fleet)
	l.Labels[lease.LabelLease] = string(rec.Kind)
	annotate(l.Annotations, lease.AnnotationSent, rec.Sent)
	annotate(l.Annotations, lease.AnnotationEngine, rec.Engine)
	annotate(l.Annotations, lease.AnnotationNext, rec.Next)

	at := metav1.NowMicro()
	if rec.Holder != value(l.Spec.HolderIdentity) {
		l.Spec.AcquireTime = &at
	}
	l.Spec.RenewTime = &at
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = nil, nil
	if rec.Holder != "" {
		l.Spec.HolderIdentity = &rec.Holder
	}
	if seconds := int32(rec.Duration / time.Second); seconds > 0 {
		l.Spec.LeaseDurationSeconds = &seconds
	}
	l.Spec.LeaseTransitions = &rec.Transitions
	return l
}

func with(values map[string]string) map[string]string {
	if values == nil {
		return map[string]string{}
	}
	return maps.Clone(values)
}

func annotate(annotations map[string]string, key, value string) {
	if value == "" {
		delete(annotations, key)
		return
	}
	annotations[key] = value
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
