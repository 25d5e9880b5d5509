// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/dryrun"
	"github.com/fairlead/fairlead/object"
)

// Files is a member as files that the cluster's own tools apply.
type Files struct {
	// Open is the way there of a process that begins.
	Open func() member.Member
	// Read is every file by its path, as those tools find it.
	Read func() map[string]string
	// Put is somebody else writing a file.
	Put func(path, content string)
	// Writes counts how often something was written.
	Writes func() int
}

// RunFiles tells the stories of a member that is files. Each has its own.
func RunFiles(t *testing.T, open func(t *testing.T) Files) {
	for _, story := range []struct {
		name string
		tell func(*filesWorld)
	}{
		{"create, update, nothing", filesCreateUpdateNothing},
		{"every name has a file of its own", filesNames},
		{"kinds that differ in case have files of their own", filesOfKindsAlike},            // A15
		{"marks of ours turn no delete into a release", filesKeptByUs},                      // A13
		{"marks of ours beside those of a template do not hide them", filesKeptByUsAndThem}, // A13
		{"a foreign file is reported", filesForeign},
		{"overwrite adopts", filesOverwrite},
		{"a release leaves the file, without our marks and with those that keep the object", filesRelease},
		{"a release changes nothing else", filesReleaseExactly},
		{"released, then wanted again", filesReleaseAndBack},
		{"delete, and again", filesDelete},
		{"protective marks turn a delete into a release", filesProtected}, // digest §13, case 75
		{"a file that is not ours any more is not deleted", filesTaken},
		{"what was never ours is neither deleted nor released", filesNeverOurs},
		{"what somebody put in the place of ours is neither deleted nor released", filesReplaced},
		{"what is no object any more is not deleted", filesBroken},
		{"hold and leave write nothing", filesHold},
		{"a dry run writes nothing", filesDryRun},
		{"a lost inventory writes nothing", filesLostInventory},
		{"a lost acknowledgement writes nothing", filesLostAcknowledgement},
		{"an autoscaler is not heard of", filesReplicas},
		{"what cannot be rendered holds up nothing else", filesUnrendered},
		{"what the tools would leave out is reported", filesLeftOut},
		{"a namespace goes along with what is in it", filesNamespace},                // digest §13, case 86
		{"a namespace goes along from the fleet's document", filesNamespaceDocument}, // digest §13, case 86
		{"a namespace of others, and those that are everywhere, are left alone", filesNotOurs},
		{"a namespace that was made on the way is placed, and is given up", filesNamespacePlaced},
		{"a namespace that was given up stays while something is in it", filesNamespaceGivenUp},
		{"a namespace that was given up with a lost inventory", filesNamespaceForgotten}, // F33
		{"a definition that was given up stays while something needs it", filesDefinition},
		{"two fleets, one place", filesFleets},                        // decision 33, trial 9
		{"a fleet is renamed", filesFleetRenamed},                     // decision 33
		{"files of an older version have no name", filesFleetUnnamed}, // decision 33
	} {
		t.Run(strings.ReplaceAll(story.name, " ", "-"), func(t *testing.T) {
			w := &filesWorld{t: t, Files: open(t), inventory: &Inventory{}}
			w.restart()
			t.Cleanup(w.close)
			story.tell(w)
		})
	}
}

type filesWorld struct {
	t *testing.T
	Files
	inventory *Inventory
	docs      []map[string]any // of namespaces
	by        *object.Marker   // the fleet; nil is Sea
	d         *dispatch.Dispatcher
}

func (w *filesWorld) restart() {
	w.close()
	w.d = dispatch.New(w.inventory, dispatch.Options{Backoff: dispatch.Backoff{Base: 20 * time.Millisecond, Max: 200 * time.Millisecond}})
	w.d.SetMember(cluster, w.Open())
}

