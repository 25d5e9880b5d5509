// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/dryrun"
)

// after is a deletion that waits for a content on another cluster.
func after(name, cluster, colour string) []dispatchtest.Work {
	o := configMap(name, colour)
	return []dispatchtest.Work{{Verb: dispatch.Delete, Object: o, After: []dispatch.Acknowledgement{
		{Cluster: cluster, ID: dispatchtest.ID(o), Digest: dispatchtest.Digest(o)},
	}}}
}

// Decision 42: a deletion waits for what other clusters acknowledge. Nobody waits for
// a time, and whoever waits for the end waits for it too.
func TestDeletionWaits(t *testing.T) {
	old, gained := start(t, "eu-1"), start(t, "us-1")
	inventory := &dispatchtest.Inventory{}
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
	d.SetMember("eu-1", pushTo(t, old))
	d.SetMember("us-1", pushTo(t, gained))
	settled := func() {
		t.Helper()
		if left := wait(t, d, 5*time.Second); len(left) != 0 {
			t.Fatalf("left: %v", left[0].Err)
		}
	}
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	settled()

	// It cannot be reached: nobody tries the deletion.
	gained.Partition(true)
	old.ResetRequests()
	sync1(t, d, dispatchtest.Works{"eu-1": after("a", "us-1", "red"), "us-1": apply(configMap("a", "red"))})
	waits := false
	for _, o := range wait(t, d, time.Second) {
		waits = waits || errors.Is(o.Err, member.Waiting) && !o.Final && o.Err.Error() == "delete ConfigMap default/a on eu-1: waits for us-1"
	}
	if !waits || !holds(t, old, "a") {
		t.Fatalf("it does not wait: %v", d.Outcomes())
	}

	// Its acknowledgement wakes the deletion, without another Sync.
	gained.Partition(false)
	settled()
	if holds(t, old, "a") || !holds(t, gained, "a") {
		t.Error("it did not move")
	}

	// What was acknowledged before, and is on record, is not waited for.
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red")), "us-1": apply(configMap("a", "red"))})
	settled()
	sync1(t, d, dispatchtest.Works{"eu-1": after("a", "us-1", "red"), "us-1": apply(configMap("a", "red"))})
	settled()
	if holds(t, old, "a") {
		t.Error("it waits for what was acknowledged")
	}

	// What cannot come is waited for until a Sync says otherwise.
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("b", "red"))})
	settled()
	sync1(t, d, dispatchtest.Works{"eu-1": after("b", "nowhere", "red")})
	if left := wait(t, d, 5*time.Second); len(left) != 1 || !errors.Is(left[0].Err, member.Waiting) {
		t.Errorf("left: %v", left)
	}
	sync1(t, d, dispatchtest.Works{"eu-1": {{Verb: dispatch.Delete, Object: configMap("b", "red")}}})
	settled()
	if holds(t, old, "b") {
		t.Error("it waits for nothing")
	}
}

// Many deletions wait for many acknowledgements at once, and none is missed.
func TestNoAcknowledgementIsMissed(t *testing.T) {
	old, gained := start(t, "eu-1"), start(t, "us-1")
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	d.SetMember("eu-1", pushTo(t, old))
	d.SetMember("us-1", pushTo(t, gained))

	here, there := dispatchtest.Works{}, dispatchtest.Works{}
	for i := range 200 {
		name := fmt.Sprintf("a-%d", i)
		here["eu-1"] = append(here["eu-1"], apply(configMap(name, "red"))...)
		there["us-1"] = append(there["us-1"], apply(configMap(name, "red"))...)
		there["eu-1"] = append(there["eu-1"], after(name, "us-1", "red")...)
	}
	for range 3 {
		for _, works := range []dispatchtest.Works{here, there} {
			sync1(t, d, works)
			if left := wait(t, d, 20*time.Second); len(left) != 0 {
				t.Fatalf("%d are left: %v", len(left), left[0].Err)
			}
		}
		if holds(t, old, "a-0") || holds(t, old, "a-199") {
			t.Fatal("they did not move")
		}
		sync1(t, d, dispatchtest.Works{"us-1": deletions(here["eu-1"])})
		if left := wait(t, d, 20*time.Second); len(left) != 0 {
			t.Fatalf("%d are left: %v", len(left), left[0].Err)
		}
	}
}

func deletions(works []dispatchtest.Work) (all []dispatchtest.Work) {
	for _, w := range works {
		all = append(all, dispatchtest.Work{Verb: dispatch.Delete, Object: w.Object})
	}
	return all
}

// A dry run has nothing acknowledged, and shows what would be deleted.
func TestDryRunDoesNotWait(t *testing.T) {
	old := start(t, "eu-1")
	inventory := &dispatchtest.Inventory{}
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
	d.SetMember("eu-1", pushTo(t, old))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	if left := wait(t, d, 5*time.Second); len(left) != 0 {
		t.Fatal(left[0].Err)
	}

	d = dispatch.New(inventory, dispatch.Options{Backoff: quick})
	d.SetMember("eu-1", dryrun.Wrap(pushTo(t, old)))
	sync1(t, d, dispatchtest.Works{"eu-1": after("a", "us-1", "red")})
	if left := wait(t, d, 5*time.Second); len(left) != 0 || !holds(t, old, "a") {
		t.Errorf("left: %v", left)
	}
}
