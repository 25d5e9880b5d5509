// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/fairlead/fairlead/propagate"
)

// wildHistory edits everything that a fleet repository can say and the oracle
// knows: several edits a commit, or none.
type wildHistory struct {
	t    *rapid.T
	docs map[string]wildDoc // by kind, namespace and name
	// emptied are files that stay without a document in them.
	emptied   map[string]bool
	wrong     string // a file that refuses the next commit
	generated int
	toldTime  int64
	told      txtar.Archive
	last      map[string]string // the tree of the last commit that has one
}

// wildDoc is one document, as fields that are edited one by one.
type wildDoc struct {
	file              string
	kind, space, name string
	fields            map[string]string
}

// Names are few, so that things meet.
var (
	wildClusters  = []string{"m1", "m2", "m3"}
	wildTemplates = []wildDoc{
		{kind: "Deployment", space: "default", name: "web"},
		{kind: "Deployment", space: "default", name: "api"},
		{kind: "Deployment", space: "shop", name: "web"},
		{kind: "CloneSet", space: "default", name: "web"},
		{kind: "ConfigMap", space: "default", name: "a"},
		{kind: "ConfigMap", space: "default", name: "b"},
		{kind: "Widget", space: "default", name: "web"},
		{kind: "Namespace", name: "team"},
		{kind: "CustomResourceDefinition", name: "widgets.example.com"},
	}
	wildPolicies = []wildDoc{
		{kind: "PropagationPolicy", space: "default", name: "p"},
		{kind: "PropagationPolicy", space: "default", name: "q"},
		{kind: "PropagationPolicy", space: "shop", name: "p"},
		{kind: "ClusterPropagationPolicy", name: "x"},
		{kind: "ClusterPropagationPolicy", name: "z"},
	}
	wildOverrides = []wildDoc{
		{kind: "OverridePolicy", space: "default", name: "o"},
		{kind: "OverridePolicy", space: "default", name: "r"},
		{kind: "ClusterOverridePolicy", name: "o"},
	}
)