func (w *filesWorld) close() {
	if w.d == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.d.Close(ctx); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// want makes works the level, waits and returns what is left.
func (w *filesWorld) want(works ...Work) []dispatch.Outcome {
	w.t.Helper()
	fleet := Fleet(Works{cluster: works}, w.docs...)
	fleet.By = marker(w.by)
	if err := w.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
		w.t.Fatalf("sync: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return w.d.Wait(ctx)
}

func (w *filesWorld) must(works ...Work) {
	w.t.Helper()
	for _, o := range w.want(works...) {
		w.t.Fatalf("left: %v", o.Err)
	}
}

// wrote expects how often something was written since the last time.
func (w *filesWorld) wrote(before, times int) {
	w.t.Helper()
	if got := w.Writes() - before; got != times {
		w.t.Errorf("written %d times, want %d", got, times)
	}
}

func (w *filesWorld) names(want ...string) {
	w.t.Helper()
	if got := slices.Sorted(maps.Keys(w.Read())); !slices.Equal(got, want) {
		w.t.Errorf("files %q, want %q", got, want)
	}
}

func (w *filesWorld) has(path, want string) {
	w.t.Helper()
	if got := w.Read()[path]; !strings.Contains(got, want) {
		w.t.Errorf("%s is\n%s\nwithout %s", path, got, want)
	}
}

func note(name, v string) map[string]any {
	return Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: shop}, data: {v: " + v + "}}")
}

const (
	noteFile = "shop/configmap_a.yaml"
	homeFile = "_cluster/namespace_shop.yaml" // of the namespace that it is in
)

func filesCreateUpdateNothing(w *filesWorld) {
	w.must(apply(note("a", "red")), apply(note("b", "red")))
	w.names(homeFile, noteFile, "shop/configmap_b.yaml")
	w.has(noteFile, "v: red")
	w.has(noteFile, `fairlead.dev/managed: "true"`)
	before := w.Writes()
	w.must(apply(note("a", "red")), apply(note("b", "red")))
	w.restart()
	w.must(apply(note("a", "red")), apply(note("b", "red")))
	w.wrote(before, 0)
	w.must(apply(note("a", "blue")), apply(note("b", "red")))
	w.has(noteFile, "v: blue")
	w.wrote(before, 1)
}

func filesNames(w *filesWorld) {
	long := strings.Repeat("x", 250)
	w.must(
		apply(Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'Shop:../read'}}")),
		apply(Object("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")),
		apply(Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: .git, namespace: .git}}")),
		apply(Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: "+long+"1, namespace: shop}}")),
		apply(Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: "+long+"2, namespace: shop}}")),
	)
	got := slices.Sorted(maps.Keys(w.Read()))
	if len(got) != 6 || got[0] != "%2Egit/configmap_%2Egit.yaml" || got[1] != "_cluster/clusterrole.rbac.authorization.k8s.io_%53hop%3A..%2Fread.yaml" ||
		got[2] != "_cluster/namespace_%2Egit.yaml" || got[3] != homeFile {
		w.t.Fatalf("files %q", got)
	}
	for _, path := range got {
		if name := path[strings.LastIndex(path, "/")+1:]; len(name) > 255 {
			w.t.Errorf("a name of %d bytes", len(name))
		}
	}
	w.inventory = &Inventory{}
	w.restart()
	before := w.Writes()
	w.must(apply(Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: "+long+"1, namespace: shop}}")),
		apply(Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: "+long+"2, namespace: shop}}")))
	w.wrote(before, 0)
}

func filesOfKindsAlike(w *filesWorld) {
	one := Object("{apiVersion: example.com/v1, kind: Foo, metadata: {name: a, namespace: shop}, spec: {v: one}}")
	two := Object("{apiVersion: example.com/v1, kind: FOO, metadata: {name: a, namespace: shop}, spec: {v: two}}")
	w.must(apply(one), apply(two))
	got := w.Read()
	texts := ""
	for _, path := range slices.Sorted(maps.Keys(got)) {
		texts += got[path]
	}
	if len(got) != 3 || !strings.Contains(texts, "kind: Foo\n") || !strings.Contains(texts, "kind: FOO\n") {
		w.t.Fatalf("files %q", got)
	}

	before := w.Writes()
	w.inventory = &Inventory{}
	w.restart()
	w.must(apply(one), apply(two))
	w.wrote(before, 0)
	w.must(remove(one), apply(two))
	if got = w.Read(); len(got) != 2 {
		w.t.Errorf("files %q", got)
	}
	for path, text := range got {
		if path != homeFile && !strings.Contains(text, "kind: FOO\n") {
			w.t.Errorf("%s is %s", path, text)
		}
	}
	w.must(apply(one), apply(two))
	w.must(remove(one), remove(two))
	w.names(homeFile)
}

// kept is an object with the marks of one that is preserved.
func kept(o map[string]any) map[string]any {
	object.KeepOurs(object.Section(object.Section(o, "metadata"), "annotations"))
	return o
}

