// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/fairlead/fairlead/fleet"
)

// kustomized builds one kustomization root. The result is either documents or
// problems.
type kustomized struct {
	*view
	root     string
	checked  map[string]cost // zero while being checked
	visits   int             // kustomizations that were checked, each time
	problems []fleet.Problem
	schema   bool // one of them brings its own OpenAPI schema
	strip    bool // the author did not ask for origin annotations
	sources  map[string]*sources
	named    map[[2]string]*document     // where there are no origins
	parsed   *kustomization              // of the root
	plugins  map[string][]map[string]any // by the directory of their kustomization
}

func kustomize(v *view, root string) (docs []*document, problems []fleet.Problem) {
	k := &kustomized{view: v, root: root, checked: map[string]cost{}, sources: map[string]*sources{}, plugins: map[string][]map[string]any{}}
	file, t := k.check(root, nil, nil)
	if k.finish(file, t); len(k.problems) > 0 {
		return nil, k.problems
	}

	defer func() {
		// kustomize panics on some invalid input. What it says may quote a value.
		if recover() != nil {
			docs, problems = nil, []fleet.Problem{problem(file, 0, "kustomize cannot build this, and does not say why")}
		}
	}()

	built, err := k.build()
	if v.outside != "" {
		return nil, []fleet.Problem{problem(file, 0, k.relative(v.outside)+": "+errOutside.Error())}
	}
	if err != nil {
		return nil, []fleet.Problem{problem(file, 0, "kustomize: "+k.words(err))}
	}

	return k.documents(file, built)
}

// openapiSchema guards the part of kustomize that the whole process shares: an
// OpenAPI schema that one build sets and the next would inherit.
var openapiSchema struct {
	sync.Mutex
	custom bool // the last build had its own
}

// build runs kustomize. Only one build runs at a time, and none sees the schema
// of another.
func (k *kustomized) build() (resmap.ResMap, error) {
	openapiSchema.Lock()
	defer openapiSchema.Unlock()

	if k.schema || openapiSchema.custom {
		openapi.ResetOpenAPI()
	}

	openapiSchema.custom = k.schema
	defer withoutExit()()
	if jsonpatch.AccumulatedCopySizeLimit != copyLimit {
		jsonpatch.AccumulatedCopySizeLimit = copyLimit // of the process: nobody else copies more
	}
	return krusty.MakeKustomizer(&krusty.Options{
		Reorder: krusty.ReorderOptionNone,
		// The view contains only the tree, so "../base" may be loaded.
		LoadRestrictions: types.LoadRestrictionsNone,
		PluginConfig:     types.DisabledPluginConfig(),
	}).Run(k.view, path.Join(mount, k.root))
}

// relative turns a path of the view into one of the tree.
func (k *kustomized) relative(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, mount), "/")
}

// address is one of this process, which some of kustomize's errors print.
var address = regexp.MustCompile(`0x[0-9a-f]{6,}`)

func (k *kustomized) trimPaths(err error) string {
	text := oneLine(err.Error())
	text = strings.ReplaceAll(text, mount+"/", "")
	text = address.ReplaceAllString(text, "…")
	return strings.ReplaceAll(text, mount, ".")
}

// check validates a kustomization and everything it uses, refuses what is not
// allowed, and decides what kustomize gets to see. It returns the file's name and
// what it costs. around is not nil for a component, which edits what is around it.
func (k *kustomized) check(dir string, users []string, around *cost) (string, cost) {
	if t, done := k.checked[dir]; done && around == nil {
		return "", t
	}
	if k.visits++; k.visits > 2*maxUses {
		return "", cost{uses: maxUses + 1}
	}

	k.checked[dir] = cost{}
	delete(k.plugins, dir)
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		k.stat(path.Join(dir, name)) // also a second one, which is an error
	}

	parsed, file, wrong := readKustomization(dir, kustomizationFile(k.fsys, dir), k.content)
	switch {
	case file == "":
		return path.Join(dir, "kustomization.yaml"), cost{} // kustomize reports it
	case k.wrong(wrong...):
		return file, cost{}
	}

	t := cost{uses: 1}
	for _, r := range parsed.refs {
		t.add(k.checkRef(parsed, r, append(users, dir), &t))
	}

	k.checkLiterals(parsed)
	k.count(parsed, &t, around)
	for _, helm := range []string{"helmCharts", "helmGlobals", "helmChartInflationGenerator"} {
		if parsed.fields[helm] != nil {
			k.wrong(parsed.problem(helm, "%s: helm is not run; commit the rendered chart", helm))
		}
	}

	if much := t.exceeded(); much != "" && !t.reported {
		t.reported = k.wrong(problem(file, 1, much))
	}

	k.checked[dir] = t.clamped()
	k.schema = k.schema || parsed.fields["openapi"] != nil
	k.served[file] = encode(parsed.fields)
	if len(users) == 0 {
		k.parsed = parsed
	}
	return file, k.checked[dir]
}

