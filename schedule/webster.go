// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"container/heap"
	"math/big"
	"math/bits"
	"slices"
)

// Share is a cluster and its part of something: a weight, or replicas.
type Share struct {
	Name  string
	Count int64
}

// Webster assigns seats one at a time, each to the party with the greatest
// weight / (2·seats + 1); a tie goes to the party with fewer seats, then to the
// name that sorts first (digest §4.7, decision 22). Parties without seats are
// left out; the result is sorted by name.
func Webster(weights []Share, seats int64) []Share {
	q := make(queue, 0, len(weights))
	for _, w := range weights {
		if w.Count > 0 {
			q = append(q, party{Share: Share{Name: w.Name}, weight: w.Count})
		}
	}

	if len(q) == 0 {
		return nil
	}

	seats -= q.deal(seats)
	heap.Init(&q)

	for ; seats > 0; seats-- {
		q[0].Count++
		heap.Fix(&q, 0)
	}

	var shares []Share
	for _, p := range q {
		if p.Count > 0 {
			shares = append(shares, p.Share)
		}
	}

	slices.SortFunc(shares, func(a, b Share) int { return cmp.Compare(a.Name, b.Name) })
	return shares
}

type party struct {
	Share
	weight int64
}

// queue has the next party in front.
type queue []party

// deal assigns at once most of the seats that parties are certain to get, so
// that the cost does not depend on the number of seats, and returns how many.
// In every Webster division a party holds at least floor(weight · (seats -
// parties) / all weights) of them.
func (q queue) deal(seats int64) (dealt int64) {
	seats -= int64(len(q))
	if seats <= 0 {
		return 0
	}

	all := q.weight()
	for i := range q {
		q[i].Count = all.share(q[i].weight, seats)
		dealt += q[i].Count
	}

	return dealt
}

// total is a sum of weights, which may need more than 64 bits.
type total struct{ hi, lo uint64 }

func (q queue) weight() (all total) {
	for i := range q {
		var carry uint64
		all.lo, carry = bits.Add64(all.lo, uint64(q[i].weight), 0)
		all.hi += carry
	}
	return all
}

// share is floor(weight · seats / all), in integers: what a float out of range
// becomes depends on the processor.
func (all total) share(weight, seats int64) int64 {
	if all.hi > 0 {
		var sum, product big.Int
		sum.SetUint64(all.hi).Lsh(&sum, 64).Add(&sum, new(big.Int).SetUint64(all.lo))
		product.Mul(big.NewInt(weight), big.NewInt(seats))
		return product.Quo(&product, &sum).Int64()
	}

	hi, lo := bits.Mul64(uint64(weight), uint64(seats))
	share, _ := bits.Div64(hi, lo, all.lo) // a weight is at most the sum, so the share fits
	return int64(share)
}

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q queue) Less(i, j int) bool {
	// a/(2s+1) > b/(2t+1), without rounding or overflow.
	ahi, alo := bits.Mul64(uint64(q[i].weight), uint64(2*q[j].Count+1))
	bhi, blo := bits.Mul64(uint64(q[j].weight), uint64(2*q[i].Count+1))
	switch {
	case ahi != bhi:
		return ahi > bhi
	case alo != blo:
		return alo > blo
	case q[i].Count != q[j].Count:
		return q[i].Count < q[j].Count
	}

	return q[i].Name < q[j].Name
}

func (q *queue) Push(x any) { *q = append(*q, x.(party)) }

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