// wildValues are what a field can say. The first is the most usual.
var wildValues = map[string]map[string][]string{
	"Cluster": {
		"zone":   {"a", "b"},
		"taints": {"", "[{key: k, value: v, effect: NoSchedule}]", "[{key: k, effect: NoExecute}]"},
		"apis":   {"", "", "some"},
	},
	"Deployment": {
		"replicas": {"2", "", "0", "1", "3", "5"},
		"image":    {"1", "2", "3"},
		"tier":     {"one", "two", ""},
		"note":     {"", "1", "2"},
		"refs":     {"a", "", "b", "a b"},
		"requests": {"", "", "yes"},
		"others":   {"", "", "", "x"},
		"conflict": {"", "", "overwrite", "abort"},
		"ownhold":  {"", "", "", "m1", "m2,m3", "*"}, "ownpreserve": {"", "", "true"},
	},
	"CloneSet": {
		"replicas": {"2", "", "0", "1", "3", "5"}, "image": {"1", "2"}, "tier": {"one", "two", ""}, "refs": {"a", "", "b", "a b"}, "requests": {"", "", "yes"},
	},
	"ConfigMap": {
		"v": {"1", "2", "3"}, "tier": {"one", "two", ""}, "note": {"", "1", "2"}, "others": {"", "", "", "x"}, "conflict": {"", "", "overwrite", "abort"},
		"ownhold": {"", "", "", "m1", "m2,m3", "*"}, "ownpreserve": {"", "", "true"},
	},
	"Widget":                   {"v": {"1", "2", "3"}, "tier": {"one", "two", ""}, "api": {"v1", "v1beta1"}},
	"Namespace":                {"tier": {"one", "two"}},
	"CustomResourceDefinition": {"tier": {"one", "two"}},
	"PropagationPolicy": {
		"selectors": {
			"Deployment", "Deployment", "Deployment web", "Deployment one", "Deployment two", "Deployment api", "Deployment any", "Deployment note", "Deployment note,ConfigMap note",
			"Deployment web,ConfigMap a", "Deployment,ConfigMap", "ConfigMap one", "ConfigMap b", "Widget,Deployment two", "Widget v1beta1,ConfigMap gen-1",
			"CloneSet", "CloneSet one,Deployment",
		},
		"placement": {
			"", "{clusterAffinity: {clusterNames: [m1, m2]}}", "{clusterAffinity: {clusterNames: [m3]}}", "{clusterAffinity: {labelSelector: {matchLabels: {zone: a}}}}",
			"{clusterAffinity: {exclude: [m1]}, clusterTolerations: [{key: k, operator: Exists}]}",
			"{clusterAffinity: {labelSelector: {matchLabels: {zone: b}}}, clusterTolerations: [{key: k, value: v, effect: NoSchedule}]}",
			"{replicaScheduling: {replicaSchedulingType: Divided}}",
			"{replicaScheduling: {replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [m1]}, weight: 1}, {targetCluster: {labelSelector: {matchLabels: {zone: a}}}, weight: 2}]}}}",
			"{clusterAffinity: {exclude: [m2]}, replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [m2, m3]}, weight: 3}, {targetCluster: {}, weight: 1}]}}}",
			"{replicaScheduling: {replicaSchedulingType: Duplicated}}",
		},
		"priority":   {"", "1", "2", "-1"},
		"preemption": {"", "", "Always"},
		"activation": {"", "Lazy"},
		"suspension": {"", "{}", "{dispatching: true}", "{dispatchingOnClusters: {clusterNames: [m1]}}", "{dispatchingOnClusters: {clusterNames: [m2, m3]}}", "{dispatching: false, dispatchingOnClusters: {clusterNames: [m3]}}"},
		"preserve":   {"", "", "true", "false"},
		"deps":       {"true", "", "false"},
		"conflict":   {"", "", "Abort", "Overwrite"},
		"activate":   {"", "1", "2"},
	},
	"OverridePolicy": {
		"selectors": {"", "Deployment", "Deployment web", "Deployment one", "ConfigMap", "Deployment gold"},
		"clusters":  {"", "{clusterNames: [m1]}", "{labelSelector: {matchLabels: {zone: b}}}", "{exclude: [m1]}"},
		"overriders": {
			"{labelsOverrider: [{operator: add, value: {tier: gold}}]}",
			"{labelsOverrider: [{operator: replace, value: {tier: two}}, {operator: remove, value: {tier: x}}]}",
			"{plaintext: [{path: /data/v, operator: replace, value: over}]}",
			"{plaintext: [{path: /spec/replicas, operator: replace, value: 7}]}",
			"{plaintext: [{path: /metadata/labels/tier, operator: remove}]}",
			"{plaintext: [{path: /spec/paused, operator: add, value: true}]}",
		},
	},
	"FleetConfig": {
		"static":     {"true", "", "false"},
		"preemption": {"", "false", "true"},
		"maxDelete":  {"", "0", "1", "2", "\"30%\""},
	},
}

// wildMistakes refuse a commit.
var wildMistakes = []string{
	"a: [\n",
	"apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {featureGates: {Bogus: true}}\n",
	wildDoc{kind: "PropagationPolicy", space: "default", name: "wrong", fields: map[string]string{"selectors": "Deployment", "preemption": "Always"}}.text(),
	wildDoc{kind: "PropagationPolicy", space: "default", name: "wrong", fields: map[string]string{"selectors": "Deployment@shop"}}.text(),
	wildDoc{kind: "ClusterPropagationPolicy", name: "wrong", fields: map[string]string{"selectors": "Deployment", "suspension": "{dispatching: true, dispatchingOnClusters: {clusterNames: [m1]}}"}}.text(),
}

func init() {
	wildValues["ClusterPropagationPolicy"] = maps.Clone(wildValues["PropagationPolicy"])
	wildValues["ClusterPropagationPolicy"]["selectors"] = append(slices.Clone(wildValues["PropagationPolicy"]["selectors"]), "Namespace", "Deployment@shop", "Namespace,CustomResourceDefinition", "CustomResourceDefinition,Widget")
	wildValues["ClusterOverridePolicy"] = wildValues["OverridePolicy"]
}

func (d wildDoc) key() string { return d.kind + " " + d.space + "/" + d.name }

func (h *wildHistory) pick(label string, from []string) string {
	return rapid.SampledFrom(from).Draw(h.t, label)
}

// chance is true so often in a hundred times, and shrinks to false. Ranges of
// rapid would be small most of the time.
func (h *wildHistory) chance(label string, percent int) bool {
	return rapid.SampledFrom(hundred).Draw(h.t, label) >= 100-percent
}

