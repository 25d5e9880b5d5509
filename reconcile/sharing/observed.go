// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/reconcile/sharing/claims"
)

// ConfigMaps are those of the namespace of the Leases: what of client-go's
// ConfigMapInterface is used.
type ConfigMaps interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.ConfigMap, error)
	List(ctx context.Context, opts metav1.ListOptions) (*corev1.ConfigMapList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Create(ctx context.Context, m *corev1.ConfigMap, opts metav1.CreateOptions) (*corev1.ConfigMap, error)
	Update(ctx context.Context, m *corev1.ConfigMap, opts metav1.UpdateOptions) (*corev1.ConfigMap, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// The values of claims.LabelRecord of the ConfigMaps with what is observed of the members.
const (
	recordObserved = "observed" // the log
	recordPart     = "part"     // older entries of it
	recordSeen     = "seen"     // what the holder of a shard observes of its clusters
)

// The keys of the ConfigMap that has what the holder of a shard observes.
const (
	keyHolder   = "holder"
	keyCommit   = "commit"
	keyAt       = "at"
	keyClusters = "clusters"
)

// observed is what replicas tell each other of their members, in ConfigMaps beside the
// Leases.
type observed struct {
	replica *Replica
	maps    ConfigMaps
	fleet   string
	retry   time.Duration

	mu   sync.Mutex
	last *writtenLog                  // that was read or written last
	said map[string]*corev1.ConfigMap // what was written of each shard last, by name

	watching sync.Once
}

func newObserved(r *Replica, in ConfigMaps) *observed {
	return &observed{replica: r, maps: in, fleet: r.opt.Fleet, retry: r.rules.Retry, said: map[string]*corev1.ConfigMap{}}
}

func (o *observed) labels(record string) map[string]string {
	return map[string]string{lease.LabelFleet: lease.FleetLabel(o.fleet), claims.LabelRecord: record}
}

func (o *observed) selector(records ...string) string {
	return lease.LabelFleet + "=" + lease.FleetLabel(o.fleet) + "," + claims.LabelRecord + " in (" + strings.Join(records, ",") + ")"
}

func (o *observed) partName(hash string) string { return lease.ObservedName(o.fleet) + "-" + hash }

// read reads the log.
func (o *observed) read(ctx context.Context) (*reconcile.Log, error) {
	o.watch()
	m, err := o.maps.Get(ctx, lease.ObservedName(o.fleet), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	return o.logOf(ctx, m)
}

// logOf reads a log, and what of it is not known yet.
func (o *observed) logOf(ctx context.Context, m *corev1.ConfigMap) (*reconcile.Log, error) {
	o.mu.Lock()
	last := o.last
	o.mu.Unlock()
	if last != nil && last.Version == m.ResourceVersion {
		return last.Log, nil
	}

	w := &writtenLog{
		Log:   &reconcile.Log{ID: m.Data[keyLog], Head: m.Data[keyHead], Version: m.ResourceVersion},
		parts: strings.Fields(m.Data[keyParts]), tail: m.Data[keyEntries],
	}
	var err error
	if w.ID == "" || w.Head == "" {
		err = fmt.Errorf("it has no %s or no %s", keyLog, keyHead)
	} else {
		err = w.read(last, func(hash string) (string, error) { return o.part(ctx, hash) })
	}
	if err != nil {
		return nil, fmt.Errorf("configmap %s: %w; delete it to begin again without what was observed", m.Name, err)
	}
	o.keep(w)
	return w.Log, nil
}

// part is the text of older entries.
func (o *observed) part(ctx context.Context, hash string) (string, error) {
	m, err := o.maps.Get(ctx, o.partName(hash), metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	p := newPart(m.Data[keyEntries])
	if p.hash != hash {
		return "", fmt.Errorf("configmap %s does not have the entries that it is named after", m.Name)
	}
	return p.text, nil
}

func (o *observed) keep(w *writtenLog) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = w
}

// write writes a log that continues the one of its version.
func (o *observed) write(ctx context.Context, next *reconcile.Log) (*reconcile.Log, error) {
	o.watch()
	o.mu.Lock()
	last := o.last
	o.mu.Unlock()
	log := *next
	if log.Version == "" {
		log.ID = newLogID()
	}
	w := &writtenLog{Log: &log}
	added, err := write(w, last)
	if err != nil {
		return nil, err
	}
	if err := o.writeParts(ctx, added); err != nil {
		return nil, err
	}

	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: lease.ObservedName(o.fleet), Labels: o.labels(recordObserved), ResourceVersion: log.Version},
		Data:       map[string]string{keyLog: log.ID, keyHead: log.Head, keyParts: strings.Join(w.parts, " "), keyEntries: w.tail},
	}
	if log.Version == "" {
		m, err = o.maps.Create(ctx, m, metav1.CreateOptions{})
	} else {
		m, err = o.maps.Update(ctx, m, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: %w", reconcile.ErrLogChanged, err)
	case err != nil:
		return nil, err
	}
	log.Version = m.ResourceVersion
	o.keep(w)
	return &log, nil
}

// writeParts writes parts, of which an attempt before may have written some.
func (o *observed) writeParts(ctx context.Context, parts []part) error {
	for _, p := range parts {
		m := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: o.partName(p.hash), Labels: o.labels(recordPart)},
			Data:       map[string]string{keyEntries: p.text}, Immutable: new(true),
		}
		if _, err := o.maps.Create(ctx, m, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// saw writes what is observed of the clusters of each shard, where that has changed.
func (o *observed) saw(ctx context.Context, of map[int]reconcile.MembersSeen, shards int) error {
	var failed error
	for shard, seen := range of {
		failed = errors.Join(failed, o.sawShard(ctx, lease.SeenName(o.fleet, shard, shards), seen))
	}
	return failed
}

func (o *observed) sawShard(ctx context.Context, name string, seen reconcile.MembersSeen) error {
	clusters, err := json.Marshal(seen.Clusters)
	if err != nil {
		return err
	}
	data := map[string]string{keyHolder: o.replica.Identity(), keyCommit: seen.Commit, keyAt: strconv.FormatInt(seen.At, 10), keyClusters: string(clusters)}

	o.mu.Lock()
	last := o.said[name]
	o.mu.Unlock()
	if last == nil {
		last, err = o.maps.Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err != nil {
			last = nil
		}
	}
	if last != nil && saysTheSame(last.Data, data, seen) {
		o.note(name, last)
		return nil
	}

	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: o.labels(recordSeen)}, Data: data}
	if last == nil {
		m, err = o.maps.Create(ctx, m, metav1.CreateOptions{})
	} else {
		m.ResourceVersion = last.ResourceVersion
		m, err = o.maps.Update(ctx, m, metav1.UpdateOptions{})
	}
	if err != nil {
		o.note(name, nil) // it is read again: another replica may have written it
		return err
	}
	o.note(name, m)
	return nil
}

func (o *observed) note(name string, m *corev1.ConfigMap) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said[name] = m
}

