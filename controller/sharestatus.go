// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/metrics"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/reconcile/sharing"
)

const (
	// shardManager, with the number of a shard, is the field manager of what is said of that,
	// whoever says it, so that a shard that another replica takes leaves no gap; leaderManager
	// is that of what is said of all.
	shardManager  = "fairlead-shard-"
	leaderManager = "fairlead-leader"

	// mostListed is how many clusters a fleet has whose status lists all of them; of a larger
	// one mostBad are listed that do not have everything.
	mostListed = 500
	mostBad    = 50

	// shardEvery is how often the status of a shard is written at most, and shardAgain at
	// least, as parts of the time between two renewals of a Lease.
	shardEvery = 0.1
	shardAgain = 3
)

// toldShards are the entries of the status that this replica has written.
type toldShards map[int]toldShard

type toldShard struct {
	text string // the entry, without the time
	at   time.Time
}

// writer is the field manager of what only one replica writes.
func (r *reconciler) writer() string {
	if r.opt.Sharding {
		return leaderManager
	}
	return Name
}

// shard is what is known of a shard.
type shard struct {
	v1alpha1.ShardStatus
	members []v1alpha1.MemberStatus
}

// shareStatus writes what this replica has seen of its shards, and if it leads, which
// shards nobody dispatches to. It returns when to do so again; 0 if nothing is shared.
func (r *reconciler) shareStatus(ctx context.Context, f *v1alpha1.Fleet, of *follower) time.Duration {
	replica := of.replica.Load()
	seen := of.last()
	if replica == nil || !seen.opened {
		return 0
	}

	rules, now := replica.Rules(), time.Now()
	all, owned := replica.Shards()
	shards := shardsIn(&seen.result, all)
	leads := replica.Leads()
	every := time.Duration(shardEvery * float64(rules.Renew))
	again := rules.Renew
	known := reported(f)
	for _, n := range owned {
		s := shards[n]
		s.Holder, s.ObservedAt = replica.Identity(), metav1.NewTime(now)
		was := of.shards[n]
		text := textOf(s)
		changed := text != was.text || known[n] == nil || known[n].Holder != s.Holder
		if s.Clusters == 0 && known[n] == nil || !changed && now.Sub(was.at) < shardAgain*rules.Renew {
			continue
		}
		if wait := every - now.Sub(was.at); wait > 0 {
			again = min(again, wait)
			continue
		}
		if err := r.applyShard(ctx, f, s); err != nil {
			of.log.Error(nil, "status of shard "+s.Name+" not written: "+shortened(err.Error()))
			continue
		}
		if of.shards == nil {
			of.shards = toldShards{}
		}
		of.shards[n] = toldShard{text, now}
		known[n] = &s.ShardStatus
	}
	if !leads {
		of.told.ForgetUnowned(metrics.Name{Namespace: f.Namespace, Fleet: f.Name})
		return again
	}
	r.lead(ctx, f, of, replica.Views(), rules, shards, known)
	return again
}

// textOf is what an entry says, apart from when.
func textOf(s *shard) string {
	c := *s
	c.ObservedAt = metav1.Time{}
	raw, err := json.Marshal([]any{c.ShardStatus, c.members})
	if err != nil {
		return ""
	}
	return string(raw)
}

// reported are the entries that the status has, by number.
func reported(f *v1alpha1.Fleet) map[int]*v1alpha1.ShardStatus {
	known := map[int]*v1alpha1.ShardStatus{}
	for i := range f.Status.Shards {
		if n, err := strconv.Atoi(f.Status.Shards[i].Name); err == nil {
			known[n] = &f.Status.Shards[i]
		}
	}
	return known
}

// shardsIn counts the clusters of a fleet by shard, as this replica sees them: of the
// shards of others it knows the number of clusters.
func shardsIn(r *reconcile.Result, n int) []*shard {
	shards := make([]*shard, n)
	for i := range shards {
		shards[i] = &shard{ShardStatus: v1alpha1.ShardStatus{Name: fmt.Sprintf("%02d", i), Commit: r.Accepted}}
	}
	if r.State.Snapshot == nil {
		return shards
	}

	members := map[string]reconcile.MemberStatus{}
	for _, m := range r.Members {
		members[m.Cluster] = m
	}
	all := r.State.Snapshot.Clusters.Len()
	for name, c := range r.State.Snapshot.Clusters.All() {
		i, _ := sharing.ShardOf(c, n)
		m, met := members[name]
		if !met {
			m = reconcile.MemberStatus{Cluster: name, Pending: 1}
		}
		shards[i].add(m, m.State(r.Works[name]), all, n)
	}
	return shards
}

// add counts a cluster, and lists it if there is room.
func (s *shard) add(m reconcile.MemberStatus, is reconcile.ClusterState, clusters, shards int) {
	s.Clusters++
	*s.count(is)++
	if clusters > mostListed && (is.Done() || len(s.members) >= max(1, mostBad/shards)) {
		return
	}
	entry := v1alpha1.MemberStatus{Name: m.Cluster, Shard: s.Name, State: string(is)}
	if err := m.Failure(); err != nil && !is.Done() {
		entry.Message = shortened(err.Error())
	}
	s.members = append(s.members, entry)
}

