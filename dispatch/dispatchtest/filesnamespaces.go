// SPDX-License-Identifier: Apache-2.0

package dispatchtest

import "strings"

// A tool applies nothing of a cluster of which one namespace is missing.
func filesNamespace(w *filesWorld) {
	before := w.Writes()
	w.must(apply(note("a", "red")), apply(note("b", "red")))
	w.is(homeFile, madeHome)
	w.wrote(before, 1)
	// It is nobody's, so it stays when what needed it goes, and is not made again
	// for what comes.
	w.must(remove(note("a", "red")), remove(note("b", "red")))
	w.names(homeFile)
	w.wrote(before, 2)
	w.must(apply(note("a", "blue")))
	w.names(homeFile, noteFile)
	w.is(homeFile, madeHome)
	w.wrote(before, 3)
}

func filesNamespaceDocument(w *filesWorld) {
	w.docs = []map[string]any{Object("{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: shop}, annotations: {argocd.argoproj.io/sync-options: ServerSideApply=true}}}")}
	w.must(apply(note("a", "red")))
	w.is(homeFile, `apiVersion: v1
kind: Namespace
metadata:
  annotations:
    argocd.argoproj.io/sync-options: Prune=false,Delete=false,ServerSideApply=true
    fairlead.dev/binding: test
    fairlead.dev/revision: "0000000000000000000000000000000000000000"
    kustomize.toolkit.fluxcd.io/prune: disabled
    kustomize.toolkit.fluxcd.io/ssa: IfNotPresent
  labels:
    fairlead.dev/fleet: sea
    fairlead.dev/managed: "true"
    team: shop
  name: shop
`)
}

func filesNamespacePlaced(w *filesWorld) {
	w.must(apply(note("a", "red")))
	home := Object("{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: shop}}}")
	w.must(apply(note("a", "red")), apply(home))
	w.has(homeFile, "team: shop")
	w.has(homeFile, "fairlead.dev/digest: "+Digest(home).String())
	if strings.Contains(w.Read()[homeFile], "toolkit") {
		w.t.Errorf("it is applied like one that nobody placed:\n%s", w.Read()[homeFile])
	}
	w.must(remove(note("a", "red")), remove(home))
	w.names()
}

// Without the namespace the tool would apply nothing any more, and it would
// have deleted what is still wanted.
func filesNamespaceGivenUp(w *filesWorld) {
	home := Object("{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: shop}}}")
	const staying = `apiVersion: v1
kind: Namespace
metadata:
  annotations:
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
    fairlead.dev/binding: test
    fairlead.dev/revision: "0000000000000000000000000000000000000000"
    kustomize.toolkit.fluxcd.io/prune: disabled
  labels:
    fairlead.dev/fleet: sea
    fairlead.dev/managed: "true"
    team: shop
  name: shop
`
	w.must(apply(home), apply(note("a", "red")))
	before := w.Writes()
	w.must(remove(home), apply(note("a", "red")))
	w.is(homeFile, staying)
	w.wrote(before, 1)
	if len(w.inventory.Entries(cluster)) != 1 {
		w.t.Error("it is still in the inventory")
	}
	w.must(remove(home), apply(note("a", "blue")))
	w.is(homeFile, staying)
	w.wrote(before, 2)

	// What was let go, and what others put there, are something, too.
	w.must(apply(home), apply(note("a", "blue")))
	w.must(remove(home), let(note("a", "blue")))
	w.is(homeFile, staying)
	lab := Object("{apiVersion: v1, kind: Namespace, metadata: {name: lab}}")
	w.must(apply(lab))
	w.Put("lab/theirs.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: lab}\n")
	w.must(remove(lab))
	w.has("_cluster/namespace_lab.yaml", "kustomize.toolkit.fluxcd.io/prune: disabled")
}

// The namespace was given up, and was made anew for what came later.
func filesNamespaceForgotten(w *filesWorld) {
	home := Object("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	w.must(apply(home))
	w.must(remove(home))
	w.names()
	w.must(remove(home), apply(note("a", "red")))
	w.is(homeFile, madeHome)
	before := w.Writes()
	w.inventory = &Inventory{}
	w.restart()
	w.must(remove(home), apply(note("a", "red")))
	w.is(homeFile, madeHome)
	w.wrote(before, 0)
}

// What was let go keeps its file, and a tool would apply nothing any more if it
// did not know the kind.
func filesDefinition(w *filesWorld) {
	of := func(kind string) map[string]any {
		return Object("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: " + strings.ToLower(kind) + "s.example.com}, spec: {group: example.com, names: {kind: " + kind + "}}}")
	}
	one := func(kind string) map[string]any {
		return Object("{apiVersion: example.com/v1, kind: " + kind + ", metadata: {name: a, namespace: shop}}")
	}
	ship, boat := of("Ship"), of("Boat")
	w.must(apply(ship), apply(boat), apply(one("Ship")), apply(one("Boat")))
	before := w.Writes()
	w.must(remove(ship), remove(boat), let(one("Ship")), remove(one("Boat")))
	w.wrote(before, 1)
	const file = "_cluster/customresourcedefinition.apiextensions.k8s.io_ships.example.com.yaml"
	w.names(file, homeFile, "shop/ship.example.com_a.yaml")
	w.has(file, "kustomize.toolkit.fluxcd.io/prune: disabled")

	// It is still ours, so that it can come back.
	w.inventory = &Inventory{}
	w.restart()
	w.must(remove(ship))
	w.wrote(before, 1)
	w.must(apply(ship))
	w.has(file, "fairlead.dev/digest")
	if strings.Contains(w.Read()[file], "toolkit") {
		w.t.Error("it is still not to be pruned")
	}
}