// What we set ourselves is nobody's wish to keep the object: that the copy is not
// preserved any more and that it is not wanted any more may come at once.
func filesKeptByUs(w *filesWorld) {
	w.must(apply(kept(note("a", "red"))))
	w.has(noteFile, "kustomize.toolkit.fluxcd.io/prune: disabled")
	w.must(remove(note("a", "red")))
	w.names(homeFile)

	w.must(apply(kept(note("a", "red"))))
	w.must(apply(note("a", "red")))
	w.must(remove(note("a", "red")))
	w.names(homeFile)
}

func filesKeptByUsAndThem(w *filesWorld) {
	o := Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}}")
	w.must(apply(kept(o)))
	w.must(remove(o))
	w.names(homeFile, noteFile)
	if strings.Contains(w.Read()[noteFile], "fairlead.dev") {
		w.t.Error("our marks are still there")
	}
}

func filesForeign(w *filesWorld) {
	const theirs = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n"
	w.Put(noteFile, theirs)
	w.Put("shop/configmap_b.yaml", "half: [")
	left := w.want(apply(note("a", "red")), apply(note("b", "red")), apply(note("c", "red")))
	if len(left) != 2 || !left[0].Final || !errors.Is(left[0].Err, member.Foreign) || !errors.Is(left[1].Err, member.Foreign) {
		w.t.Fatalf("left: %v", left)
	}
	if got := w.Read(); got[noteFile] != theirs || got["shop/configmap_b.yaml"] != "half: [" {
		w.t.Errorf("files %q", got)
	}
	w.has("shop/configmap_c.yaml", "v: red")
}

func filesOverwrite(w *filesWorld) {
	w.Put(noteFile, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: {theirs: '1'}\n")
	w.Put("shop/configmap_b.yaml", "half: [")
	w.must(overwrite(note("a", "red")), overwrite(note("b", "red")))
	w.has(noteFile, "v: red")
	w.has("shop/configmap_b.yaml", "v: red")
	if strings.Contains(w.Read()[noteFile], "theirs") {
		w.t.Error("it is not as the template says")
	}
}

func filesRelease(w *filesWorld) {
	w.must(apply(note("a", "red")))
	before := w.Writes()
	w.must(let(note("a", "blue"))) // what was held back is not sent
	w.wrote(before, 1)
	if got, want := w.Read()[noteFile], `apiVersion: v1
data:
  v: red
kind: ConfigMap
metadata:
  annotations:
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
    kustomize.toolkit.fluxcd.io/prune: disabled
  name: a
  namespace: shop
`; got != want {
		w.t.Errorf("the file is\n%s\nwant\n%s", got, want)
	}
	if len(w.inventory.Entries(cluster)) != 0 {
		w.t.Error("it is still in the inventory")
	}
	w.must(let(note("a", "blue")))
	w.restart()
	w.must(let(note("a", "blue")))
	w.wrote(before, 1)
}

func filesReleaseExactly(w *filesWorld) {
	o := Object(`
apiVersion: example.com/v1
kind: Thing
metadata:
  name: a
  namespace: shop
  labels: {app: web}
  annotations: {argocd.argoproj.io/sync-options: "ServerSideApply=true,Prune=true", note: "1"}
spec: {large: 9007199254740993, ratio: 0.25, mode: 0o17, on: "yes", "null": null, empty: {}, list: [], text: "a\nb\n"}`)
	w.must(apply(o))
	kept := w.Read()["shop/thing.example.com_a.yaml"]
	w.must(let(o))
	for _, mark := range []string{"    fairlead.dev/binding: test\n", "    fairlead.dev/fleet: sea\n", "    fairlead.dev/managed: \"true\"\n", "    fairlead.dev/revision: \"0000000000000000000000000000000000000000\"\n",
		"    fairlead.dev/digest: " + Digest(o).String() + "\n"} {
		if !strings.Contains(kept, mark) {
			w.t.Fatalf("no %q in\n%s", mark, kept)
		}
		kept = strings.Replace(kept, mark, "", 1)
	}
	kept = strings.Replace(kept, "ServerSideApply=true,Prune=true", "Prune=false,Delete=false,ServerSideApply=true", 1)
	kept = strings.Replace(kept, "    note:", "    kustomize.toolkit.fluxcd.io/prune: disabled\n    note:", 1)
	if got := w.Read()["shop/thing.example.com_a.yaml"]; got != kept {
		w.t.Errorf("the file is\n%s\nwant\n%s", got, kept)
	}
}

func filesReleaseAndBack(w *filesWorld) {
	w.must(apply(note("a", "red")))
	w.must(let(note("a", "red")))
	left := w.want(apply(note("a", "red")))
	if len(left) != 1 || !errors.Is(left[0].Err, member.Foreign) {
		w.t.Fatalf("left: %v", left)
	}
	w.must(overwrite(note("a", "red")))
	w.has(noteFile, "fairlead.dev/managed")
	if strings.Contains(w.Read()[noteFile], "prune") {
		w.t.Error("the marks that keep it are still there")
	}
}

func filesDelete(w *filesWorld) {
	w.must(apply(note("a", "red")), apply(note("b", "red")))
	w.must(remove(note("a", "red")), apply(note("b", "red")))
	w.names(homeFile, "shop/configmap_b.yaml")
	before := w.Writes()
	w.must(remove(note("a", "red")), apply(note("b", "red")))
	w.restart()
	w.must(remove(note("a", "red")), apply(note("b", "red")))
	w.wrote(before, 0)
	w.must(remove(note("b", "red")))
	w.names(homeFile)
	w.must(apply(note("b", "red")))
	w.names(homeFile, "shop/configmap_b.yaml")
}

func filesProtected(w *filesWorld) {
	o := Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, annotations: {helm.sh/resource-policy: keep}}}")
	w.must(apply(o))
	w.must(remove(o))
	w.has(noteFile, "kustomize.toolkit.fluxcd.io/prune: disabled")
	if strings.Contains(w.Read()[noteFile], "fairlead.dev") {
		w.t.Error("our marks are still there")
	}
	if outcomes := w.d.Outcomes(); len(outcomes) != 1 || !strings.Contains(outcomes[0].Note, "helm.sh/resource-policy") {
		w.t.Errorf("outcomes %v", outcomes)
	}
}