// saysTheSame reports whether nothing that matters has changed. When it was observed matters
// for what is gone alone.
func saysTheSame(last, next map[string]string, seen reconcile.MembersSeen) bool {
	last, next = maps.Clone(last), maps.Clone(next)
	gone := false
	for _, m := range seen.Clusters {
		gone = gone || len(m.Gone) > 0
	}
	if !gone {
		for _, key := range []string{keyCommit, keyAt} {
			delete(last, key)
			delete(next, key)
		}
	}
	return maps.Equal(last, next)
}

// seen is what is observed of the clusters of all shards, by whoever holds them.
func (o *observed) seen(ctx context.Context, holders map[string]string) ([]reconcile.MembersSeen, error) {
	list, err := o.maps.List(ctx, metav1.ListOptions{LabelSelector: o.selector(recordSeen)})
	if err != nil {
		return nil, err
	}
	var all []reconcile.MembersSeen
	for i := range list.Items {
		m := &list.Items[i]
		if holder := holders[m.Name]; holder == "" || m.Data[keyHolder] != holder {
			continue // whoever wrote it does not have these clusters any more
		}
		seen := reconcile.MembersSeen{Commit: m.Data[keyCommit]}
		if seen.At, err = strconv.ParseInt(m.Data[keyAt], 10, 64); err != nil {
			return nil, fmt.Errorf("configmap %s: %s: %w", m.Name, keyAt, err)
		}
		if err := json.Unmarshal([]byte(m.Data[keyClusters]), &seen.Clusters); err != nil {
			return nil, fmt.Errorf("configmap %s: %s: %w", m.Name, keyClusters, err)
		}
		all = append(all, seen)
	}
	return all, nil
}

// watch has the loop begin a round when the log was written, and where this replica leads
// when something else is observed. It is asked for when the log is used first.
func (o *observed) watch() {
	o.watching.Do(func() { o.replica.drains.Go(o.follow) })
}

func (o *observed) follow() {
	ctx := o.replica.until
	for ctx.Err() == nil {
		_ = o.followOnce(ctx) // what is missed is read in the next round
		select {
		case <-ctx.Done():
		case <-time.After(o.retry):
		}
	}
}

func (o *observed) followOnce(ctx context.Context) error {
	w, err := o.maps.Watch(ctx, metav1.ListOptions{LabelSelector: o.selector(recordObserved, recordSeen)})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-w.ResultChan():
			m, is := event.Object.(*corev1.ConfigMap)
			if !open || !is {
				return nil
			}
			if m.Labels[claims.LabelRecord] == recordObserved || o.replica.Leads() {
				o.replica.opt.Changed()
			}
		}
	}
}
