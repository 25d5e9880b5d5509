// SPDX-License-Identifier: Apache-2.0

package oracle

import "slices"

// Brakes are what holds and keeps: all clusters or some of them are
// suspended, and what is removed is preserved.
type Brakes struct {
	All      bool
	On       []string // sorted
	Preserve bool
}

func brakesOf(spec object) Brakes {
	var b Brakes
	b.All, _ = at(spec, "suspension")["dispatching"].(bool)
	b.On = names(at(spec, "suspension", "dispatchingOnClusters")["clusterNames"])
	slices.Sort(b.On)
	b.On = slices.Compact(b.On)
	b.Preserve, _ = spec["preserveResourcesOnDeletion"].(bool)
	return b
}

func (b Brakes) hold(cluster string) bool { return b.All || slices.Contains(b.On, cluster) }

// plus holds and keeps what either does.
func (b Brakes) plus(o Brakes) Brakes {
	on := slices.Concat(b.On, o.On)
	slices.Sort(on)
	return Brakes{All: b.All || o.All, On: slices.Compact(on), Preserve: b.Preserve || o.Preserve}
}
