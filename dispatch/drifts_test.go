// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
)

// An object that flaps is restored five times within ten minutes, and no more.
func TestDriftsFlapping(t *testing.T) {
	minute := func(m ...float64) (at []time.Duration) {
		for _, m := range m {
			at = append(at, time.Duration(m*float64(time.Minute)))
		}
		return at
	}

	for _, test := range []struct {
		name string
		at   []time.Duration // it is found changed
		want []bool          // it may be restored
	}{
		{"five times at once", minute(0, 0, 0, 0, 0, 0), []bool{true, true, true, true, true, false}},
		{"then it is left alone", minute(0, 0, 0, 0, 0, 1, 5), []bool{true, true, true, true, true, false, false}},
		{"the window ends with its last moment", minute(0, 0, 0, 0, 0, 10), []bool{true, true, true, true, true, false}},
		{"and then begins anew", minute(0, 0, 0, 0, 0, 10.01), []bool{true, true, true, true, true, true}},
		{"what flaps slowly is restored for ever", minute(0, 3, 6, 9, 12, 15, 18, 21, 24), slices.Repeat([]bool{true}, 9)},
		{"the window slides", minute(0, 8, 8, 8, 8, 11, 11, 19), []bool{true, true, true, true, true, true, false, true}},
		{"what was not restored does not count", minute(0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 11), []bool{true, true, true, true, true, false, false, false, false, false, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDrifts()
			var got []bool
			for _, at := range test.at {
				got = append(got, d.mayRestore(idOf(web), noon.Add(at)))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %v\nwant %v", got, test.want)
			}
			if !d.mayRestore(idOf(settings), noon) {
				t.Error("another object may not be restored")
			}
		})
	}
}

// What is known of an object, after what happened to it.
func TestDrifts(t *testing.T) {
	type seen struct {
		Has        bool   // it is not as it was acknowledged
		How        string // it differs
		Remembers  bool   // more is known than what the member holds
		MayRestore bool   // once more
	}
	id := idOf(web)
	flap := func(d *drifts) {
		for range flapLimit {
			d.mayRestore(id, noon)
		}
	}

	for _, test := range []struct {
		name  string
		until func(d *drifts)
		want  seen
	}{
		{"nothing is known at first", func(*drifts) {}, seen{MayRestore: true}},
		{
			"it was changed",
			func(d *drifts) { d.note(id, "was changed") },
			seen{Has: true, How: "was changed", MayRestore: true},
		},
		{
			"what happened last counts",
			func(d *drifts) { d.note(id, "was changed"); d.note(id, "was deleted") },
			seen{Has: true, How: "was deleted", MayRestore: true},
		},
		{
			"once it is as acknowledged, only how often it was restored is known",
			func(d *drifts) { d.note(id, "was changed"); flap(d); d.settled(id) },
			seen{Remembers: true},
		},
		{
			"which does not matter when something else is wanted",
			func(d *drifts) { d.note(id, "was changed"); flap(d); d.changed(id) },
			seen{Has: true, How: "was changed", MayRestore: true},
		},
		{
			"of what is not ours any more nothing is known",
			func(d *drifts) { d.note(id, "was changed"); flap(d); d.forget(id) },
			seen{MayRestore: true},
		},
		{
			"what was told at the wrong time is remembered",
			func(d *drifts) { d.late[id] = member.WatchEvent{} },
			seen{Remembers: true, MayRestore: true},
		},
		{
			"until it is judged",
			func(d *drifts) { d.late[id] = member.WatchEvent{}; d.takeLate(id) },
			seen{MayRestore: true},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDrifts()
			test.until(&d)
			got := seen{Has: d.has(id), How: d.how[id], Remembers: d.remembers(id)}
			got.MayRestore = d.mayRestore(id, noon)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestDriftsTakeLate(t *testing.T) {
	d := newDrifts()
	id := idOf(web)
	if _, told := d.takeLate(id); told {
		t.Error("something was told")
	}

	d.late[id] = member.WatchEvent{Version: 6}
	d.late[id] = member.WatchEvent{Version: 7}
	if e, told := d.takeLate(id); !told || e.Version != 7 {
		t.Errorf("told %v, version %d; want the last that was told", told, e.Version)
	}
	if _, told := d.takeLate(id); told {
		t.Error("it was told twice")
	}
}
