// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/lease"
)

// pass is one time through everything that was asked for: what is pending is written, the
// ConfigMaps are listed, and what was decided is written.
type pass struct {
	*Registry
	shards   int
	clusters Clusters
	asked    []*question
	held     map[int]*holding
	kept     map[int]bool // holdings that were told of clusters
	look     []int        // shards in which claims may be that should not

	open  []*question // neither answered nor decided
	later []*question // for the next pass
	list  map[string]*record
}

// run reports whether everything succeeded. Otherwise it is tried again, asked for or not:
// what is pending without need keeps other names waiting.
func (p *pass) run(ctx context.Context) bool {
	p.admit()
	involved := p.involved()
	ok := len(involved) == 0 || p.bring(ctx, involved)
	p.saw(p, involved, ok)
	return ok
}

// bring brings the ConfigMaps of shards to what they should say, and answers.
func (p *pass) bring(ctx context.Context, shards []int) bool {
	if err := p.load(ctx, shards); err != nil {
		p.fail(fmt.Errorf("the claims of the shards could not be read: %w", err))
		return false
	}

	ok := p.write(ctx, shards, p.pending)
	p.answerRecorded()
	for looks := 1; len(p.open) > 0; looks++ {
		if err := p.readAll(ctx); err != nil {
			p.fail(fmt.Errorf("the claims of other shards could not be read: %w", err))
			return false
		}
		ok = p.decide(ctx, looks == maxLooks) && ok
		if len(p.open) > 0 {
			sleep(ctx, p.opt.Pause)
		}
	}
	return p.clean(ctx) && ok
}

// maxLooks is how often it is looked whether another claim was withdrawn.
const maxLooks = 4

func sleep(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// admit takes the questions about clusters of shards that are held here. Of one cluster
// only the last counts: it may be another one than it was.
func (p *pass) admit() {
	last := map[string]*question{}
	for _, q := range p.asked {
		last[q.cluster] = q
	}
	for _, q := range p.asked {
		if last[q.cluster] != q {
			q.answer(errors.New("it was asked for once more"))
			continue
		}
		if p.clusters == nil {
			q.answer(errors.New("it is not known yet which clusters there are"))
			continue
		}
		var ok bool
		if q.shard, q.id, ok = p.clusters.Cluster(q.cluster, p.shards); !ok {
			q.answer(errors.New("it has left the fleet"))
			continue
		}
		if q.of = p.held[q.shard]; !p.isHeld(q.shard, p.shards, q.of) {
			q.answer(errNotHeld(q.shard))
			continue
		}
		p.open = append(p.open, q)
	}
	p.postpone()
}

// postpone leaves of several names that ask for one cluster the first, by what is known
// here, and has the others ask in the next pass.
func (p *pass) postpone() {
	best := map[types.UID]*question{}
	for _, q := range p.open {
		if b := best[q.uid]; b == nil || p.standing(q).compare(p.standing(b)) < 0 {
			best[q.uid] = q
		}
	}
	p.open = slices.DeleteFunc(p.open, func(q *question) bool {
		if best[q.uid].cluster == q.cluster {
			return false
		}
		p.later = append(p.later, q)
		return true
	})
}

// standing is how well a question stands, by what is known here.
func (p *pass) standing(q *question) standing {
	s := standing{name: q.cluster, named: q.id == q.uid}
	if r := p.known[q.shard]; r != nil {
		c, ok := r.claims[q.cluster]
		s.recorded = ok && !c.pending && c.uid == q.uid
	}
	return s
}

func (q *question) answer(err error) {
	q.err = err
	close(q.done)
}

// fail answers what is open. What was written in vain may have arrived, so everything is
// read again.
func (p *pass) fail(err error) {
	for _, q := range p.open {
		q.answer(err)
	}
	if len(p.open) == 0 {
		p.failed(err)
	}
	p.open = nil
	clear(p.known)
}

// involved are the shards of the questions, and those to look at.
func (p *pass) involved() []int {
	all := map[int]bool{}
	for _, q := range p.open {
		all[q.shard] = true
	}
	for _, shard := range p.look {
		all[shard] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// load reads the ConfigMaps of shards, if one of them is not known.
func (p *pass) load(ctx context.Context, shards []int) error {
	if !slices.ContainsFunc(shards, func(s int) bool { return p.known[s] == nil || !p.isHeldSince(s) }) {
		return nil
	}
	if err := p.readAll(ctx); err != nil {
		return err
	}
	for _, s := range shards {
		p.known[s] = p.list[p.name(s)]
		if p.known[s] == nil {
			p.known[s] = &record{claims: map[string]claim{}}
		}
		p.known[s].since = p.held[s]
	}
	return nil
}

// isHeldSince reports whether what is known of a shard was read since it was taken.
func (p *pass) isHeldSince(shard int) bool { return p.known[shard].since == p.held[shard] }

// readAll lists the ConfigMaps of the fleet as they are at this moment.
func (p *pass) readAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.opt.Request)
	defer cancel()
	selector := lease.LabelFleet + "=" + lease.FleetLabel(p.opt.Fleet) + "," + LabelRecord + "=" + Members
	list, err := p.opt.Maps.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}

	p.list = make(map[string]*record, len(list.Items))
	for i := range list.Items {
		r, err := read(&list.Items[i])
		if err != nil {
			return err
		}
		p.list[r.stored.Name] = r
	}
	return nil
}