var hundred = func() (all []int) {
	for n := range 100 {
		all = append(all, n)
	}
	return all
}()

// put adds a document with a value of each field, the usual one more often.
func (h *wildHistory) put(d wildDoc) {
	d.fields = map[string]string{}
	for _, field := range slices.Sorted(maps.Keys(wildValues[d.kind])) {
		values := wildValues[d.kind][field]
		if h.chance(field+" is unusual", 50) {
			d.fields[field] = h.pick(field, values)
		} else {
			d.fields[field] = values[0]
		}
	}
	if d.file == "" {
		d.file = strings.ToLower(strings.Trim(d.kind+"-"+d.space+"-"+d.name, "-")) + ".yaml"
	}
	h.set(d)
}

// minutes is the time from one commit to the next: clocks differ, so it can be less
// than none.
func (h *wildHistory) minutes() int64 {
	return rapid.SampledFrom([]int64{1440, 1440, 1440, 0, 5, 30, 59, 60, 61, -30}).Draw(h.t, "minutes")
}

// set puts a document where it stands. What preempts has to name what it takes.
func (h *wildHistory) set(d wildDoc) {
	named := strings.Contains(d.fields["selectors"], " ")
	for _, selector := range strings.Split(d.fields["selectors"], ",") {
		_, by, _ := strings.Cut(selector, " ")
		named = named && !slices.Contains([]string{"", "any", "note", "one", "two", "gold", "v1beta1"}, by)
	}
	if d.fields["preemption"] == "Always" && !named {
		d.fields["selectors"] = h.pick("selectors", []string{"Deployment web", "Deployment web,ConfigMap a", "Deployment api,Deployment web"})
	}
	h.docs[d.key()] = d
	delete(h.emptied, d.file)
}

// grow begins with a part of everything there is.
func (h *wildHistory) grow() {
	for i, c := range wildClusters {
		if i < 2 || h.chance("third cluster", 70) {
			h.put(wildDoc{kind: "Cluster", name: c})
		}
	}
	for _, docs := range [][]wildDoc{wildTemplates, wildPolicies, wildOverrides} {
		for i, d := range docs {
			percent := 40
			if d.kind == "OverridePolicy" || d.kind == "ClusterOverridePolicy" {
				percent = 10
			}
			if i == 0 && percent == 40 || h.chance("has "+d.key(), percent) {
				h.put(d)
			}
		}
	}
	if h.chance("settings", 40) {
		h.put(wildDoc{kind: "FleetConfig", name: "fleet", file: "fairlead.yaml"})
	}
}