func filesTaken(w *filesWorld) {
	w.must(apply(note("a", "red")))
	w.inventory = &Inventory{}
	w.Put(noteFile, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n")
	w.restart()
	w.must(remove(note("a", "red")))
	w.names(homeFile, noteFile)
}

// They were there before, and one of them is no object.
func filesNeverOurs(w *filesWorld) {
	const theirs = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n"
	w.Put(noteFile, theirs)
	w.Put("shop/configmap_b.yaml", "half: [")
	for _, leave := range []func(map[string]any) Work{remove, let} {
		if left := w.want(apply(note("a", "red")), apply(note("b", "red"))); len(left) != 2 {
			w.t.Fatalf("left: %v", left)
		}
		w.must(leave(note("a", "red")), leave(note("b", "red")))
		if got := w.Read(); got[noteFile] != theirs || got["shop/configmap_b.yaml"] != "half: [" {
			w.t.Errorf("files %q", got)
		}
		if n := len(w.inventory.Entries(cluster)); n != 0 {
			w.t.Errorf("the inventory has %d entries", n)
		}
	}
}

// Our marks are gone, and with them our say.
func filesReplaced(w *filesWorld) {
	for name, leave := range map[string]func(map[string]any) Work{"a": remove, "b": let} {
		file := "shop/configmap_" + name + ".yaml"
		theirs := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\n"
		w.must(apply(note(name, "red")))
		w.Put(file, theirs)
		w.must(leave(note(name, "red")))
		if got := w.Read()[file]; got != theirs {
			w.t.Errorf("the file is %q", got)
		}
		if n := len(w.inventory.Entries(cluster)); n != 0 {
			w.t.Errorf("the inventory has %d entries", n)
		}
	}
}

// Nobody knows what it holds: a directory leaves it, a branch asks for a hand.
func filesBroken(w *filesWorld) {
	w.must(apply(note("a", "red")))
	theirs := w.Read()[noteFile] + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more, namespace: shop}\n"
	w.Put(noteFile, theirs)
	for _, o := range w.want(remove(note("a", "red"))) {
		if !errors.Is(o.Err, member.Invalid) || !strings.Contains(o.Err.Error(), "is no longer a single object: fix it or remove it") {
			w.t.Errorf("left: %v", o.Err)
		}
	}
	if got := w.Read()[noteFile]; got != theirs {
		w.t.Errorf("the file is %q", got)
	}
}

