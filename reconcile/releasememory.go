// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"runtime/debug"
	"runtime/metrics"
)

// idleMemory is how much memory may be idle, besides a quarter of what is in use.
const idleMemory = 16 << 20

// releaseMemory returns memory that a start or a large commit no longer needs to the
// system. The runtime alone would keep it for the next one, which may be days away. If
// there is little of it, this costs the reading of a few counters.
func releaseMemory() {
	counters := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(counters)
	var held uint64
	for _, c := range counters[1:] {
		held += c.Value.Uint64()
	}

	if live := counters[0].Value.Uint64(); held > live+live/4+idleMemory {
		debug.FreeOSMemory()
	}
}
