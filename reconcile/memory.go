// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"runtime/debug"
	"runtime/metrics"
)

// mayLieIdle is how much memory may, besides a quarter of what is in use.
const mayLieIdle = 16 << 20

// giveBack returns to the machine what a start or a large commit left behind.
// The runtime alone would keep it for the next one, which may be days away.
// Where there is little of it, this costs a look at a few counters.
func giveBack() {
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
	if live := counters[0].Value.Uint64(); held > live+live/4+mayLieIdle {
		debug.FreeOSMemory()
	}
}