// edit makes one change.
func (h *wildHistory) edit() {
	group := h.pick("edit", []string{
		"policy", "policy", "policy", "policy", "template", "template", "template", "cluster", "override",
		"add policy", "drop policy", "add template", "drop template", "cluster comes or goes", "cluster comes or goes", "override comes or goes",
		"settings", "generate", "generate", "generate", "move", "rename", "empty", "swap", "mistake", "hold", "hold", "release", "note",
	})
	switch group {
	case "policy":
		h.change(wildPolicies)
	case "template":
		h.change(wildTemplates)
	case "cluster":
		h.change(clusterDocs())
	case "override":
		h.change(wildOverrides)
	case "add policy":
		h.put(rapid.SampledFrom(wildPolicies).Draw(h.t, "policy"))
	case "add template":
		h.put(rapid.SampledFrom(wildTemplates).Draw(h.t, "template"))
	case "drop policy":
		h.drop(wildPolicies)
	case "drop template":
		h.drop(wildTemplates)
	case "cluster comes or goes":
		h.toggle(clusterDocs())
	case "override comes or goes":
		h.toggle(wildOverrides)
	case "settings":
		d := wildDoc{kind: "FleetConfig", name: "fleet", file: "fairlead.yaml"}
		if _, ok := h.docs[d.key()]; !ok {
			h.put(d)
		} else if h.chance("no settings", 20) {
			delete(h.docs, d.key())
		} else {
			h.change([]wildDoc{d})
		}
	case "generate":
		h.generate()
	case "move":
		if key := h.one(h.present(func(d wildDoc) bool { return d.kind != "FleetConfig" })); key != "" {
			d := h.docs[key]
			d.file = h.pick("file", []string{"all.yaml", "team/more.yaml", strings.ToLower(d.kind) + "s.yaml"})
			h.docs[key] = d
			delete(h.emptied, d.file)
		}
	case "rename":
		if key := h.one(h.present(func(d wildDoc) bool { return d.kind == "Deployment" || d.kind == "ConfigMap" })); key != "" {
			d := h.docs[key]
			delete(h.docs, key)
			d.name = h.pick("name", []string{"web", "api", "a", "b"})
			h.docs[d.key()] = d
			delete(h.emptied, d.file)
		}
	case "empty":
		if key := h.one(h.present(func(d wildDoc) bool { return d.kind != "Cluster" })); key != "" {
			file := h.docs[key].file
			maps.DeleteFunc(h.docs, func(_ string, d wildDoc) bool { return d.file == file })
			h.emptied[file] = true
		}
	case "hold", "release":
		if key := h.one(h.among(wildPolicies)); key != "" {
			d := h.docs[key]
			d.fields = maps.Clone(d.fields)
			d.fields["suspension"] = ""
			if group == "hold" {
				d.fields["suspension"] = h.pick("suspension", []string{"{dispatching: true}", "{dispatchingOnClusters: {clusterNames: [m2]}}"})
			}
			h.docs[key] = d
		}
	case "note":
		if key := h.one(h.present(func(d wildDoc) bool { _, has := wildValues[d.kind]["note"]; return has })); key != "" {
			d := h.docs[key]
			d.fields = maps.Clone(d.fields)
			d.fields["note"] = h.pick("note", wildValues[d.kind]["note"])
			h.docs[key] = d
		}
	case "mistake":
		h.wrong = h.pick("mistake", wildMistakes)
	case "swap":
		// One policy takes the place of another in one commit.
		from, to := h.one(h.present(func(d wildDoc) bool { return d.fields["placement"] != "" })), rapid.SampledFrom(wildPolicies).Draw(h.t, "policy")
		if from != "" {
			d := h.docs[from]
			delete(h.docs, from)
			if to.space != "" || d.space == "" {
				to.fields, to.file = maps.Clone(d.fields), "swapped.yaml"
				h.docs[to.key()] = to
				delete(h.emptied, to.file)
			}
		}
	}
}

const hashLetters = "2456789bcdfghkmt"

func clusterDocs() []wildDoc {
	var all []wildDoc
	for _, c := range wildClusters {
		all = append(all, wildDoc{kind: "Cluster", name: c})
	}
	return all
}

