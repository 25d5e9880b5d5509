// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/dryrun"
	"github.com/fairlead/fairlead/object"
)

// Run tells every story on the server that config reaches as its
// administrator. They share it.
func Run(t *testing.T, open func(t *testing.T) *rest.Config) {
	RunWrapped(t, open, func(m member.Member) member.Member { return m })
}

// RunWrapped is Run with something around each member.
func RunWrapped(t *testing.T, open func(t *testing.T) *rest.Config, wrap func(member.Member) member.Member) {
	cfg := open(t)
	for _, story := range []struct {
		name string
		tell func(*world)
	}{
		{"create, update, nothing", createUpdateNothing},
		{"a field that left the template leaves the object", removedField},
		{"lists are merged by key", listsByKey},
		{"a hand edit is overruled", handEdit},                                         // digest §13, case 73
		{"what others added stays", othersStay},                                        // digest §13, case 74
		{"labels of others stay, and those that left the template go", labelsOfOthers}, // digest §13, case 74
		{"an object that was removed by hand is made again", removedByHand},            // digest §13, case 73
		{"an autoscaler's replicas stay", autoscaled},                                  // digest §13, case 73
		{"an autoscaler's replicas are overruled without the label", overruled},        // digest §13, case 73
		{"replicas that nobody sets are left to who scales", unsetReplicas},            // R09
		{"replicas that are retained later are never reset", retainedLater},
		{"overwrite keeps the replicas of what it adopts", overwriteRetains},
		{"a foreign object is reported", foreign}, // digest §13, case 65
		{"a foreign object that is identical is reported", foreignIdentical},
		{"a foreign object that comes in between is left as it was", foreignRace},
		{"overwrite adopts what kubectl create made", overwriteCreate}, // digest §13, cases 65 and 90
		{"overwrite adopts what kubectl apply made", overwriteApply},   // digest §13, case 65
		{"overwrite adopts what others apply on the server", overwriteServerSide},
		{"overwrite leaves finalizers alone", overwriteFinalizers},
		{"what Flux applied of ours is taken over", pulledBefore},
		{"a restored backup keeps what is not ours", restoredBackup},
		{"release leaves what others own", release},            // digest §13, cases 66 and 71
		{"release where we are the only manager", releaseOnly}, // digest §13, case 66
		{"released, then overwritten", releaseAndBack},
		{"what was left running is taken back", takenBack},                       // U15
		{"what took the place of what was left running is foreign", notLeft},     // U15
		{"what was left running and is kept by others is foreign", keptByOthers}, // U15
		{"delete, and again", deleted},
		{"an object of another UID is not deleted", otherUID},
		{"what was never ours is neither deleted nor released", neverOurs},
		{"what took the place of ours is neither deleted nor released", inItsPlace},         // T62
		{"what took the place of ours without our label is reported", unlabelledInItsPlace}, // T62
		{"what takes the place of ours keeps its marks", inItsPlaceRace},                    // T62
		{"what lost our label is deleted all the same", labelStripped},
		{"a release that fails is tried again", releaseLater},
		{"a release takes nobody else off", releaseRace},
		{"a removal that names no version", versionOnRecord},
		{"an object that was replaced is not updated", replaced},                      // T62
		{"an object whose deletion is stuck", stuck},                                  // T62
		{"an object that is deleted by others while it is updated", updateOfWhatGoes}, // T62
		{"an object whose deletion is stuck, with a lost inventory", stuckAndLost},    // T62, F33
		{"what cannot be read is not written", unread},
		{"an immutable field is reported, and nothing is made anew", immutable},              // T61
		{"protective marks turn a delete into a release", protected},                         // digest §13, case 75
		{"marks that protect from nothing", unprotected},                                     // digest §13, case 75
		{"a missing namespace is created once, from the fleet's document", missingNamespace}, // digest §13, case 86
		{"a missing namespace without a document", bareNamespace},
		{"a namespace that was meant and never placed stays for what is in it", namespaceMeant},
		{"a namespace that goes later", namespaceGoes},
		{"a namespace that goes with all that is in it", namespaceGoesWithAll},
		{"a namespace of ours is known to be there", ownNamespace}, // F22
		{"a definition and its resource at once", definitionFirst},
		{"a kind that is not served, then is", servedLater},
		{"a dry run sends nothing", dryRun},
		{"a lost inventory costs lists and no write", lostInventory},
		{"a lost acknowledgement costs no second write", lostAcknowledgement},
		{"a lost answer costs one repetition", lostAnswer},
		{"hold and leave send nothing", holdAndLeave},
		{"a template that the server refuses", invalid},
		{"a secret is never quoted", secret},
		{"the stringData of a secret is ours as its data", stringData},
		{"a member that must be known", onlyKnown},
		{"what people look at", looks},
		{"what was applied is no drift", compared},
		{"watched, an update is one request", watchedUpdates},
		{"watched, a hand edit is undone", watchedEdit},                               // digest §13, case 73; F41
		{"watched, what was deleted is made again", watchedDelete},                    // digest §13, case 73; F41
		{"watched, a Job that its TTL removed is not run again", watchedExpired},      // R16
		{"watched, a label that was stripped is put back", watchedLabel},              // F41, T59
		{"watched, a late write of ours is put right", watchedLate},                   // F11
		{"watched, what others write is left alone", watchedOthers},                   // T59
		{"watched, an autoscaler is left alone", watchedAutoscaler},                   // digest §13, case 73; T59
		{"watched, nothing is sent to what is held", watchedHeld},                     // T44
		{"watched, what changed while nobody looked is undone", watchedLater},         // F41
		{"watched, what changed is undone though the inventory is lost", watchedLost}, // F33, F41
		{"watched, what changed under a hold is undone after it though the inventory is lost", watchedHeldLost},
		{"watched, what was made again without our hearing of it is ours", watchedAgain},                 // F07
		{"what is wanted again during its deletion is on record before it is made", againDuringDeletion}, // F07
		{"watched, what flaps is given up", watchedFlapping},                                             // T60
		{"another fleet's object is reported and left alone", fleetsAbort},                               // decision 33, trial 9
		{"another fleet's object is taken over with overwrite, and is theirs", fleetsOverwrite},          // decision 33, trial 9
		{"watched, what another fleet took over is left to it", fleetsWatched},                           // decision 33, trial 9
		{"watched, a name that was stripped is put back", fleetNameEdited},                               // decision 33
		{"a fleet is renamed", fleetRenamed},                                                             // decision 33
		{"a fleet is renamed, with a lost inventory", fleetRenamedAndLost},                               // decision 33, F33
		{"objects of an older version have no name", fleetUnnamed},                                       // decision 33
		{"two fleets share a namespace", fleetsNamespace},                                                // decision 33, decision 28
	} {
		t.Run(strings.ReplaceAll(story.name, " ", "-"), func(t *testing.T) { story.tell(newWorld(t, cfg, wrap)) })
	}
}

