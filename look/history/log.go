// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"strings"
	"sync"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Log is what every commit of a line did, small enough to be kept for all of them. It
// has the timeline of any object as of any of the commits, without another fold. Its
// commits are only added to, so it may be read while it grows.
type Log struct {
	mu       sync.RWMutex
	commits  []*LogCommit // oldest first
	place    map[string]int
	objects  map[object.ID]*logObject
	edited   map[object.ID][]int
	clusters []string // that changes refer to
	number   map[string]uint32
}

// LogCommit is what one commit did.
type LogCommit struct {
	*source.Commit
	// Verdict is whether it was accepted.
	Verdict  Verdict
	Problems []fleet.Problem // of one that was not
	Joined   []string        // clusters
	Left     []string
	// Counts are how many works it changed, by what it did to them.
	Counts  map[propagate.ChangeType]int
	objects []object.ID
}

// Verdict is what the fold made of a commit.
type Verdict string

// The verdicts.
const (
	Accepted Verdict = "accepted"
	Refused  Verdict = "refused"
	Awaiting Verdict = "awaiting-confirmation"
)

// logObject is what happened to an object, oldest first.
type logObject struct {
	changes []logChange
}

// logChange is what one commit did to an object alike on some clusters.
type logChange struct {
	place    int
	like     propagate.Change // without cluster and replicas
	clusters []uint32         // nil for the object as a whole
	// replicas are those of the clusters: one for each, or one for all.
	replicas []propagate.ReplicaChange
}

// replicasOn returns the replicas of the nth cluster; nil for kinds without.
func (c *logChange) replicasOn(n int) *propagate.ReplicaChange {
	switch len(c.replicas) {
	case 0:
		return nil
	case 1:
		return &c.replicas[0]
	}
	return &c.replicas[n]
}

// addReplicas adds those of one more cluster.
func (c *logChange) addReplicas(r propagate.ReplicaChange) {
	if n := len(c.clusters) - 1; len(c.replicas) == 1 && n > 0 {
		if c.replicas[0] == r {
			return
		}
		for range n - 1 {
			c.replicas = append(c.replicas, c.replicas[0])
		}
	}
	c.replicas = append(c.replicas, r)
}

// NewLog returns a log without commits.
func NewLog() *Log {
	return &Log{place: map[string]int{}, objects: map[object.ID]*logObject{}, edited: map[object.ID][]int{}, number: map[string]uint32{}}
}