func (h *wildHistory) present(want func(wildDoc) bool) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(h.docs)) {
		if want(h.docs[key]) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (h *wildHistory) one(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return h.pick("document", keys)
}

func (h *wildHistory) among(docs []wildDoc) []string {
	return h.present(func(d wildDoc) bool {
		return slices.ContainsFunc(docs, func(o wildDoc) bool { return o.kind == d.kind })
	})
}

// change edits one field of one document.
func (h *wildHistory) change(docs []wildDoc) {
	key := h.one(h.among(docs))
	if key == "" {
		return
	}
	d := h.docs[key]
	d.fields = maps.Clone(d.fields)
	field := h.pick("field", slices.Sorted(maps.Keys(wildValues[d.kind])))
	d.fields[field] = h.pick(field, wildValues[d.kind][field])
	h.set(d)
}

func (h *wildHistory) drop(docs []wildDoc) {
	delete(h.docs, h.one(h.among(docs)))
}

func (h *wildHistory) toggle(docs []wildDoc) {
	d := rapid.SampledFrom(docs).Draw(h.t, "which")
	if _, ok := h.docs[d.key()]; ok {
		delete(h.docs, d.key())
		return
	}
	h.put(d)
}

// generate is what a generator of kustomize does: a ConfigMap gets another
// name with its content, and the Deployment that uses it follows.
func (h *wildHistory) generate() {
	key := h.one(h.present(func(d wildDoc) bool { return d.kind == "Deployment" && d.space == "default" }))
	if key == "" {
		return
	}
	d := h.docs[key]
	for _, old := range strings.Fields(d.fields["refs"]) {
		if strings.HasPrefix(old, "gen-") {
			delete(h.docs, "ConfigMap default/"+old)
		}
	}
	h.generated++
	name := fmt.Sprintf("gen-%d", h.generated)
	file := ""
	if h.chance("hashed", 70) {
		// The names and the file are those of one generator.
		name = "gen-" + strings.Repeat(string(hashLetters[h.generated%len(hashLetters)]), 10)
		file = "generated.yaml"
	}
	h.put(wildDoc{kind: "ConfigMap", space: "default", name: name, file: file})
	d.fields = maps.Clone(d.fields)
	d.fields["refs"] = name
	h.docs[key] = d
}

// tree writes the documents as files.
func (h *wildHistory) tree() map[string]string {
	tree := map[string]string{}
	for file := range h.emptied {
		tree[file] = "# nothing\n"
	}
	if h.wrong != "" {
		tree["wrong.yaml"] = h.wrong
		h.wrong = ""
	}
	for _, key := range slices.Sorted(maps.Keys(h.docs)) {
		d := h.docs[key]
		if text := tree[d.file]; text != "" && !strings.HasPrefix(text, "#") {
			tree[d.file] += "---\n" + d.text()
		} else {
			tree[d.file] = d.text()
		}
	}
	return tree
}

func (d wildDoc) text() string {
	f := d.fields
	meta := "name: " + d.name
	if d.space != "" && !(d.space == "default" && (d.kind == "Deployment" || d.kind == "ConfigMap")) {
		meta += ", namespace: " + d.space
	}
	var labels []string
	for key, field := range map[string]string{"tier": "tier", "zone": "zone", "note.karmada.io/text": "note", "resourcetemplate.karmada.io/claimed-by": "others"} {
		if f[field] != "" {
			labels = append(labels, fmt.Sprintf("%s: %q", key, f[field]))
		}
	}
	slices.Sort(labels)
	if len(labels) > 0 {
		meta += ", labels: {" + strings.Join(labels, ", ") + "}"
	}
	var annotations []string
	for key, field := range map[string]string{"work.karmada.io/conflict-resolution": "conflict", "fairlead.dev/activate": "activate", "fairlead.dev/hold": "ownhold", "fairlead.dev/preserve": "ownpreserve"} {
		if f[field] != "" && (field != "conflict" || d.file != "" && f["selectors"] == "") {
			annotations = append(annotations, fmt.Sprintf("%s: %q", key, f[field]))
		}
	}
	slices.Sort(annotations)
	if len(annotations) > 0 {
		meta += ", annotations: {" + strings.Join(annotations, ", ") + "}"
	}
	var b strings.Builder
	line := func(field, format string) {
		if f[field] != "" {
			fmt.Fprintf(&b, "  "+format+"\n", f[field])
		}
	}
	api := ""
	switch d.kind {
	case "Cluster":
		api = "cluster.karmada.io/v1alpha1"
		b.WriteString("spec:\n  syncMode: Push\n")
		line("taints", "taints: %s")
		if f["apis"] != "" {
			b.WriteString("status:\n  apiEnablements:\n  - {groupVersion: apps/v1, resources: [{kind: Deployment}]}\n  - {groupVersion: v1, resources: [{kind: ConfigMap}, {kind: Namespace}]}\n  - {groupVersion: apiextensions.k8s.io/v1, resources: [{kind: CustomResourceDefinition}]}\n")
		}
	case "FleetConfig":
		api = "fairlead.dev/v1alpha1"
		b.WriteString("spec:\n  onBroken: RefuseCommit\n")
		line("maxDelete", "maxDelete: %s")
		if f["static"]+f["preemption"] != "" {
			b.WriteString("  featureGates:\n")
			line("static", "  StaticPolicy: %s")
			line("preemption", "  PropagationPolicyPreemption: %s")
		}
	case "Deployment", "CloneSet":
		api = map[string]string{"Deployment": "apps/v1", "CloneSet": "apps.kruise.io/v1alpha1"}[d.kind]
		b.WriteString("spec:\n")
		line("replicas", "replicas: %s")
		fmt.Fprintf(&b, "  template:\n    spec:\n      containers:\n      - name: c\n        image: \"i:%s\"\n", f["image"])
		if f["requests"] != "" {
			b.WriteString("        resources: {requests: {cpu: 100m}}\n")
		}
		if f["refs"] != "" {
			b.WriteString("        envFrom:\n")
		}
		for _, ref := range strings.Fields(f["refs"]) {
			fmt.Fprintf(&b, "        - configMapRef: {name: %s}\n", ref)
		}
	case "ConfigMap":
		api = "v1"
		fmt.Fprintf(&b, "data: {v: %q}\n", f["v"])
	case "Widget":
		api = "example.com/" + f["api"]
		fmt.Fprintf(&b, "data: {v: %q}\n", f["v"])
	case "Namespace":
		api = "v1"
	case "CustomResourceDefinition":
		api = "apiextensions.k8s.io/v1"
		b.WriteString("spec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Widget, plural: widgets}\n  versions: [{name: v1, served: true}, {name: v1beta1, served: true}]\n")
	case "PropagationPolicy", "ClusterPropagationPolicy":
		api = "policy.karmada.io/v1alpha1"
		b.WriteString("spec:\n  resourceSelectors:\n" + selectorLines(f["selectors"]))
		line("placement", "placement: %s")
		line("priority", "priority: %s")
		line("preemption", "preemption: %s")
		line("activation", "activationPreference: %s")
		line("suspension", "suspension: %s")
		line("preserve", "preserveResourcesOnDeletion: %s")
		line("deps", "propagateDeps: %s")
		line("conflict", "conflictResolution: %s")
	case "OverridePolicy", "ClusterOverridePolicy":
		api = "policy.karmada.io/v1alpha1"
		b.WriteString("spec:\n")
		if f["selectors"] != "" {
			b.WriteString("  resourceSelectors:\n" + selectorLines(f["selectors"]))
		}
		fmt.Fprintf(&b, "  overrideRules:\n  - overriders: %s\n", f["overriders"])
		if f["clusters"] != "" {
			fmt.Fprintf(&b, "    targetCluster: %s\n", f["clusters"])
		}
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {%s}\n%s", api, d.kind, meta, b.String())
}

// selectorLines writes "Deployment web,ConfigMap" as a list of selectors.
func selectorLines(short string) string {
	var b strings.Builder
	for _, one := range strings.Split(short, ",") {
		kind, by, _ := strings.Cut(one, " ")
		kind, space, _ := strings.Cut(kind, "@")
		api := map[string]string{"Deployment": "apps/v1", "CloneSet": "apps.kruise.io/v1alpha1", "ConfigMap": "v1", "Widget": "example.com/v1", "Namespace": "v1", "CustomResourceDefinition": "apiextensions.k8s.io/v1"}[kind]
		rest := ""
		switch by {
		case "":
		case "v1beta1":
			api = "example.com/v1beta1"
		case "one", "two", "gold":
			rest = ", labelSelector: {matchLabels: {tier: " + by + "}}"
		case "any":
			rest = ", labelSelector: {}"
		case "note":
			rest = ", labelSelector: {matchLabels: {note.karmada.io/text: \"1\"}}"
		default:
			rest = ", name: " + by
		}
		if space != "" {
			rest += ", namespace: " + space
		}
		fmt.Fprintf(&b, "  - {apiVersion: %s, kind: %s%s}\n", api, kind, rest)
	}
	return b.String()
}

// tell writes a commit down as a story has it.
func (h *wildHistory) tell(c *propagate.Commit, tree map[string]string) {
	add := func(name, text string) {
		h.told.Files = append(h.told.Files, txtar.File{Name: c.Hash + "/" + name, Data: []byte(text)})
	}
	add("-after", fmt.Sprintf("%ds\n", c.Time-h.toldTime))
	h.toldTime = c.Time
	if tree == nil {
		add("-broken", "broken\n")
	}
	lines := ""
	for _, t := range c.Trailers {
		lines += t.Key + ": " + t.Value + "\n"
	}
	if lines != "" {
		add("-trailers", lines)
	}
	if tree == nil {
		return
	}
	gone := ""
	for _, file := range slices.Sorted(maps.Keys(h.last)) {
		if _, stays := tree[file]; !stays {
			gone += file + "\n"
		}
	}
	if gone != "" {
		add("-delete", gone)
	}
	changed := false
	for _, file := range slices.Sorted(maps.Keys(tree)) {
		if h.last[file] != tree[file] {
			add(file, tree[file])
			changed = true
		}
	}
	if gone+lines == "" && !changed {
		add("-delete", "") // a commit that changes nothing
	}
	h.last = tree
}

// Fatal tells the story that led there.
func (h *wildHistory) Fatal(args ...any) {
	h.t.Helper()
	h.t.Fatalf("%s\n%s", fmt.Sprint(args...), h.story())
}

func (h *wildHistory) Helper() { h.t.Helper() }

func (h *wildHistory) story() string { return string(txtar.Format(&h.told)) }
