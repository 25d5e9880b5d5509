// SPDX-License-Identifier: Apache-2.0

package stream

import "sync"

// Limits are how many streams may be open, in all and to one address.
type Limits struct {
	total, perAddress int

	mu   sync.Mutex
	open map[string]int
	all  int
}

// NewLimits returns limits; 0 is 1,000 in all, and 64 to an address.
func NewLimits(total, perAddress int) *Limits {
	if total == 0 {
		total = 1000
	}
	if perAddress == 0 {
		perAddress = 64
	}
	return &Limits{total: total, perAddress: perAddress, open: map[string]int{}}
}

// enter counts a stream, unless there are too many. Each one that it counts leaves once.
func (l *Limits) enter(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.total || l.open[address] >= l.perAddress {
		return false
	}
	l.all++
	l.open[address]++
	return true
}

func (l *Limits) leave(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}