// count counts what a kustomization does with its objects; those of a component
// include what is around it.
func (k *kustomized) count(parsed *kustomization, t, around *cost) {
	fields := k.folded(parsed.file, parsed.fields)
	for _, kind := range []string{"ConfigMap", "Secret"} {
		list, _ := fields[strings.ToLower(kind)+"generator"].([]any)
		for _, entry := range list {
			k.countGenerator(parsed.dir, kind, entry, t)
		}
	}

	objects := t.all
	n := t.objects
	if around != nil {
		objects, n = slices.Concat(around.all, t.all), around.objects+t.objects
		t.grown, t.items, t.wrote = t.grown+around.grown, t.items+around.items, slices.Concat(around.wrote, t.wrote)
		defer func() { // what is around counts there
			t.grown, t.items, t.wrote = t.grown-around.grown, t.items-around.items, t.wrote[len(around.wrote):]
		}()
	}

	t.pairs += n * n
	passes := 0
	t.spend("configurations", product(stepsPerSpec*t.specs, n))
	t.spend("configurations", product(t.specs, t.specs)/keysPerStep)
	patches := k.patchesIn(parsed.dir, fields)
	t.patches(objects, patches)
	if wrong := t.replacements(objects, k.replacementsIn(parsed.dir, fields)); wrong != "" {
		k.wrong(parsed.problem("replacements", "%s", wrong))
	}

	for field, value := range fields {
		switch field {
		case "images", "replicas":
			list, _ := value.([]any)
			t.images(objects, len(list))
			passes += len(list)
		case "vars":
			t.variables(objects, value)
		case "resources", "components", "crds", "configurations", "openapi", "patches", "patchesjson6902", "patchesstrategicmerge",
			"replacements", "configmapgenerator", "secretgenerator", "generators", "transformers", "validators":
		default:
			t.settings(objects, value)
			list, _ := value.([]any)
			passes += max(len(list), 1)
		}
	}

	for _, plugin := range k.plugins[parsed.dir] {
		t.plugin(k, parsed, objects, k.folded(parsed.file, plugin))
	}

	passes += len(patches) + len(k.plugins[parsed.dir])
	t.passes += passes
	t.marks += product(product(passes, t.passes), n)
}

// checkLiterals refuses a literal that has no key. kustomize would quote it.
func (k *kustomized) checkLiterals(parsed *kustomization) {
	for _, field := range []string{"configMapGenerator", "secretGenerator"} {
		list, _ := parsed.fields[field].([]any)
		for i, entry := range list {
			generator, _ := entry.(map[string]any)
			literals, _ := generator["literals"].([]any)
			for j, literal := range literals {
				if text, ok := literal.(string); ok && strings.Index(text, "=") < 1 {
					at := fmt.Sprintf("%s[%d].literals[%d]", field, i, j)
					k.wrong(parsed.problem(at, "%s must be KEY=VALUE", at))
				}
			}
		}
	}
}

// countGenerator counts the keys and bytes of a generated object.
func (k *kustomized) countGenerator(dir, kind string, value any, t *cost) {
	entry, _ := value.(map[string]any)
	keys, size := 0, minJSONSize(entry)
	name, _ := entry["name"].(string)
	for field, value := range entry {
		list, _ := value.([]any)
		if text, ok := value.(string); ok {
			list = []any{text}
		}
		switch field {
		case "literals":
			keys += len(list)
		case "files", "envs", "env":
			for _, item := range list {
				text, _ := item.(string)
				b, err := k.content(path.Join(dir, ref{value: text, keyed: field == "files"}.location()))
				if err != nil {
					continue // it was reported
				}
				size += len(b)
				if keys++; field != "files" {
					keys += bytes.Count(b, []byte{'\n'})
				}
			}
		}
	}

	t.generator(kind, name, keys, size)
}

// plugin counts a plugin that stands in a document of its own.
func (t *cost) plugin(k *kustomized, in *kustomization, objects []source, fields map[string]any) {
	kind, _ := fields["kind"].(string)
	switch {
	case strings.HasSuffix(kind, "Generator"):
		k.countGenerator(in.dir, kind, fields, t)
	case strings.HasPrefix(kind, "Patch"):
		t.patches(objects, k.patchesIn(in.dir, fields))
	case kind == "ReplacementTransformer":
		if wrong := t.replacements(objects, k.replacementsIn(in.dir, fields)); wrong != "" {
			k.wrong(in.problem("transformers", "%s", wrong))
		}
	case kind == "ImageTagTransformer", kind == "ReplicaCountTransformer":
		t.images(objects, 1)
	}
	t.settings(objects, fields)
}

