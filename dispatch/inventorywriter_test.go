// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/object"
)

// heldWriter writes when it is flushed, and not by itself.
func heldWriter(t *testing.T, inventory Inventory) *inventoryWriter {
	t.Helper()
	d := New(inventory, Options{})
	d.writer.writing = true
	return &d.writer
}

func (d *disk) uid(o string) types.UID {
	if e := d.saved[idOf(o)]; e != nil {
		return e.UID
	}
	return ""
}

func TestInventoryWriter(t *testing.T) {
	inventory := &disk{}
	i := heldWriter(t, inventory)
	e := Entry{UID: "1"}
	i.put("eu-1", idOf(web), &e)
	e.UID = "changed by its owner"
	i.put("eu-1", idOf(settings), &Entry{UID: "2"})
	i.put("eu-1", idOf(settings), nil)

	if !i.flush() || inventory.saves != 1 || inventory.uid(web) != "1" {
		t.Errorf("%d saves, web is %q", inventory.saves, inventory.uid(web))
	}
	if e, ok := inventory.saved[idOf(settings)]; !ok || e != nil {
		t.Errorf("settings is %v, want it dropped", e)
	}
	if i.idle() {
		t.Error("it is idle before it has looked again")
	}
	if i.flush() || inventory.saves != 1 || !i.idle() {
		t.Errorf("%d saves, idle %v", inventory.saves, i.idle())
	}
}

// What could not be written is written with the next acknowledgement, unless that
// one says otherwise.
func TestInventoryWriterKeepsWhatWasRefused(t *testing.T) {
	inventory := &disk{refusal: errors.New("no space left")}
	i := heldWriter(t, inventory)
	for _, o := range []string{web, settings, shop} {
		i.put("eu-1", idOf(o), &Entry{UID: "old"})
	}
	if i.flush() || !i.idle() || !errors.Is(i.err, inventory.refusal) {
		t.Errorf("idle %v, error %v", i.idle(), i.err)
	}

	i.writing = true
	i.put("eu-1", idOf(web), &Entry{UID: "new"})
	i.put("eu-1", idOf(settings), nil)
	inventory.refusal = nil
	i.flush()
	got := [3]types.UID{inventory.uid(web), inventory.uid(settings), inventory.uid(shop)}
	if want := [3]types.UID{"new", "", "old"}; got != want || i.err != nil {
		t.Errorf("saved %q, error %v; want %q", got, i.err, want)
	}
}

// An acknowledgement that comes while the one before is being refused is newer.
func TestInventoryWriterKeepsWhatCameMeanwhile(t *testing.T) {
	inventory := &slowDisk{disk: disk{refusal: errors.New("no space left")}}
	i := heldWriter(t, inventory)
	inventory.meanwhile = func() { i.put("eu-1", idOf(web), &Entry{UID: "new"}) }
	i.put("eu-1", idOf(web), &Entry{UID: "old"})
	i.put("eu-1", idOf(shop), &Entry{UID: "old"})
	i.flush()

	inventory.refusal, inventory.meanwhile = nil, func() {}
	i.flush()
	got := [2]types.UID{inventory.uid(web), inventory.uid(shop)}
	if want := [2]types.UID{"new", "old"}; got != want {
		t.Errorf("saved %q, want %q", got, want)
	}
}

// When a cluster is forgotten nothing of it is written afterwards: not by a write that has
// begun, which is waited for, and not by another attempt of one that was refused.
func TestInventoryWriterForgets(t *testing.T) {
	for _, refusal := range []error{nil, errors.New("no space left")} {
		inventory := &slowDisk{disk: disk{refusal: refusal}}
		i := heldWriter(t, inventory)
		forgotten := make(chan struct{})
		inventory.meanwhile = func() {
			go func() { i.forget("eu-1"); close(forgotten) }()
			select {
			case <-forgotten:
				t.Error("it is forgotten while it is being written")
			case <-time.After(20 * time.Millisecond):
			}
		}
		i.put("eu-1", idOf(web), &Entry{UID: "1"})
		i.put("us-1", idOf(shop), &Entry{UID: "2"})
		i.flush()
		<-forgotten

		inventory.refusal, inventory.meanwhile = nil, func() {}
		saves := inventory.saves
		i.flush()
		if i.pending["eu-1"] != nil || refusal != nil && inventory.uid(web) != "" {
			t.Errorf("with refusal %v web was written again: %v", refusal, inventory.saved)
		}
		if wrote := inventory.saves > saves; wrote != (refusal != nil) {
			t.Errorf("with refusal %v the rest was written again: %v", refusal, wrote)
		}
	}
}

type slowDisk struct {
	disk
	meanwhile func()
}

func (d *slowDisk) Save(changed map[string]map[object.ID]*Entry) error {
	d.meanwhile()
	return d.disk.Save(changed)
}

// Close writes what is left, and says what could not be.
func TestInventoryWriterAtTheEnd(t *testing.T) {
	inventory := &disk{refusal: errors.New("no space left")}
	i := heldWriter(t, inventory)
	i.put("eu-1", idOf(web), &Entry{UID: "1"})
	if err := i.d.Close(context.Background()); !errors.Is(err, inventory.refusal) {
		t.Errorf("error %v", err)
	}

	inventory.refusal = nil
	if err := i.d.Close(context.Background()); err != nil || inventory.uid(web) != "1" {
		t.Errorf("error %v, web is %q", err, inventory.uid(web))
	}
}