const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: NS}
data: {colour: red, size: small}
`

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: example.com/web:1
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        ports: [{containerPort: 80, name: http}, {containerPort: 81, name: admin}]
      - name: sidecar
        image: example.com/sidecar:1
`

func apply(o map[string]any) Work     { return Work{Verb: dispatch.Apply, Object: o} }
func overwrite(o map[string]any) Work { return Work{Verb: dispatch.Apply, Object: o, Overwrite: true} }
func remove(o map[string]any) Work    { return Work{Verb: dispatch.Delete, Object: o} }
func let(o map[string]any) Work       { return Work{Verb: dispatch.Orphan, Object: o} }

func createUpdateNothing(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.sent("3 GET, 1 PATCH") // who it is, the marks, the namespaces; what was read at contact serves the create
	w.same("data", field(w.live(o), "data"), o["data"])
	w.same("label", w.live(o).GetLabels()[object.LabelManaged], "true")

	o = w.object(strings.Replace(settings, "red", "blue", 1))
	w.must(apply(o))
	w.sent("1 PATCH")
	w.same("data", field(w.live(o), "data"), o["data"])

	w.must(apply(o))
	w.sent("nothing")
	w.restart()
	w.must(apply(o))
	w.sent("nothing")

	second := w.object(strings.Replace(settings, "name: settings", "name: more", 1))
	w.must(apply(second))
	w.sent("3 GET, 1 PATCH") // the object's place, the namespaces of a new process
	third := w.object(strings.Replace(settings, "name: settings", "name: most", 1))
	w.must(apply(third))
	w.sent("1 GET, 1 PATCH")
}

