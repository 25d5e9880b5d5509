// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// ballast is memory that is allocated and never touched, so that it costs none.
// The collector runs when the heap has doubled; without it the few MiB of a
// small fleet would double, and be collected, ten times in one commit.
const ballast = 32 << 20

// heedMemoryLimit has the collector work harder as the memory that the process
// may use, by its cgroup, comes to an end. Left to itself it lets the heap double,
// and the kernel would end the process while half of that is garbage. A tenth, and
// the ballast, are left for what is not the collector's. GOMEMLIMIT says otherwise.
func heedMemoryLimit(granted memlimit.Provider) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit, err := granted()
	if err != nil || limit > math.MaxInt64/2 {
		return // there is none
	}
	debug.SetMemoryLimit(int64(limit / 10 * 9))
}

// collectLess has the collector let the heap of a command grow further: it ends before
// most of what it read becomes garbage. GOGC says otherwise, and a memory limit still
// holds.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