func (p *pass) name(shard int) string { return lease.MembersName(p.opt.Fleet, shard, p.shards) }

// pending is what a ConfigMap should say before the others are listed: the records that git
// allows, and what is asked for. What nobody asks for any more is not pending.
func (p *pass) pending(shard int) map[string]claim {
	was := p.known[shard]
	is := map[string]claim{}
	for name, c := range was.claims {
		if !c.pending && !p.dropped(shard, name, c) {
			is[name] = c
		}
	}
	for _, q := range p.open {
		c, ok := is[q.cluster]
		switch {
		case q.shard != shard:
		case !ok, q.id == q.uid && c.uid != q.uid:
			is[q.cluster] = claim{uid: q.uid, pending: true, named: q.id == q.uid}
		}
	}
	return is
}

// dropped reports whether git says that a record is not so.
func (p *pass) dropped(shard int, name string, c claim) bool {
	if !p.kept[shard] {
		return false
	}
	in, id, ok := p.clusters.Cluster(name, p.shards)
	return !ok || in != shard || id != "" && id != c.uid
}

// write writes what the ConfigMaps of shards should say, side by side. What is asked about
// one that cannot be written is answered.
func (p *pass) write(ctx context.Context, shards []int, should func(shard int) map[string]claim) bool {
	failures := make([]error, len(shards))
	var all sync.WaitGroup
	for i, shard := range shards {
		is, was := should(shard), p.known[shard]
		if maps.Equal(is, was.claims) && was.written {
			continue
		}
		all.Go(func() { failures[i] = p.put(ctx, shard, is) })
	}
	all.Wait()

	ok := true
	for i, err := range failures {
		if err == nil {
			continue
		}
		ok = false
		delete(p.known, shards[i])
		p.answerShard(shards[i], err)
	}
	return ok
}