func dryRun(w *world) {
	w.namespace()
	w.d.SetMember(cluster, dryrun.Wrap(w.member))
	o := w.object(settings)
	w.must(apply(o))
	if w.live(o) != nil {
		w.t.Error("it was applied")
	}
	w.same("inventory", len(w.inventory.Entries(cluster)), 0)
	w.sent("3 GET")
}

func holdAndLeave(w *world) {
	w.namespace()
	o := w.object(settings)
	w.must(apply(o))
	w.counter.take()
	other := w.object(strings.Replace(settings, "red", "blue", 1))
	w.must(Work{Verb: dispatch.Hold, Object: other})
	w.must(Work{Verb: dispatch.Leave, Object: other})
	w.sent("nothing")
	w.must(apply(other))
	w.sent("1 PATCH")
}

func invalid(w *world) {
	w.namespace()
	bad := w.object(web)
	_ = unstructured.SetNestedField(bad, "one", "spec", "unheardOf")
	ok := w.object(settings)
	outcome := w.only(w.want(apply(bad), apply(ok)))
	if !errors.Is(outcome.Err, member.Invalid) || !outcome.Final || outcome.ID != ID(bad) {
		w.t.Errorf("outcome %v, final %v", outcome.Err, outcome.Final)
	}
	prefix := "apply Deployment " + w.ns + "/web on eu-1: "
	if !strings.HasPrefix(outcome.Err.Error(), prefix) || !strings.Contains(outcome.Err.Error(), "unheardOf") {
		w.t.Errorf("it reads %q", outcome.Err)
	}
	w.must(apply(w.object(web)))

}

// It is neither deleted nor made again, and what to do is said.
func immutable(w *world) {
	w.namespace()
	o := w.object(web)
	w.must(apply(o))
	before := w.live(o)
	w.counter.take()
	changed := w.object(strings.ReplaceAll(web, "app: web", "app: other"))
	ok := w.object(settings)
	outcome := w.only(w.want(apply(changed), apply(ok)))
	if !errors.Is(outcome.Err, member.Invalid) || !outcome.Final {
		w.t.Errorf("outcome %v, final %v", outcome.Err, outcome.Final)
	}
	if !strings.HasSuffix(outcome.Err.Error(), "; to change it anyway, give the object another name, or remove it and add it again once it is gone") {
		w.t.Errorf("it reads %q", outcome.Err)
	}
	w.writes("2 PATCH")
	w.same("object", w.live(o).Object, before.Object)
	if w.live(ok) == nil {
		w.t.Error("the other was kept waiting")
	}
}

func onlyKnown(w *world) {
	w.namespace()
	o := w.object(settings)
	fleet := Fleet(Works{cluster: {apply(o)}})
	held := func() {
		w.t.Helper()
		if err := w.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{OnlyKnown: true}); err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if left := w.d.Wait(ctx); len(left) != 0 {
			w.t.Errorf("left: %v", left[0].Err)
		}
	}
	held()
	if w.live(o) != nil {
		w.t.Fatal("a member without our marks got something")
	}
	w.same("inventory", len(w.inventory.Entries(cluster)), 0)
	w.must(apply(o))
	more := w.object(strings.Replace(settings, "name: settings", "name: more", 1))
	fleet = Fleet(Works{cluster: {apply(o), apply(more)}})
	w.inventory = &Inventory{}
	w.restart()
	w.counter.hook(nil, func(r *http.Request) {
		if _, onRecord := w.entry(ID(more)); r.Method == http.MethodPatch && !onRecord {
			w.t.Error("it was made before there was a record of it")
		}
	})
	held()
	w.counter.hook(nil, nil)
	if w.live(more) == nil {
		w.t.Error("a member with our marks got nothing")
	}
}

func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not in time: %s", what)
		}
	}
}