// Step adds a commit, given the states before and after it.
func (l *Log) Step(c *source.Commit, before, after *propagate.State) {
	changes := propagate.Changes(before, after)
	added := &LogCommit{Commit: c, Verdict: Accepted, Counts: map[propagate.ChangeType]int{}}
	if r := after.Refusal; r != nil && r.Commit == c.Hash {
		added.Verdict, added.Problems = Refused, r.Problems
		if r.Guard != nil {
			added.Verdict = Awaiting
		}
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	at := len(l.commits)
	if before.Snapshot != after.Snapshot {
		for id := range fleet.Edited(before.Snapshot, after.Snapshot) {
			l.edited[id] = append(l.edited[id], at)
		}
		added.Joined, added.Left = clusterChanges(before.Snapshot, after.Snapshot)
	}
	for _, change := range changes {
		added.Counts[change.Type]++
		if l.add(at, change) {
			added.objects = append(added.objects, change.Object)
		}
	}
	for _, id := range added.objects {
		l.objects[id].share(at)
	}
	l.commits = append(l.commits, added)
	l.place[c.Hash] = at
}

func clusterChanges(before, after *fleet.Snapshot) (joined, left []string) {
	var was ordered.Map[*fleet.Cluster]
	if before != nil {
		was = before.Clusters
	}
	for d := range ordered.Diff(was, after.Clusters) {
		switch {
		case !d.Had:
			joined = append(joined, d.Key)
		case !d.Has:
			left = append(left, d.Key)
		}
	}
	return joined, left
}

// add adds a change, and reports whether it is the first one that the commit makes to
// its object. Changes of one object come one after another.
func (l *Log) add(at int, change propagate.Change) bool {
	o := l.objects[change.Object]
	if o == nil {
		o = &logObject{}
		l.objects[change.Object] = o
	}

	like := change
	like.Cluster, like.Replicas = "", nil
	first := len(o.changes) == 0 || o.changes[len(o.changes)-1].place != at
	if i := o.alike(at, &change, &like); i >= 0 {
		g := &o.changes[i]
		g.clusters = append(g.clusters, l.clusterNumber(change.Cluster))
		if change.Replicas != nil {
			g.addReplicas(*change.Replicas)
		}
		return first
	}

	g := logChange{place: at, like: like}
	if change.Cluster != "" {
		g.clusters = []uint32{l.clusterNumber(change.Cluster)}
	}
	if change.Replicas != nil {
		g.replicas = []propagate.ReplicaChange{*change.Replicas}
	}
	o.changes = append(o.changes, g)
	return first
}

// share has the changes of a commit share the clusters of the object's last change, where
// they are the same: mostly they are.
func (o *logObject) share(at int) {
	i := o.first(at)
	for k := i; k < len(o.changes); k++ {
		g := &o.changes[k]
		if i > 0 && slices.Equal(g.clusters, o.changes[i-1].clusters) {
			g.clusters = o.changes[i-1].clusters
		}
		g.clusters = slices.Clip(g.clusters)
	}
}

// alike is the index of a change of the same commit that differs in nothing but the
// cluster and the replicas; -1 if there is none.
func (o *logObject) alike(at int, change, like *propagate.Change) int {
	if change.Cluster == "" {
		return -1
	}
	for i := len(o.changes) - 1; i >= 0 && o.changes[i].place == at; i-- {
		g := &o.changes[i]
		if g.clusters != nil && (g.replicas != nil) == (change.Replicas != nil) && g.like.Type == like.Type &&
			g.like.Text == like.Text && g.like.Policy == like.Policy && slices.Equal(g.like.Because, like.Because) {
			return i
		}
	}
	return -1
}

func (l *Log) clusterNumber(name string) uint32 {
	n, known := l.number[name]
	if !known {
		n = uint32(len(l.clusters))
		l.number[name], l.clusters = n, append(l.clusters, name)
	}
	return n
}

// Commits returns the commits, oldest first.
func (l *Log) Commits() []*LogCommit {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.commits[:len(l.commits):len(l.commits)]
}

// Commit returns a commit and its place in the line, if the log has it.
func (l *Log) Commit(hash string) (c *LogCommit, place int, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	place, ok = l.place[hash]
	if ok {
		c = l.commits[place]
	}
	return c, place, ok
}

// Abbreviated returns the commit whose hash begins so; "" if none does, or more than one.
func (l *Log) Abbreviated(hash string) (found string) {
	if len(hash) < 7 {
		return ""
	}
	for _, c := range l.Commits() {
		switch {
		case !strings.HasPrefix(c.Hash, hash):
		case found != "":
			return ""
		default:
			found = c.Hash
		}
	}
	return found
}

// Changes returns what a commit did, by object and cluster.
func (l *Log) Changes(hash string) (all []propagate.Change) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	place, ok := l.place[hash]
	if !ok {
		return nil
	}
	for _, id := range l.commits[place].objects {
		all = l.happened(all, l.objects[id], place)
	}
	return all
}

// Alike is what one commit did to an object alike on some clusters.
type Alike struct {
	propagate.Change          // its Cluster and Replicas are empty
	Clusters         []string // by name; nil for the object as a whole
}

