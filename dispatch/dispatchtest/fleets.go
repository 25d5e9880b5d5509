// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// sky is another fleet than Sea.
var sky = object.Marker{Name: "sky"}

// revision is the commit that Marked names.
const revision = "0000000000000000000000000000000000000000"

// marker is the fleet's, Sea's without one.
func marker(by *object.Marker) object.Marker {
	if by == nil {
		return Sea
	}
	return *by
}

// fleet makes the world's dispatcher that of a fleet, from the next level on.
func (w *world) fleet(by object.Marker) { w.by = &by }

// another is another fleet on the same member, with a process and an inventory of
// its own.
func (w *world) another(by object.Marker) *world {
	w.t.Helper()
	other := *w
	other.d, other.works, other.inventory, other.by = nil, nil, &Inventory{}, &by
	other.restart()
	w.t.Cleanup(other.close)
	return &other
}

func (w *filesWorld) fleet(by object.Marker) { w.by = &by }

func (w *filesWorld) another(by object.Marker) *filesWorld {
	w.t.Helper()
	other := *w
	other.d, other.inventory, other.by = nil, &Inventory{}, &by
	other.restart()
	w.t.Cleanup(other.close)
	return &other
}

// belongs expects the outcome of an object that is another fleet's.
func belongs(o dispatch.Outcome, fleet string) string {
	if !errors.Is(o.Err, member.Foreign) || !o.Final || !strings.Contains(o.Err.Error(), `belongs to the fleet "`+fleet+`": set conflictResolution: Overwrite to take it over`) {
		return "outcome " + o.Err.Error() + ", want a final Foreign that names " + fleet
	}
	return ""
}

func (w *world) belongs(o dispatch.Outcome, fleet string) {
	w.t.Helper()
	if problem := belongs(o, fleet); problem != "" {
		w.t.Error(problem)
	}
}

func (w *world) name(o map[string]any, want string) {
	w.t.Helper()
	if got := w.live(o).GetLabels()[object.LabelFleet]; got != want {
		w.t.Errorf("it bears the name %q, want %q", got, want)
	}
}

// Trial 9: the second neither takes the first's object nor deletes or releases it.
func fleetsAbort(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.name(o, "sea")
	before := w.live(o)

	second := w.another(sky)
	theirs := w.object(strings.Replace(settings, "red", "blue", 1))
	second.belongs(second.only(second.want(apply(theirs))), "sea")
	second.must(remove(theirs))
	second.must(let(theirs))
	second.belongs(second.only(second.want(apply(theirs))), "sea")
	second.inventory = &Inventory{} // and not without its record either
	second.restart()
	second.must(remove(theirs))
	second.belongs(second.only(second.want(apply(theirs))), "sea")
	w.same("object", w.live(o).Object, before.Object)
}

