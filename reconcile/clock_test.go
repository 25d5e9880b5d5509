// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead/fairlead/reconcile"
)

// F36: the machine's clock is turned forwards and back. A toleration runs out when
// the time has passed, and not before; a process that begins with a clock that
// is far behind goes on from what was seen.
func TestClockJumps(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := newWorld(t, embeddedMembers(t))
		files := failoverFleet()
		files["policy.yaml"] += "    clusterTolerations: [{key: broken, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]\n"
		w.repo.Commit("a fleet", files)
		clock, passed := time.Now().Round(0), time.Duration(0)
		opt := w.options()
		opt.Clock = reconcile.Clock{Now: func() time.Time { return clock }, Elapsed: func() time.Duration { return passed }}
		open := func() *reconcile.Loop {
			l, err := reconcile.Open(context.Background(), opt)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l := open()
		round := func() {
			t.Helper()
			for range 3 { // seen, moved, and confirmed
				if err := l.Once(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		}
		round()
		w.wantConfig("eu-1", "ap-1")
		w.repo.Commit("eu-1 is broken", map[string]string{"clusters/ap-1.yaml": failoverCluster("ap-1", ", taints: [{key: broken, effect: NoExecute}]")})
		round()
		for _, turned := range []time.Duration{2 * time.Hour, -5 * time.Hour, 50 * 365 * 24 * time.Hour} {
			clock, passed = clock.Add(turned), passed+90*time.Second
			round()
			w.wantConfig("eu-1", "ap-1")
		}
		passed += 20 * time.Second
		if again {
			// The battery is empty, and nobody has asked a server for the time yet.
			clock = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
			l.Close()
			l = open()
			round()
			w.wantConfig("eu-1", "ap-1")
			passed += 290 * time.Second
		}
		round()
		w.wantConfig("eu-1", "ap-1")
		passed += 20 * time.Second
		round()
		w.wantConfig("eu-1", "us-1")
		l.Close()
	}
}