// Alike returns what a commit did, by object, without replicas.
func (l *Log) Alike(hash string) (all []Alike) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	place, ok := l.place[hash]
	if !ok {
		return nil
	}
	for _, id := range l.commits[place].objects {
		o := l.objects[id]
		for i := o.first(place); i < len(o.changes) && o.changes[i].place == place; i++ {
			a := Alike{Change: o.changes[i].like}
			for _, n := range o.changes[i].clusters {
				a.Clusters = append(a.Clusters, l.clusters[n])
			}
			slices.Sort(a.Clusters)
			all = append(all, a)
		}
	}
	return all
}

// On reports whether it happened on a cluster.
func (a Alike) On(cluster string) bool {
	_, found := slices.BinarySearch(a.Clusters, cluster)
	return found
}

// Quiet reports whether a commit changed nothing of any object.
func (c *LogCommit) Quiet() bool { return len(c.objects) == 0 }

// Objects returns the objects that any commit has changed and that match, sorted.
func (l *Log) Objects(matches func(object.ID) bool) (ids []object.ID) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for id := range l.objects {
		if matches(id) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, byKey)
	return ids
}

// first is the index of the first change of a commit, or of one after it.
func (o *logObject) first(place int) int {
	i, _ := slices.BinarySearchFunc(o.changes, place, func(c logChange, at int) int { return c.place - at })
	return i
}

// happened adds what one commit did to an object.
func (l *Log) happened(all []propagate.Change, o *logObject, place int) []propagate.Change {
	from := len(all)
	for i := o.first(place); i < len(o.changes) && o.changes[i].place == place; i++ {
		g := &o.changes[i]
		if g.clusters == nil {
			all = append(all, g.like)
		}
		for k, n := range g.clusters {
			c := g.like
			c.Cluster = l.clusters[n]
			c.Replicas = g.replicasOn(k)
			all = append(all, c)
		}
	}

	slices.SortStableFunc(all[from:], func(a, b propagate.Change) int { return strings.Compare(a.Cluster, b.Cluster) })
	return all
}

// Timeline returns the timeline of objects as of a commit, as [States.Follow] has it.
func (l *Log) Timeline(head string, ids ...object.ID) *Timeline {
	l.mu.RLock()
	defer l.mu.RUnlock()
	t := NewTimeline()
	place, ok := l.place[head]
	if !ok {
		return t
	}
	for _, c := range l.commits[:place+1] {
		t.Commits[c.Hash] = c.Commit
	}
	for id, places := range l.edited {
		i, found := slices.BinarySearch(places, place)
		if !found {
			i--
		}
		if i >= 0 {
			t.Edited[id] = l.commits[places[i]].Hash
		}
	}
	for _, id := range ids {
		t.Objects[id] = l.timeline(id, place)
	}
	return t
}

// Backlogs returns for objects, as of a commit, what waits for their clusters and since
// when they are held.
func (l *Log) Backlogs(head string, ids []object.ID) map[object.ID]*ObjectTimeline {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make(map[object.ID]*ObjectTimeline, len(ids))
	if place, ok := l.place[head]; ok {
		for _, id := range ids {
			all[id] = l.timeline(id, place)
		}
	}
	return all
}

// Between returns the objects to which the commits between two of the line did something,
// the later one included, whichever that is. It reports false if the line lacks one of them.
func (l *Log) Between(one, other string) (ids []object.ID, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	from, known := l.place[one]
	to, knownToo := l.place[other]
	if !known || !knownToo {
		return nil, false
	}

	for _, c := range l.commits[min(from, to)+1 : max(from, to)+1] {
		ids = append(ids, c.objects...)
	}
	return ids, true
}

// timeline is that of one object up to a place.
func (l *Log) timeline(id object.ID, upTo int) *ObjectTimeline {
	t, o := newObjectTimeline(), l.objects[id]
	if o == nil {
		return t
	}
	for i := 0; i < len(o.changes) && o.changes[i].place <= upTo; {
		place := o.changes[i].place
		t.add(l.commits[place].Commit, l.happened(nil, o, place))
		for i < len(o.changes) && o.changes[i].place == place {
			i++
		}
	}
	return t
}
