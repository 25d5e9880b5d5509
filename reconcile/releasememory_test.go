// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

func TestMemoryIsGivenBack(t *testing.T) {
	released := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	burst := make([]byte, 128<<20)
	for i := 0; i < len(burst); i += 4096 {
		burst[i] = 1
	}
	before := released()
	runtime.KeepAlive(burst) // and no longer
	runtime.GC()             // as the runtime does by itself every two minutes
	releaseMemory()
	if after := released(); after < before+100<<20 {
		t.Errorf("of 128 MiB %d were given back", (int64(after)-int64(before))>>20)
	}
}