// Decision 33: under Overwrite it is the other's from then on, and the first gives
// up what it has lost without a trace.
func fleetsOverwrite(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))

	second := w.another(sky)
	theirs := w.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NS}, data: {colour: blue}}`)
	second.must(overwrite(theirs))
	w.name(o, "sky")
	w.same("data", field(w.live(o), "data"), theirs["data"])

	before := w.live(o)
	for _, leave := range []Work{remove(o), let(o)} {
		inventory := w.inventory.Entries(cluster)
		w.must(leave)
		w.same("object", w.live(o).Object, before.Object)
		w.same("record", len(w.inventory.Entries(cluster)), 0)

		restored := map[object.ID]*dispatch.Entry{}
		for id, e := range inventory {
			restored[id] = &e
		}
		if err := w.inventory.Save(map[string]map[object.ID]*dispatch.Entry{cluster: restored}); err != nil {
			w.t.Fatal(err)
		}
		w.restart()
	}

	second.must(remove(theirs))
	second.gone(theirs)
}

// Who looks hears of it, and stops.
func fleetsWatched(w *world) {
	w.namespace()
	w.watch = true
	w.restart()
	o := w.object(settings)
	w.must(apply(o))

	second := w.another(sky)
	theirs := w.object(strings.Replace(settings, "red", "blue", 1))
	second.must(overwrite(theirs))
	w.becomes("the first reports it", func() bool {
		return slices.ContainsFunc(w.d.Outcomes(), func(o dispatch.Outcome) bool { return errors.Is(o.Err, member.Foreign) })
	})
	w.belongs(w.only(w.d.Outcomes()), "sky")
	w.quiet()
	w.name(o, "sky")
	w.same("data", field(w.live(o), "data"), theirs["data"])

	w.must(remove(o))
	w.quiet()
	w.same("data", field(w.live(o), "data"), theirs["data"])
}

// A rename by itself sends nothing; the next apply of an object brings the name.
func fleetRenamed(w *world) {
	w.namespace()
	o, idle := w.object(settings), w.object(strings.Replace(settings, "name: settings", "name: idle", 1))
	w.must(apply(o), apply(idle))
	w.counter.take()

	w.fleet(object.Marker{Name: "ocean", Former: []string{"sea"}})
	w.must(apply(o), apply(idle))
	w.restart()
	w.must(apply(o), apply(idle))
	w.sent("nothing")
	w.name(o, "sea")

	w.must(apply(w.object(strings.Replace(settings, "red", "blue", 1))))
	w.name(o, "ocean")
	w.name(idle, "sea")
	w.must(remove(idle))
	w.gone(idle)
}

// Without an inventory the commit on an object says that its name is a former one
// of ours, and not that of another fleet which is called so now.
func fleetRenamedAndLost(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.inventory = &Inventory{}
	w.restart()

	w.fleet(object.Marker{Name: "ocean", Former: []string{"sea"}})
	w.belongs(w.only(w.want(apply(o))), "sea")
	w.fleet(object.Marker{Name: "ocean", Former: []string{"sea"}, Has: func(commit string) bool { return commit == revision }})
	w.counter.take()
	w.must(apply(o))
	w.writes("nothing")
	w.must(remove(o))
	w.gone(o)
}

// Objects of older versions bear no name.
func fleetUnnamed(w *world) {
	w.namespace()
	o, idle := w.object(settings), w.object(strings.Replace(settings, "name: settings", "name: idle", 1))
	w.fleet(object.Marker{})
	w.must(apply(o), apply(idle))
	w.name(o, "")

	// The inventory knows them.
	w.fleet(Sea)
	w.counter.take()
	w.must(apply(o), apply(idle))
	w.sent("nothing")
	w.must(apply(w.object(strings.Replace(settings, "red", "blue", 1))))
	w.name(o, "sea")

	// Another fleet does not, nor does the commit say that they are its own.
	second := w.another(sky)
	left := second.only(second.want(apply(idle)))
	if !errors.Is(left.Err, member.Foreign) || !strings.Contains(left.Err.Error(), "belongs to another fleet") {
		w.t.Errorf("outcome %v", left.Err)
	}
	second.must(remove(idle))
	w.name(idle, "")

	// Without an inventory the commit does.
	w.inventory = &Inventory{}
	w.restart()
	w.fleet(object.Marker{Name: "sea", Has: func(commit string) bool { return commit == revision }})
	w.counter.take()
	w.must(apply(idle))
	w.writes("nothing")
	w.must(remove(idle))
	w.gone(idle)
}

// A hand that changes or takes off nothing but the name.
func fleetNameEdited(w *world) {
	w.namespace()
	w.watch = true
	w.restart()
	o := w.object(settings)
	w.must(apply(o))
	w.edit("kubectl-label", o, func(u *unstructured.Unstructured) {
		labels := u.GetLabels()
		delete(labels, object.LabelFleet)
		u.SetLabels(labels)
	})
	w.becomes("it bears our name again", func() bool { return w.live(o).GetLabels()[object.LabelFleet] == "sea" })
}

// The namespace of one fleet is there for the other, and stays the first's.
func fleetsNamespace(w *world) {
	w.must(apply(w.object(settings)))
	ns := Object("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.ns + "}}")
	w.name(ns, "sea")

	second := w.another(sky)
	o := w.object(strings.Replace(settings, "name: settings", "name: other", 1))
	second.must(apply(o))
	second.name(o, "sky")
	w.name(ns, "sea")
	second.belongs(second.only(second.want(apply(ns))), "sea")
	second.must(remove(ns))
	w.name(ns, "sea")
}

func (w *filesWorld) belongs(left []dispatch.Outcome, fleet string) {
	w.t.Helper()
	if len(left) != 1 {
		w.t.Fatalf("%d outcomes are left, want 1: %v", len(left), left)
	}
	if problem := belongs(left[0], fleet); problem != "" {
		w.t.Error(problem)
	}
}

// Two fleets that publish to one branch or directory.
func filesFleets(w *filesWorld) {
	w.must(apply(note("a", "red")))
	w.has(noteFile, "fairlead.dev/fleet: sea")
	w.has(homeFile, "fairlead.dev/fleet: sea")
	before := w.Read()

	second := w.another(sky)
	second.belongs(second.want(apply(note("a", "blue"))), "sea")
	second.must(remove(note("a", "blue")))
	second.must(let(note("a", "blue")))
	w.t.Log(second.Read())
	if got := w.Read(); got[noteFile] != before[noteFile] {
		w.t.Errorf("the file is\n%s", got[noteFile])
	}

	second.must(overwrite(note("a", "blue")))
	w.has(noteFile, "fairlead.dev/fleet: sky")
	w.belongs(w.want(apply(note("a", "green"))), "sky")
	w.has(noteFile, "v: blue")
	for _, leave := range []Work{remove(note("a", "green")), let(note("a", "green"))} {
		w.must(leave)
		w.has(noteFile, "fairlead.dev/fleet: sky")
	}
	second.must(remove(note("a", "blue")))
	w.names(homeFile)
}

func filesFleetRenamed(w *filesWorld) {
	w.must(apply(note("a", "red")), apply(note("b", "red")))
	before := w.Writes()
	w.fleet(object.Marker{Name: "ocean", Former: []string{"sea"}})
	w.must(apply(note("a", "red")), apply(note("b", "red")))
	w.restart()
	w.must(apply(note("a", "red")), apply(note("b", "red")))
	w.wrote(before, 0)
	w.must(apply(note("a", "blue")), apply(note("b", "red")))
	w.has(noteFile, "fairlead.dev/fleet: ocean")
	w.must(remove(note("b", "red")), apply(note("a", "blue")))
	w.names(homeFile, noteFile)
}

func filesFleetUnnamed(w *filesWorld) {
	w.fleet(object.Marker{})
	w.must(apply(note("a", "red")), apply(note("b", "red")))
	w.inventory = &Inventory{}
	w.restart()

	w.fleet(object.Marker{Name: "sea", Has: func(commit string) bool { return commit == revision }})
	before := w.Writes()
	w.must(apply(note("a", "red")), apply(note("b", "red")))
	w.wrote(before, 0)
	w.must(apply(note("a", "blue")), remove(note("b", "red")))
	w.names(homeFile, noteFile)
	w.has(noteFile, "fairlead.dev/fleet: sea")
}