func filesHold(w *filesWorld) {
	w.must(apply(note("a", "red")))
	before := w.Writes()
	w.must(Work{Verb: dispatch.Hold, Object: note("a", "blue")}, Work{Verb: dispatch.Hold, Object: note("b", "blue")})
	w.must(Work{Verb: dispatch.Leave, Object: note("a", "blue")})
	w.wrote(before, 0)
	w.has(noteFile, "v: red")
}

func filesDryRun(w *filesWorld) {
	w.must(apply(note("a", "red")))
	before := w.Writes()
	w.d.SetMember(cluster, dryrun.Wrap(w.Open()))
	w.must(apply(note("a", "blue")), apply(note("b", "blue")))
	w.must(remove(note("a", "red")))
	w.wrote(before, 0)
	w.d.SetMember(cluster, w.Open())
	w.must(apply(note("a", "blue")), apply(note("b", "blue")))
	w.has(noteFile, "v: blue")
}

func filesLostInventory(w *filesWorld) {
	role := Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}}")
	w.must(apply(note("a", "red")), apply(note("b", "red")), apply(role))
	before := w.Writes()
	w.inventory = &Inventory{}
	w.restart()
	w.must(apply(note("a", "red")), apply(note("b", "red")), apply(role))
	w.wrote(before, 0)
	w.must(apply(note("a", "blue")), remove(note("b", "red")), apply(role))
	w.names("_cluster/clusterrole.rbac.authorization.k8s.io_reader.yaml", homeFile, noteFile)
}

func filesLostAcknowledgement(w *filesWorld) {
	w.must(apply(note("a", "red")), apply(note("b", "red")))
	w.inventory.Refuse(errors.New("the disk is full"))
	_ = w.want(apply(note("a", "blue")), remove(note("b", "red")))
	before := w.Writes()
	w.inventory.Refuse(nil)
	w.d = nil // it is killed
	w.restart()
	w.must(apply(note("a", "blue")), remove(note("b", "red")))
	w.wrote(before, 0)
	w.names(homeFile, noteFile)
	w.has(noteFile, "v: blue")
}

func filesReplicas(w *filesWorld) {
	for _, replicas := range []string{"3", "5"} {
		web := Object("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: " + replicas + "}}")
		w.must(Work{Verb: dispatch.Apply, Object: web, RetainReplicas: true})
		w.has("shop/deployment.apps_web.yaml", "replicas: "+replicas+"\n")
	}
}

func filesUnrendered(w *filesWorld) {
	left := w.want(apply(note("a", "red")), Work{Verb: dispatch.Apply, Object: note("b", "red"), Err: errors.New("no such field")})
	if len(left) != 1 || !errors.Is(left[0].Err, member.Unrendered) {
		w.t.Fatalf("left: %v", left)
	}
	w.has(noteFile, "v: red")
}

func filesLeftOut(w *filesWorld) {
	local := func(v string) map[string]any {
		return Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: lab, annotations: {config.kubernetes.io/local-config: '" + v + "'}}}")
	}
	for _, v := range []string{"true", ""} {
		left := w.want(apply(local(v)), apply(note("a", "red")))
		if len(left) != 1 || !left[0].Final || !errors.Is(left[0].Err, member.Invalid) || !strings.Contains(left[0].Err.Error(), "config.kubernetes.io/local-config") {
			w.t.Fatalf("%q: left: %v", v, left)
		}
		w.names(homeFile, noteFile)
	}
	w.must(apply(local("false")), apply(note("a", "red")))
	w.names("_cluster/namespace_lab.yaml", homeFile, "lab/configmap_a.yaml", noteFile)
}

const madeHome = `apiVersion: v1
kind: Namespace
metadata:
  annotations:
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
    kustomize.toolkit.fluxcd.io/prune: disabled
    kustomize.toolkit.fluxcd.io/ssa: IfNotPresent
  labels:
    fairlead.dev/fleet: sea
    fairlead.dev/managed: "true"
  name: shop
`

func (w *filesWorld) is(path, want string) {
	w.t.Helper()
	if got := w.Read()[path]; got != want {
		w.t.Errorf("%s is\n%s\nwant\n%s", path, got, want)
	}
}

func filesNotOurs(w *filesWorld) {
	const theirs = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
	w.Put(homeFile, theirs)
	w.must(apply(note("a", "red")),
		apply(Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}")),
		apply(Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}")))
	w.names(homeFile, "default/configmap_a.yaml", "kube-system/configmap_a.yaml", noteFile)
	w.is(homeFile, theirs)
}