// finish counts what is done once, at the end, and looks at the whole again.
func (k *kustomized) finish(file string, t cost) {
	if k.parsed == nil || len(k.problems) > 0 {
		return
	}

	t.references()
	k.steps = min(t.pairs, maxPairs) + min(t.took(), maxSteps)
	if k.parsed.fields["buildMetadata"] != nil {
		t.spend("notes of transformers on objects", product(t.marks, stepsPerMark))
	}
	if much := t.exceeded(); much != "" && !t.reported {
		k.wrong(problem(file, 1, much))
	}
	k.checked, k.plugins = nil, nil // they hold all objects

	k.addOrigins(k.parsed, t)
	k.served[file] = encode(k.parsed.fields)
}

// wrong records problems and reports whether there were any.
func (k *kustomized) wrong(problems ...fleet.Problem) bool {
	k.problems = append(k.problems, problems...)
	return len(problems) > 0
}

// maxMarks limits the work that is done to know where an object comes from.
const maxMarks = 300_000

// addOrigins makes kustomize annotate each object with its origin. It then notes each
// transformer on it too, and reads all notes again for each: where that is too much, an
// object is looked for by its kind and name.
func (k *kustomized) addOrigins(root *kustomization, t cost) {
	if t.marks > maxMarks {
		return
	}

	metadata, _ := root.fields["buildMetadata"].([]any)
	if !slices.Contains(metadata, any(types.OriginAnnotations)) {
		root.fields["buildMetadata"] = append(slices.Clone(metadata), types.OriginAnnotations)
		k.strip = true
	}
}

// checkRef validates one reference and returns its cost. so is the cost of the
// kustomization up to here.
func (k *kustomized) checkRef(from *kustomization, r ref, users []string, so *cost) (none cost) {
	if r.inline() {
		k.checkInline(from, r)
		return none
	}

	location := r.location()
	switch {
	case location == "":
		return none // kustomize reports it
	case r.remote():
		k.wrong(from.problem(r.field, "%s: remote content is not fetched; commit it instead", r.name()))
		return none
	case path.IsAbs(location) || !inTree(path.Join(from.dir, location)):
		k.wrong(from.problem(r.field, "%s: %v", r.name(), errOutside))
		return none
	}

	target := path.Join(from.dir, location)
	switch s := k.stat(target); {
	case s == absent:
		k.wrong(from.problem(r.field, "%s: %s", r.name(), k.missingReason(target)))
		return none
	case s == special:
		_, err := read(k.fsys, target)
		if err == nil {
			err = fmt.Errorf("not a regular file")
		}
		k.wrong(from.problem(r.field, "%s: %s", r.name(), cause(err)))
		return none
	case s == directory:
		return k.checkDir(from, r, target, users, so)
	case r.kind == refDir:
		k.wrong(from.problem(r.field, "%s: must be the directory of a component", r.name()))
		return none
	}

	if r.kind == refEither || r.kind == refDir {
		// With a leading dot, kustomize cannot take it for a host.
		r.set(explicitRelative(r.value))
	}

	return k.checkFile(from, r, target)
}

// explicitRelative returns a path that starts with "./" or "../".
func explicitRelative(value string) string {
	if value = path.Clean(value); !strings.HasPrefix(value, "../") && value != ".." {
		return "./" + value
	}
	return value
}

// missingReason says why a path cannot be found.
func (k *kustomized) missingReason(target string) string {
	if _, err := fs.ReadFile(k.fsys, target); err != nil {
		if why := cause(err); !strings.Contains(why, "not exist") {
			return why
		}
	}
	return "no such file or directory"
}

func (k *kustomized) checkDir(from *kustomization, r ref, target string, users []string, so *cost) (none cost) {
	switch {
	case r.kind == refPlugin:
		k.wrong(from.problem(r.field, "%s: a directory of plugins is not supported; list its files", r.name()))
		return none
	case r.kind != refEither && r.kind != refDir:
		k.wrong(from.problem(r.field, "%s: is a directory", r.name()))
		return none
	case slices.Contains(users, target):
		k.wrong(from.problem(r.field, "%s: a kustomization cannot use itself (%s)", r.name(), strings.Join(append(users, target), " uses ")))
		return none
	case len(kustomizationFile(k.fsys, target)) == 0:
		for _, name := range konfig.RecognizedKustomizationFileNames() {
			k.stat(path.Join(target, name))
		}
		k.wrong(from.problem(r.field, "%s: the directory has no kustomization.yaml", r.name()))
		return none
	}

	r.set(explicitRelative(r.value))
	var around *cost
	if r.kind == refDir {
		around = so
	}
	_, t := k.check(target, users, around)
	return t
}

