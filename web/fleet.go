// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
)

// Fleet is what a door gives the page of one fleet.
type Fleet struct {
	// Name is what the page calls the fleet; "" is the fleet's own name.
	Name string
	// Ref is the branch that the page follows; "" is the default branch.
	Ref string
	// Head returns the commit that the page shows, for a door that does not show each
	// commit of Ref at once; "" as long as there is none. nil is the head of Ref.
	Head func() string
	// Open opens the history. It is called more than once: what it returns is used by one
	// goroutine at a time, all of them on one repository.
	Open func(context.Context) (*history.States, error)
	// Known returns the state of a door that folds the branch for itself: what the page folds
	// shares with it what is equal. nil where nobody else folds.
	Known func() *history.Known
	// Fetch updates the repository, every FetchEvery; nil if it is a local one.
	Fetch      func(context.Context) error
	FetchEvery time.Duration
	// Members is what members were last seen to have, where somebody else sees them. Ask is
	// how the page asks them itself, every FetchEvery. Without either it shows what the fold
	// decided.
	Members func() *Members
	Ask     *status.Members
	// Changed tells that the branch may have moved, or that members have something else.
	// Without it the page looks every two seconds.
	Changed <-chan struct{}
	// Forge has the addresses of the repository on its forge.
	Forge Forge
}

// Members is what members were seen to have.
type Members struct {
	Head  string // of the fleet, that they were compared with
	At    time.Time
	Cells map[object.ID]map[string]*status.Cell
	// Silent has the reasons of the clusters that gave no answer.
	Silent map[string]string

	once    sync.Once
	version string
}

// Version names what they have: it is another one when that is.
func (m *Members) Version() string {
	m.once.Do(func() {
		sum := sha256.New()
		for _, id := range slices.SortedFunc(maps.Keys(m.Cells), func(a, b object.ID) int { return strings.Compare(a.Key(), b.Key()) }) {
			for _, cluster := range slices.Sorted(maps.Keys(m.Cells[id])) {
				c := m.Cells[id][cluster]
				available := int64(-1)
				if c.Observed != nil {
					available = c.Observed.Available
				}
				fmt.Fprintf(sum, "%s\x00%s\x00%s\x00%s\x00%d\x00%d\x00%d\x00", id.Key(), cluster, c.State, c.Reason(), c.Behind, c.Replicas, available)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.Silent)) {
			fmt.Fprintf(sum, "%s\x00%s\x00", name, m.Silent[name])
		}
		m.version = hex.EncodeToString(sum.Sum(nil)[:6])
	})
	return m.version
}

// of returns the cell of an object on a cluster; nil if it was not seen.
func (m *Members) of(id object.ID, cluster string) *status.Cell {
	if m == nil {
		return nil
	}
	return m.Cells[id][cluster]
}
