// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// FAIRLEAD_LEASE_SCHEDULES=1000000 runs as many schedules; FAIRLEAD_LEASE_SEED=7 runs
// from that seed on.
func TestSchedules(t *testing.T) {
	schedules := number(t, "FAIRLEAD_LEASE_SCHEDULES", 1000)
	first := number(t, "FAIRLEAD_LEASE_SEED", 1)
	began := time.Now()
	steps, takeovers := 0, 0
	for seed := first; seed < first+schedules; seed++ {
		p := newPlan(uint64(seed), DefaultRules())
		w := p.run(false)
		steps += w.steps
		takeovers += w.takeovers
		if w.broken != "" {
			t.Fatal(p.shrink().run(true).story())
		}
	}
	t.Logf("%d schedules from seed %d, %d steps, %d takeovers, %v", schedules, first, steps, takeovers, time.Since(began).Round(time.Millisecond))
}

// shrink leaves out what a breach does not need.
func (p plan) shrink() plan {
	for i := 0; i < len(p.faults); {
		smaller := p
		smaller.faults = slices.Delete(slices.Clone(p.faults), i, i+1)
		if smaller.run(false).broken != "" {
			p = smaller
			i = 0
		} else {
			i++
		}
	}
	return p
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// A rule that is taken out must be missed: otherwise the simulation shows nothing.
func TestBrokenRules(t *testing.T) {
	for name, test := range map[string]struct {
		mutate func(*Rules)
		breach string
		from   uint64 // a seed that is not far from one that shows it
	}{
		"expires too early":                {func(r *Rules) { r.Duration = 20 * time.Second }, "two writers", 1},
		"gate closes too late":             {func(r *Rules) { r.GateCloses = 35 * time.Second }, "two writers", 1},
		"gate from the end of renewal":     {func(r *Rules) { r.broken.gateFromEnd = true }, "two writers", 1300},
		"gate opens at once after expiry":  {func(r *Rules) { r.Settle = 0 }, "two writers", 1},
		"no drain":                         {func(r *Rules) { r.Drain = 0 }, "two writers", 1},
		"updates of any version":           {func(r *Rules) { r.broken.unconditional = true }, "two writers", 1},
		"other shards ignored":             {func(r *Rules) { r.broken.ignoresOthers = true }, "two writers", 1},
		"taken without a list":             {func(r *Rules) { r.broken.confirmsNothing = true }, "two writers", 1},
		"other shards not cleared":         {func(r *Rules) { r.broken.leavesExpired = true }, "two writers", 3600},
		"no position at the gate":          {func(r *Rules) { r.broken.forgetsPosition = true }, "older commit", 1},
		"no position at the takeover":      {func(r *Rules) { r.broken.takesUnfolded = true }, "older commit", 1},
		"no reservation":                   {func(r *Rules) { r.broken.ignoresReservation = true }, "reservation", 1},
		"no fallback":                      {func(r *Rules) { r.broken.noFallback = true }, "unowned", 1},
		"given back to who cannot take it": {func(r *Rules) { r.broken.returnsAtOnce = true }, "unserved", 1700},
	} {
		t.Run(name, func(t *testing.T) {
			rules := DefaultRules()
			test.mutate(&rules)
			for seed := test.from; ; seed++ {
				if seed > test.from+20000 {
					t.Fatal("20,000 schedules notice nothing")
				}
				w := newPlan(seed, rules).run(false)
				if w.broken == "" {
					continue
				}
				if !strings.Contains(w.broken, test.breach) {
					t.Fatalf("seed %d: %s, not %s", seed, w.broken, test.breach)
				}
				t.Logf("seed %d: %s", seed, w.broken)
				return
			}
		})
	}
}