// count is the counter of a state.
func (s *shard) count(is reconcile.ClusterState) *int {
	switch is {
	case reconcile.ClusterCurrent:
		return &s.Current
	case reconcile.ClusterHeld:
		return &s.Held
	case reconcile.ClusterInProgress:
		return &s.InProgress
	case reconcile.ClusterPending:
		return &s.Pending
	case reconcile.ClusterFailed:
		return &s.Failed
	}
	return &s.Unknown
}

// unknown is a shard that nobody holds: what was last known of its clusters is not what
// they are.
func (s *shard) unknown(last *v1alpha1.ShardStatus) *shard {
	u := &shard{ShardStatus: v1alpha1.ShardStatus{Name: s.Name, Clusters: s.Clusters, Unknown: s.Clusters, ObservedAt: metav1.Now()}}
	if last != nil {
		u.Commit = last.Commit
	}
	for _, m := range s.members {
		m.State, m.Message = string(reconcile.ClusterUnknown), "no replica holds shard "+s.Name
		u.members = append(u.members, m)
	}
	return u
}

// lead marks the shards that nobody holds, and adds up what is known of all.
func (r *reconciler) lead(ctx context.Context, f *v1alpha1.Fleet, of *follower, views []lease.View, rules lease.Rules, shards []*shard, known map[int]*v1alpha1.ShardStatus) {
	var unowned []*shard
	for _, v := range views {
		s := shards[v.Shard]
		if v.Unchanged > 2*rules.Duration {
			unowned = append(unowned, s)
		}
		last := known[v.Shard]
		if v.Unchanged <= rules.Duration || s.Clusters == 0 && last == nil || last != nil && last.Holder == "" && last.Unknown == s.Clusters {
			continue
		}
		u := s.unknown(last)
		if err := r.applyShard(ctx, f, u); err != nil {
			of.log.Error(nil, "status of shard "+s.Name+" not written: "+shortened(err.Error()))
		}
		known[v.Shard] = &u.ShardStatus
	}
	for n, s := range known {
		if n >= len(shards) {
			_ = r.applyShard(ctx, f, &shard{ShardStatus: v1alpha1.ShardStatus{Name: s.Name}}) // of another number of shards; tried again the next time
			delete(known, n)
		}
	}

	t := sum(f, shards, known)
	of.mu.Lock()
	of.seen.tally = &t
	of.mu.Unlock()
	reportDispatching(f, unowned)
	name := metrics.Name{Namespace: f.Namespace, Fleet: f.Name}
	if was := of.told.SetUnowned(name, len(unowned)); was == 0 && len(unowned) > 0 {
		r.event(f, "", corev1.EventTypeWarning, ReasonShardUnowned, conditions.GetMessage(f, DispatchingCondition))
	}
}

// applyShard writes the entries of a shard; one without clusters and holder is taken away.
func (r *reconciler) applyShard(ctx context.Context, f *v1alpha1.Fleet, s *shard) error {
	status := map[string]any{}
	if s.Holder != "" || s.Clusters > 0 {
		entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.ShardStatus)
		if err != nil {
			return err
		}
		var members []any
		for i := range s.members {
			m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.members[i])
			if err != nil {
				return err
			}
			members = append(members, m)
		}
		status["shards"], status["members"] = []any{entry}, members
	}

	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.KindFleet,
		"metadata": map[string]any{"namespace": f.Namespace, "name": f.Name}, "status": status,
	}}
	return r.client.Status().Patch(ctx, u, client.Apply, client.FieldOwner(shardManager+s.Name), client.ForceOwnership) //nolint:staticcheck // it is unstructured
}

// sum adds up what the holders of all shards say. What one says of another commit than the
// accepted one says nothing about that.
func sum(f *v1alpha1.Fleet, shards []*shard, known map[int]*v1alpha1.ShardStatus) tally {
	t := tally{of: map[reconcile.ClusterState]int{}}
	for n, s := range shards {
		t.all += s.Clusters
		is := known[n]
		switch {
		case is == nil:
			t.of[reconcile.ClusterPending] += s.Clusters
			continue
		case is.Holder == "":
			t.of[reconcile.ClusterUnknown] += s.Clusters
			continue
		case is.Commit != s.Commit || is.Clusters != s.Clusters:
			t.of[reconcile.ClusterInProgress] += s.Clusters
			continue
		}
		said := shard{ShardStatus: *is}
		for _, state := range reconcile.ClusterStates() {
			t.of[state] += *said.count(state)
		}
	}
	for _, state := range []reconcile.ClusterState{reconcile.ClusterFailed, reconcile.ClusterUnknown} {
		for _, m := range f.Status.Members {
			if m.State == string(state) && m.Message != "" {
				t.bad = append(t.bad, m.Name+": "+m.Message)
			}
		}
	}
	return t
}

// reportDispatching writes the condition Dispatching.
func reportDispatching(f *v1alpha1.Fleet, unowned []*shard) {
	if len(unowned) == 0 {
		conditions.MarkTrue(f, DispatchingCondition, meta.SucceededReason, "A replica dispatches to the clusters of each shard")
		return
	}

	names, clusters := []string{}, 0
	for _, s := range unowned {
		clusters += s.Clusters
		if len(names) < mostNamed {
			names = append(names, s.Name)
		}
	}
	if more := len(unowned) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	conditions.MarkFalse(f, DispatchingCondition, ReasonShardUnowned, "No replica holds %s (%s): nothing is sent to %s",
		count(len(unowned), "shard"), strings.Join(names, ", "), count(clusters, "cluster"))
}