// checkFile reads a file before kustomize does, whose errors have no lines and
// whose time is unbounded.
func (k *kustomized) checkFile(from *kustomization, r ref, target string) (t cost) {
	b, err := k.content(target)
	if err != nil {
		k.wrong(from.problem(r.field, "%s: %s", r.name(), cause(err)))
		return t
	}

	t.bytes = len(b)

	switch r.kind {
	case refEither:
		docs, wrong := parseFile(target, b)
		k.wrong(wrong...)
		k.sources[target] = sourcesOf(docs)
		k.served[target] = bytes.TrimPrefix(b, byteOrderMark)
		t.objects = len(docs)
		for _, d := range docs {
			t.all = append(t.all, sourceOf(d))
		}
	case refPlugin:
		docs, wrong := parseFile(target, b)
		if !k.wrong(wrong...) {
			k.served[target] = k.checkPlugins(from.dir, docs)
		}
		t.objects = len(docs)
	case refPatch, refYAML:
		if err := checkText(b); err != nil {
			k.wrong(problem(target, 0, err.Error()))
			return t
		}
		if strings.HasPrefix(r.field, "crds[") {
			t.specs = specsOfDefinitions(b)
			if t.specs > maxSpecs {
				k.wrong(problem(target, 1, fmt.Sprintf("the definitions refer to each other without end, or lead to more than %d fields", maxSpecs)))
			}
		} else if strings.HasPrefix(r.field, "configurations[") {
			t.specs = specsOfConfiguration(b)
		}
		for _, p := range split(b, strings.HasSuffix(target, ".json")) {
			if _, err := p.toJSON(); err != nil && !p.json {
				k.wrong(p.faults(target, err)...)
			}
		}
		k.served[target] = bytes.TrimPrefix(b, byteOrderMark)
	case refFile:
		if r.field == "openapi.path" {
			k.checkSchema(target, b)
		}
	}

	return t
}

// checkInline validates content in the kustomization itself.
func (k *kustomized) checkInline(from *kustomization, r ref) {
	if r.kind == refPatch {
		for _, p := range split([]byte(r.value), false) {
			if _, err := p.toJSON(); err != nil {
				k.wrong(from.problem(r.field, "%s: %s", fieldName(r.field), oneLine(withoutValues(err.Error()))))
			}
		}
		return
	}

	docs, wrong := parseFile(from.file, []byte(r.value))
	if len(wrong) > 0 {
		k.wrong(from.problem(r.field, "%s: %s", fieldName(r.field), wrong[0].Message))
		return
	}

	at := from.problem(r.field, "").Origin
	for _, d := range docs {
		d.origin, d.lines = at, func() map[string]int { return nil }
	}

	r.set(string(k.checkPlugins(from.dir, docs)))
}

// checkPlugins allows only kustomize's builtin plugins, which read nothing but
// the tree, and re-encodes them so that no second parser can disagree.
func (k *kustomized) checkPlugins(dir string, docs []*document) []byte {
	var out bytes.Buffer
	for _, d := range docs {
		k.plugins[dir] = append(k.plugins[dir], d.object)
		kind, _ := d.object["kind"].(string)
		switch {
		case d.object["apiVersion"] != "builtin":
			k.wrong(d.problem("kind", "plugin %s: only builtin plugins of kustomize are supported (apiVersion: builtin)", kind))
		case strings.HasPrefix(kind, "Helm"):
			k.wrong(d.problem("kind", "plugin %s: helm is not run; commit the rendered chart", kind))
		}

		k.checkPluginPaths(d, d.object)
		fmt.Fprintf(&out, "---\n%s\n", encode(d.object))
	}

	return out.Bytes()
}

// checkPluginPaths refuses URLs wherever a plugin would load a file.
func (k *kustomized) checkPluginPaths(d *document, value any) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			k.checkPluginPaths(d, v)
		}
	case map[string]any:
		inner := &kustomization{}
		inner.findPaths("", refFile, value)
		for _, r := range inner.refs {
			if r.remote() {
				k.wrong(d.problem("", "%s: remote content is not fetched; commit it instead", withoutUser(r.location())))
			}
		}
		for _, v := range value {
			k.checkPluginPaths(d, v)
		}
	}
}

// fieldName is a field without its index in a list.
func fieldName(field string) string {
	field, _, _ = strings.Cut(field, "[")
	return field
}
