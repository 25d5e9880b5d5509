// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// savingInventory has the first save call do, and return its error.
type savingInventory struct {
	dispatchtest.Inventory
	once sync.Once
	do   func() error
}

func (i *savingInventory) Save(changed map[string]map[object.ID]*dispatch.Entry) (err error) {
	i.once.Do(func() { err = i.do() })
	if err != nil {
		return err
	}
	return i.Inventory.Save(changed)
}

// Who a member is is asked while the intents are saved, and once. Nothing else is asked,
// and nothing sent, before they are.
func TestMemberIsAskedWhoItIsDuringTheSave(t *testing.T) {
	s := start(t, "eu-1")
	asked := make(chan bool, 100)
	way := to(roundTrip(func(req *http.Request) (*http.Response, error) {
		asked <- req.URL.Path == "/api/v1/namespaces/kube-system"
		return leads(t, s).RoundTrip(req)
	}))
	inventory := &savingInventory{do: func() error {
		select {
		case is := <-asked:
			if !is {
				t.Error("something else was asked")
			}
		case <-time.After(10 * time.Second):
			t.Error("it was not asked who it is")
		}
		time.Sleep(50 * time.Millisecond)
		if len(asked) > 0 {
			t.Error("there was another request before the intents were saved")
		}
		return nil
	}}
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.SetMember("eu-1", through(t, way))
	sync1(t, d, dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	if left := wait(t, d, 10*time.Second); len(left) > 0 {
		t.Fatal(left[0].Err)
	}
	for len(asked) > 0 {
		if <-asked {
			t.Error("it was asked twice who it is")
		}
	}
	if !holds(t, s, "a") {
		t.Error("a is not there")
	}
}

// What a member said of itself before a save that failed does not count after another one.
func TestMemberIsAskedAnewAfterAFailedSave(t *testing.T) {
	before, after := start(t, "before"), start(t, "after")
	way := to(leads(t, before))
	inventory := &savingInventory{do: func() error {
		time.Sleep(50 * time.Millisecond)
		return errors.New("the disk is full")
	}}
	d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
	defer d.Close(context.Background())
	d.Expect("eu-1", identityOf(t, before))
	d.SetMember("eu-1", through(t, way))
	fleet := dispatchtest.Fleet(dispatchtest.Works{"eu-1": apply(configMap("a", "red"))})
	if err := d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err == nil {
		t.Fatal("the save did not fail")
	}

	way.turn(leads(t, after))
	sync1(t, d, dispatchtest.Works{"eu-1": {{Verb: dispatch.Delete, Object: configMap("a", "red")}}})
	if left := wait(t, d, 10*time.Second); len(left) != 1 || !errors.Is(left[0].Err, member.Replaced) {
		t.Errorf("left: %v", left)
	}
}
