// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/render"
)

const (
	// fuzzMemory is what the heap may grow to while a commit is read and folded.
	fuzzMemory = 512 << 20
	// fuzzWork is how many bytes that may allocate in all. It stands for time, which
	// differs between machines.
	fuzzWork = 16 << 30
)

// Whole commits, two on top of each other: clusters, policies, templates, overrides and
// kustomizations with any numbers and of any shape are rendered, folded and compared
// with bounded work and memory, or refused with problems that are the same again
// (decision 43, A01-A03).
func FuzzCommits(f *testing.F) {
	for i := range 24 {
		seed := make([]byte, 200)
		for j := range seed {
			seed[j] = byte((i*131 + j*j*7 + j*i*13) % 251)
		}
		f.Add(seed)
	}
	f.Add([]byte("\x04\x05\x05\x05\x05\x05kind: List\nitems: [{kind: List, items: []}]"))

	limit := debug.SetMemoryLimit(fuzzMemory * 3 / 4) // so that what is garbage does not count
	f.Cleanup(func() { debug.SetMemoryLimit(limit) })
	f.Fuzz(foldsWithinBounds)
}

// The same for commits made of random bytes, which need no search:
// FAIRLEAD_COMMITS=20000 go test ./propagate -run TestRandomCommits -timeout 0.
func TestRandomCommits(t *testing.T) {
	limit := debug.SetMemoryLimit(fuzzMemory * 3 / 4)
	t.Cleanup(func() { debug.SetMemoryLimit(limit) })

	commits, _ := strconv.Atoi(cmp.Or(os.Getenv("FAIRLEAD_COMMITS"), "40"))
	for seed := range commits / 2 {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		data := make([]byte, 200+random.IntN(2000))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		if foldsWithinBounds(t, data); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// foldsWithinBounds reads and folds two commits that the data makes.
func foldsWithinBounds(t *testing.T, data []byte) {
	c := &chooser{data: data[:min(len(data), 4096)]}
	first, second := c.commit(), c.commit()

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	state, base := propagate.State{}, (*render.Build)(nil)
	for i, fsys := range []fstest.MapFS{first, second} {
		commit := propagate.Commit{Hash: fmt.Sprintf("%040d", i+1)}
		build, problems := readTree(t, base, first, fsys)
		if build != nil {
			base, commit.Snapshot = build, build.Snapshot
		}
		commit.Problems = problems
		if _, again := readTree(t, nil, nil, fsys); i == 0 && !slices.EqualFunc(problems, again, sameProblem) {
			t.Errorf("read again: %v, then %v", problems, again)
		}

		next := propagate.Step(state, commit)
		propagate.Compare(&state, &next, nil)
		if r := next.Refusal; r != nil && strings.Contains(fmt.Sprint(r.Problems), "a defect of") {
			t.Errorf("it panics: %v", r.Problems)
		}
		state = next
	}

	runtime.ReadMemStats(&after)
	if work := after.TotalAlloc - before.TotalAlloc; work > fuzzWork {
		t.Errorf("%d MiB were allocated", work>>20)
	}
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > fuzzMemory {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

// sameProblem reports whether two problems are told alike, except for the words of
// kustomize: of several things that are wrong it names any.
func sameProblem(a, b fleet.Problem) bool {
	const words = "kustomize: "
	return a == b || a.Origin == b.Origin && strings.HasPrefix(a.Message, words) && strings.HasPrefix(b.Message, words)
}

// readTree renders a tree, on top of base if there is one.
func readTree(t *testing.T, base *render.Build, was, fsys fstest.MapFS) (*render.Build, render.Problems) {
	t.Helper()
	var build *render.Build
	var err error
	if base == nil {
		build, err = render.New().Render(fsys)
	} else {
		build, err = render.New().Next(base, fsys, changed(was, fsys))
	}

	var problems render.Problems
	if err != nil && !errors.As(err, &problems) {
		t.Errorf("no problem of the commit: %v", err)
	}
	if len(problems) > 101 {
		t.Errorf("%d problems are kept", len(problems))
	}
	return build, problems
}

func changed(was, is fstest.MapFS) (names []string) {
	for name := range was {
		if is[name] == nil || string(is[name].Data) != string(was[name].Data) {
			names = append(names, name)
		}
	}
	for name := range is {
		if was[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return !fs.ValidPath(name) })
}

// chooser makes documents out of bytes.
type chooser struct{ data []byte }

func (c *chooser) n(below int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := int(c.data[0])
	c.data = c.data[1:]
	return b % below
}

func (c *chooser) of(options ...string) string { return options[c.n(len(options))] }

// number is one that somebody may not have thought of.
func (c *chooser) number() string {
	return c.of("1", "0", "2", "3", "-1", "100", "1000000", "2147483647", "2147483648", "4294967296", "9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e9", "1.5", "null", "'7'")
}

func (c *chooser) quantity() string {
	return c.of("'1'", "100m", "1Gi", "'9223372036854775807'", "1e64", "-5", "1e-60", "8Ei", "'1e9999'", "0")
}

func (c *chooser) list(most int, item func() string) string {
	var items []string
	for range c.n(most + 1) {
		items = append(items, item())
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (c *chooser) name(prefix string) string { return prefix + fmt.Sprint(c.n(6)) }

func (c *chooser) commit() fstest.MapFS {
	fsys := fstest.MapFS{}
	add := func(name, text string) { fsys[name] = &fstest.MapFile{Data: []byte(text)} }
	for i := range 1 + c.n(8) {
		add(fmt.Sprintf("cluster%d.yaml", i), c.cluster(i))
	}
	for i := range 2 + c.n(6) {
		switch file := fmt.Sprintf("f%d", i); c.n(6) {
		case 0:
			add(file+".yaml", c.policy(i))
		case 1:
			add(file+".yaml", c.template(i))
		case 2:
			add(file+".yaml", c.override(i))
		case 3, 4:
			for name, text := range c.kustomization() {
				add(file+"/"+name, text)
			}
		case 5:
			add(file+".yaml", strings.Repeat(c.raw(), 1+c.n(20)))
		}
	}
	if c.n(8) == 0 {
		add("fairlead.yaml", fmt.Sprintf("apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: %s, onBroken: %s}\n", c.of("'50%'", c.number(), "'9223372036854775807%'"), c.of("FreezeUnit", "RefuseCommit")))
	}
	if c.n(8) == 0 {
		add(".fairleadignore", strings.Repeat(c.of("*.yml\n", "**/a*b*c\n", "!x\n", "[a-z]*\n", "**/**/x\n"), 1+c.n(40)))
	}
	return fsys
}

// raw is a text as it is in the data.
func (c *chooser) raw() string {
	n := min(c.n(200), len(c.data))
	text := string(c.data[:n])
	c.data = c.data[n:]
	return c.of("---\n", "{}\n", "[", "{kind: List, items: [", "- ", "", "a: &a [*a]\n") + text
}

func (c *chooser) cluster(i int) string {
	return fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m%d, labels: {r: r%d}}\nspec:\n  syncMode: Push\n  region: r%d\n  taints: %s\n  resourceModels: %s\nstatus:\n  resourceSummary: {allocatable: {cpu: %s, pods: %s, memory: %s}, allocated: {cpu: %s}, allocatableModelings: %s}\n",
		i, c.n(3), c.n(3),
		c.list(2, func() string { return "{key: " + c.name("k") + ", effect: " + c.of("NoExecute", "NoSchedule") + "}" }),
		c.list(2, func() string {
			return fmt.Sprintf("{grade: %s, ranges: [{name: cpu, min: %s, max: %s}]}", c.number(), c.quantity(), c.quantity())
		}),
		c.quantity(), c.quantity(), c.quantity(), c.quantity(),
		c.list(2, func() string { return "{grade: " + c.number() + ", count: " + c.number() + "}" }))
}

func (c *chooser) policy(i int) string {
	spread := c.list(3, func() string {
		return fmt.Sprintf("{spreadByField: %s, minGroups: %s, maxGroups: %s}", c.of("cluster", "region", "zone", "provider"), c.number(), c.number())
	})
	weights := c.list(3, func() string {
		return "{targetCluster: {clusterNames: [" + c.name("m") + "]}, weight: " + c.number() + "}"
	})
	tolerations := c.list(2, func() string {
		return "{key: " + c.name("k") + ", operator: Exists, effect: NoExecute, tolerationSeconds: " + c.number() + "}"
	})
	return fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: p%d}\nspec:\n  priority: %s\n  propagateDeps: %s\n  resourceSelectors: [{apiVersion: %s}]\n  suspension: {dispatching: %s}\n  placement:\n    spreadConstraints: %s\n    clusterTolerations: %s\n    replicaScheduling: {replicaSchedulingType: %s, replicaDivisionPreference: %s, weightPreference: {%s}}\n",
		i, c.of("1", c.number()), c.of("true", "false"), c.of("apps/v1, kind: Deployment", "batch/v1, kind: Job", "v1, kind: ConfigMap"), c.of("false", "true"), spread, tolerations,
		c.of("Divided", "Duplicated"), c.of("Weighted", "Aggregated"), c.of("staticWeightList: "+weights, "dynamicWeight: AvailableReplicas", ""))
}

func (c *chooser) template(i int) string {
	spec := "replicas: " + c.number()
	head := "apiVersion: apps/v1\nkind: Deployment\n"
	switch c.n(3) {
	case 0:
		head, spec = "apiVersion: batch/v1\nkind: Job\n", "parallelism: "+c.number()+", completions: "+c.number()
	case 1:
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: t%d}\ndata: {a: '%s', b: '{\"x\": [1]}'}\n", i, strings.Repeat("x", c.n(200)*50))
	}
	return fmt.Sprintf("%smetadata: {name: t%d}\nspec: {%s, template: {spec: {containers: [{name: a, image: 'reg.io/a:1', resources: {requests: {cpu: %s, memory: %s}}}]}}}\n", head, i, spec, c.quantity(), c.quantity())
}

func (c *chooser) override(i int) string {
	operations := c.list(12, func() string {
		return fmt.Sprintf("{path: %s, operator: %s, value: %s}", c.of("/spec/replicas", "/data/a", "/metadata/labels/x", "/spec/template/spec/containers/0/image", "/data/none", "/"), c.of("add", "replace", "remove"), c.of(c.number(), "{a: [b]}", "x"))
	})
	images := c.list(6, func() string {
		return "{component: " + c.of("Tag", "Registry", "Repository") + ", operator: " + c.of("add", "remove", "replace") + ", value: " + c.of("x", ".a", "/b") + "}"
	})
	return fmt.Sprintf("apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterOverridePolicy\nmetadata: {name: o%d}\nspec:\n  overrideRules:\n  - {targetCluster: {clusterNames: [%s]}, overriders: {plaintext: %s, imageOverrider: %s}}\n", i, c.name("m"), operations, images)
}

func (c *chooser) path() string {
	return c.of("data.a", "data.b", "data", "metadata.name", "metadata.labels.x", "spec.list.[name=a].b", "spec.list.*.b", "spec.list.[name=a+b].c", "data.b.x", "spec.list.0.b", "kind", "data.doc.x.y", "metadata.annotations.[a/b]", "spec", "*", "")
}

func (c *chooser) pointer() string {
	return c.of("/data/a", "/data/a/-", "/data/a/0", "/data", "/data/b", "/spec/list/-", "/spec/list", "/metadata/name", "/kind", "/metadata/labels", "", "/data/", "/spec/list/0/b")
}

// kustomization is a unit of few files that ask for much.
func (c *chooser) kustomization() map[string]string {
	files := map[string]string{"e.env": strings.Repeat("A=b\nB=c\n", c.n(5)) + c.of("", "=x\n", "C")}
	var resources strings.Builder
	for i := range 1 + c.n(12) {
		fmt.Fprintf(&resources, "---\napiVersion: v1\nkind: %s\nmetadata: {name: %s, labels: {x: y}}\ndata: {a: [x], b: xxxxxxxxxx, doc: '{\"x\": {\"y\": 1}}'%s}\nspec: {list: [{name: a, b: %s}], configMap: {name: r%d}}\n",
			c.of("ConfigMap", "Secret", "Widget"), fmt.Sprintf("r%d", i), c.of("", ", '': x", ", c: $(V)"), c.of("''", "x", "{c: d}", "[1]"), i)
	}
	files["r.yaml"] = resources.String()

	operations := func() string {
		return c.list(30, func() string {
			return fmt.Sprintf(`{"op": "%s", "from": "%s", "path": "%s", "value": %s}`, c.of("copy", "add", "replace", "remove", "move", "test"), c.pointer(), c.pointer(), c.of(`"x"`, `{"a": ["b"]}`, "1", "null"))
		})
	}
	target := func() string {
		return c.of("{kind: ConfigMap}", "{name: r0}", "{kind: '.*'}", "{labelSelector: x=y}", "{kind: Widget, name: r1}")
	}
	patches := c.list(8, func() string {
		return "{target: " + target() + ", patch: '" + c.of(operations(), "{apiVersion: v1, kind: ConfigMap, metadata: {name: r0}, data: {b: z, $patch: merge}}", "{apiVersion: v1, kind: Widget, metadata: {name: other}, spec: {list: [{name: a, z: 1}, {name: b}]}}") + "', options: {allowNameChange: " + c.of("true", "false") + "}}"
	})
	replacements := c.list(40, func() string {
		return fmt.Sprintf("{source: {kind: %s, name: r%d, fieldPath: '%s', options: {delimiter: '%s', index: %s}}, targets: [{select: %s, fieldPaths: ['%s', '%s'], options: {delimiter: '%s', index: %s, create: %s}}]}",
			c.of("ConfigMap", "Widget"), c.n(3), c.path(), c.of("", "x", "/"), c.of("0", "-1", c.number()), target(), c.path(), c.path(), c.of("", "/", "x"), c.of("-1", "0", "5", c.number()), c.of("true", "false"))
	})

	text := "resources: [r.yaml]\n"
	for _, field := range c.fields(patches, replacements) {
		text += field
	}

	files["kustomization.yaml"] = text
	files["c/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nreplacements: " + replacements + "\n"
	files["crd.json"] = `{"a.Foo": {"Schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}, "spec": {"$ref": "` + c.of("a.Spec", "a.Foo", "b") + `"}}}}, "a.Spec": {"Schema": {"properties": {"x": {"$ref": "` + c.of("a.Spec", "c", "a.Foo") + `"}}}}}`
	files["conf.yaml"] = "nameReference:\n- kind: ConfigMap\n  fieldSpecs: " + c.list(20, func() string {
		return "{kind: Widget, path: " + c.of("spec/list/b", "spec/configMap/name", "spec", "data/a") + "}"
	}) + "\n"
	files["schema.json"] = `{"definitions": {"v1.Widget": {"properties": {"spec": {"$ref": "#/definitions/` + c.of("A", "B", "C") + `"}}, "x-kubernetes-group-version-kind": [{"group": "", "kind": "Widget", "version": "v1"}]}, "A": {"$ref": "#/definitions/` + c.of("B", "A") + `"}, "B": {"$ref": "#/definitions/` + c.of("A", "C") + `"}, "C": {"type": "object"}}}`
	return files
}

// fields are some of a kustomization's.
func (c *chooser) fields(patches, replacements string) (chosen []string) {
	for _, field := range []string{
		"patches: " + patches,
		"replacements: " + replacements,
		"configMapGenerator: [{name: g, envs: [e.env]}, {name: r0, behavior: " + c.of("merge", "replace", "create") + ", literals: [k=v]}]",
		"images: " + c.list(10, func() string { return "{name: a, newTag: \"" + c.of("1", "x") + "\"}" }),
		"namePrefix: " + c.of("p-", "''", strings.Repeat("x", 100)),
		"components: [c]",
		"crds: [crd.json]",
		"configurations: [conf.yaml]",
		"openapi: {path: schema.json}",
		"vars: [{name: V, objref: {apiVersion: v1, kind: ConfigMap, name: r0}, fieldref: {fieldpath: " + c.of("data.b", "metadata.name", "data") + "}}]",
		"replicas: [{name: r0, count: " + c.number() + "}]",
		"labels: [{pairs: {x: z}, includeSelectors: true}]",
		"buildMetadata: [transformerAnnotations, originAnnotations]",
		"namespace: other",
	} {
		if c.n(4) == 0 {
			chosen = append(chosen, field+"\n")
		}
	}
	return chosen
}