// put writes one ConfigMap, if it is as it was read.
func (p *pass) put(ctx context.Context, shard int, claims map[string]claim) error {
	was := p.known[shard]
	m := configMap(p.name(shard), p.opt.Fleet, p.writer(), was.stored, claims)
	if !p.isHeld(shard, p.shards, p.held[shard]) {
		return errNotHeld(shard)
	}

	ctx, cancel := context.WithTimeout(ctx, p.opt.Request)
	defer cancel()
	var err error
	if was.stored == nil {
		m, err = p.opt.Maps.Create(ctx, m, metav1.CreateOptions{})
	} else {
		m, err = p.opt.Maps.Update(ctx, m, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("the claims of shard %02d could not be written: %w", shard, err)
	}
	was.stored, was.claims, was.written = m, claims, true
	return nil
}

// writer is who writes, another one each time.
func (p *pass) writer() string { return fmt.Sprintf("%s/%d", p.opt.Holder, p.writes.Add(1)) }

// answerShard answers what is asked about a shard, and tells of it otherwise.
func (p *pass) answerShard(shard int, err error) {
	told := false
	p.open = slices.DeleteFunc(p.open, func(q *question) bool {
		if q.shard != shard {
			return false
		}
		q.answer(err)
		told = true
		return true
	})
	if !told {
		p.failed(err)
	}
}

// answerRecorded answers what a record decides.
func (p *pass) answerRecorded() {
	p.open = slices.DeleteFunc(p.open, func(q *question) bool {
		c := p.known[q.shard].claims[q.cluster]
		if c.pending {
			return false
		}
		p.settle(q, c)
		return true
	})
}

// settle answers a question whose cluster has a record, if the shard is still held.
func (p *pass) settle(q *question, c claim) {
	if !p.isHeld(q.shard, p.shards, q.of) {
		q.answer(errNotHeld(q.shard))
		return
	}
	q.recorded = c.uid
	q.answer(nil)
}

// decide decides what is open by what is listed, writes that, and answers. What waits for
// another claim to be withdrawn stays open, but for the last look.
func (p *pass) decide(ctx context.Context, last bool) bool {
	given, withdrawn := map[*question]bool{}, map[*question]error{}
	shards := map[int]bool{}
	for _, q := range p.open {
		d, why := p.decideOne(q)
		switch {
		case d == granted:
			given[q] = true
		case d == awaits && !last:
			continue
		default:
			withdrawn[q] = why
		}
		shards[q.shard] = true
	}

	ok := p.write(ctx, slices.Sorted(maps.Keys(shards)), func(shard int) map[string]claim {
		is := maps.Clone(p.known[shard].claims)
		for q := range withdrawn {
			if q.shard == shard {
				delete(is, q.cluster)
			}
		}
		for q := range given {
			if q.shard == shard {
				is[q.cluster] = claim{uid: q.uid}
			}
		}
		return is
	})
	p.open = slices.DeleteFunc(p.open, func(q *question) bool { // without those of a write that has failed
		why, no := withdrawn[q]
		switch {
		case given[q]:
			p.settle(q, claim{uid: q.uid})
		case no:
			q.answer(why)
		}
		return given[q] || no
	})
	return ok
}

// decideOne decides one question. The error is what it is answered with if it is not granted.
func (p *pass) decideOne(q *question) (decision, error) {
	if was := p.elsewhere(q); was != "" && was != q.uid && q.id != q.uid {
		q.recorded = was
		return refused, nil
	}

	d, other := decide(q.cluster, standings(p.list, q.uid), p.keeps(q))
	switch d {
	case awaits:
		return d, fmt.Errorf("it is the same cluster as %s (kube-system %s), whose claim is about to be withdrawn by the replica that holds its shard", other, q.uid)
	case yields:
		return d, fmt.Errorf("it is the same cluster as %s (kube-system %s), which git does not say any more: waiting until the replica that holds its shard has read that", other, q.uid)
	case refused:
		q.other = other
	}
	return d, nil
}

// elsewhere is what is recorded of a cluster in a shard that it has left.
func (p *pass) elsewhere(q *question) (uid types.UID) {
	for name, r := range p.list {
		if c, ok := r.claims[q.cluster]; ok && !c.pending && name != p.name(q.shard) {
			uid = c.uid
		}
	}
	return uid
}

// keeps reports whether git lets another name have the cluster that is asked for.
func (p *pass) keeps(q *question) func(name string) bool {
	return func(name string) bool {
		_, id, ok := p.clusters.Cluster(name, p.shards)
		return ok && (id == "" || id == q.uid)
	}
}

// clean drops from the ConfigMaps of another number of shards what is recorded again, or has
// left git. Nobody holds those any more.
func (p *pass) clean(ctx context.Context) bool {
	own := map[string]bool{}
	for s := range p.shards {
		own[p.name(s)] = true
	}
	ok := true
	for name, r := range p.list {
		if own[name] {
			continue
		}
		is := maps.Clone(r.claims)
		maps.DeleteFunc(is, func(cluster string, c claim) bool { return p.replaced(cluster, c) })
		if len(is) == len(r.claims) && len(is) > 0 {
			continue
		}
		if err := p.shrink(ctx, r, is); err != nil {
			p.failed(fmt.Errorf("claims of another number of shards: %w", err))
			ok = false
		}
	}
	return ok
}

// replaced reports whether a claim of another number of shards counts no more: its cluster
// is in a shard that is held here, and has another one, or none.
func (p *pass) replaced(cluster string, c claim) bool {
	if p.clusters == nil {
		return false
	}
	shard, _, ok := p.clusters.Cluster(cluster, p.shards)
	if !ok {
		shard, _ = lease.ShardOf(cluster, "", p.shards)
	}
	if !p.kept[shard] || p.known[shard] == nil || !p.isHeld(shard, p.shards, p.held[shard]) {
		return false
	}
	now, recorded := p.known[shard].claims[cluster]
	return !ok || c.pending || recorded && !now.pending
}

// shrink writes what is left of a ConfigMap, if it is as it was read.
func (p *pass) shrink(ctx context.Context, r *record, is map[string]claim) error {
	ctx, cancel := context.WithTimeout(ctx, p.opt.Request)
	defer cancel()
	if len(is) > 0 {
		_, err := p.opt.Maps.Update(ctx, configMap(r.stored.Name, p.opt.Fleet, p.writer(), r.stored, is), metav1.UpdateOptions{})
		return err
	}
	version := r.stored.ResourceVersion
	return p.opt.Maps.Delete(ctx, r.stored.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
}
