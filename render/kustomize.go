// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/propagate"
)

// kustomized builds one kustomization root. It gives either documents or
// problems.
type kustomized struct {
	*view
	root     string
	checked  map[string]toll // zero while it is being checked
	problems []propagate.Problem
	schema   bool // one of them brings its own OpenAPI schema
	strip    bool // nobody asked for the annotations that say where objects come from
	sources  map[string]*sources
}

func kustomize(v *view, root string) (docs []*document, problems []propagate.Problem) {
	k := &kustomized{view: v, root: root, checked: map[string]toll{}, sources: map[string]*sources{}}
	file := k.check(root, true, nil)
	if len(k.problems) > 0 {
		return nil, k.problems
	}
	defer func() {
		// kustomize panics on some input that it cannot read.
		if p := recover(); p != nil {
			docs, problems = nil, []propagate.Problem{problem(file, 0, fmt.Sprintf("kustomize cannot build this: %v", p))}
		}
	}()
	built, err := k.build()
	if v.outside != "" {
		return nil, []propagate.Problem{problem(file, 0, k.relative(v.outside)+": "+errOutside.Error())}
	}
	if err != nil {
		return nil, []propagate.Problem{problem(file, 0, "kustomize: "+k.tidy(err))}
	}
	return k.documents(file, built)
}

// openapiSchema is the part of kustomize that the whole process shares: an
// OpenAPI schema that one build sets and the next one would be built with.
var openapiSchema struct {
	sync.Mutex
	custom bool // the last build brought its own
}

// build runs kustomize. Only one build runs at a time, and none sees the
// schema of another.
func (k *kustomized) build() (resmap.ResMap, error) {
	openapiSchema.Lock()
	defer openapiSchema.Unlock()
	if k.schema || openapiSchema.custom {
		openapi.ResetOpenAPI()
	}
	openapiSchema.custom = k.schema
	return krusty.MakeKustomizer(&krusty.Options{
		Reorder: krusty.ReorderOptionNone,
		// The view has nothing but the tree, so "../base" may be loaded.
		LoadRestrictions: types.LoadRestrictionsNone,
		PluginConfig:     types.DisabledPluginConfig(),
	}).Run(k.view, path.Join(mount, k.root))
}

// relative shows a path of the view as the user wrote it.
func (k *kustomized) relative(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, mount), "/")
}

func (k *kustomized) tidy(err error) string {
	text := oneLine(err.Error())
	text = strings.ReplaceAll(text, mount+"/", "")
	return strings.ReplaceAll(text, mount, ".")
}

// check reads a kustomization and all that it uses, refuses what must not be
// done, and decides what kustomize gets to see. It returns the file.
func (k *kustomized) check(dir string, isRoot bool, users []string) string {
	if _, done := k.checked[dir]; done {
		return ""
	}
	k.checked[dir] = toll{}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		k.look(path.Join(dir, name)) // also those that would be one too many
	}
	parsed, file, wrong := readKustomization(dir, kustomizationFile(k.fsys, dir), k.content)
	switch {
	case file == "":
		return path.Join(dir, "kustomization.yaml") // kustomize has words for it
	case k.wrong(wrong...):
		return file
	}
	t := toll{uses: 1, objects: parsed.generated()}
	for _, r := range parsed.refs {
		t.add(k.checkRef(parsed, r, append(users, dir)))
	}
	t.pairs += t.objects * t.objects
	for _, helm := range []string{"helmCharts", "helmGlobals", "helmChartInflationGenerator"} {
		if parsed.fields[helm] != nil {
			k.wrong(parsed.problem(helm, "%s: helm is not run; commit the rendered chart", helm))
		}
	}
	if much := t.excess(); much != "" && !t.told {
		t.told = k.wrong(problem(file, 1, much))
	}
	k.checked[dir] = t.bounded()
	k.schema = k.schema || parsed.fields["openapi"] != nil
	if isRoot {
		k.addOrigins(parsed)
	}
	k.served[file] = encode(parsed.fields)
	return file
}

// wrong records problems and reports whether there were any.
func (k *kustomized) wrong(problems ...propagate.Problem) bool {
	k.problems = append(k.problems, problems...)
	return len(problems) > 0
}

// addOrigins makes kustomize say where each object comes from.
func (k *kustomized) addOrigins(root *kustomization) {
	metadata, _ := root.fields["buildMetadata"].([]any)
	if !slices.Contains(metadata, any(types.OriginAnnotations)) {
		root.fields["buildMetadata"] = append(slices.Clone(metadata), types.OriginAnnotations)
		k.strip = true
	}
}

// checkRef looks at one reference and returns its toll.
func (k *kustomized) checkRef(from *kustomization, r ref, users []string) (none toll) {
	if r.inline() {
		k.checkInline(from, r)
		return none
	}
	location := r.location()
	switch {
	case location == "":
		return none // kustomize has words for it
	case r.remote():
		k.wrong(from.problem(r.field, "%s %s: nothing is fetched; commit what it names", plain(r.field), location))
		return none
	case path.IsAbs(location) || !inTree(path.Join(from.dir, location)):
		k.wrong(from.problem(r.field, "%s %s: %v", plain(r.field), location, errOutside))
		return none
	}
	target := path.Join(from.dir, location)
	switch s := k.look(target); {
	case s == absent:
		k.wrong(from.problem(r.field, "%s %s: %s", plain(r.field), location, k.whyAbsent(target)))
		return none
	case s == special:
		_, err := read(k.fsys, target)
		if err == nil {
			err = fmt.Errorf("not a regular file")
		}
		k.wrong(from.problem(r.field, "%s %s: %s", plain(r.field), location, cause(err)))
		return none
	case s == directory:
		return k.checkDir(from, r, target, users)
	case r.kind == refDir:
		k.wrong(from.problem(r.field, "%s %s: must be the directory of a component", plain(r.field), location))
		return none
	}
	if r.kind == refEither || r.kind == refDir {
		// With a dot in front nothing can be taken for a host.
		r.set(dotted(r.value))
	}
	return toll{objects: k.checkFile(from, r, target)}
}

// dotted makes a path that starts with "./" or "../".
func dotted(value string) string {
	if value = path.Clean(value); !strings.HasPrefix(value, "../") && value != ".." {
		return "./" + value
	}
	return value
}

// whyAbsent finds what is in the way of a path.
func (k *kustomized) whyAbsent(target string) string {
	if _, err := fs.ReadFile(k.fsys, target); err != nil {
		if why := cause(err); !strings.Contains(why, "not exist") {
			return why
		}
	}
	return "no such file or directory"
}

func (k *kustomized) checkDir(from *kustomization, r ref, target string, users []string) (none toll) {
	switch {
	case r.kind == refPlugin:
		k.wrong(from.problem(r.field, "%s %s: a directory of plugins is not supported, name its files", plain(r.field), r.value))
		return none
	case r.kind != refEither && r.kind != refDir:
		k.wrong(from.problem(r.field, "%s %s: is a directory", plain(r.field), r.value))
		return none
	case slices.Contains(users, target):
		k.wrong(from.problem(r.field, "%s %s: a kustomization cannot use itself (%s)", plain(r.field), r.value, strings.Join(append(users, target), " uses ")))
		return none
	case len(kustomizationFile(k.fsys, target)) == 0:
		for _, name := range konfig.RecognizedKustomizationFileNames() {
			k.look(path.Join(target, name))
		}
		k.wrong(from.problem(r.field, "%s %s: the directory has no kustomization.yaml", plain(r.field), r.value))
		return none
	}
	r.set(dotted(r.value))
	k.check(target, false, users)
	return k.checked[target]
}

// checkFile reads what kustomize will read, for its own errors have no lines,
// and some of what it takes would cost too much. It returns how many objects
// there are.
func (k *kustomized) checkFile(from *kustomization, r ref, target string) (objects int) {
	b, err := k.content(target)
	if err != nil {
		k.wrong(from.problem(r.field, "%s %s: %s", plain(r.field), r.value, cause(err)))
		return 0
	}
	switch r.kind {
	case refEither:
		docs, wrong := parseFile(target, b)
		k.wrong(wrong...)
		k.sources[target] = sourcesOf(docs)
		k.served[target] = bytes.TrimPrefix(b, byteOrderMark)
		return len(docs)
	case refPlugin:
		docs, wrong := parseFile(target, b)
		if !k.wrong(wrong...) {
			k.served[target] = k.checkPlugins(docs)
		}
		return len(docs)
	case refPatch, refYAML:
		if err := checkText(b); err != nil {
			k.wrong(problem(target, 0, err.Error()))
			return 0
		}
		for _, p := range split(b, strings.HasSuffix(target, ".json")) {
			if _, err := yaml.YAMLToJSONStrict(p.text); err != nil && !p.json {
				k.wrong(p.faults(target, err)...)
			}
		}
		k.served[target] = bytes.TrimPrefix(b, byteOrderMark)
	}
	return 0
}

// checkInline checks content that stands in the kustomization itself.
func (k *kustomized) checkInline(from *kustomization, r ref) {
	if r.kind == refPatch {
		for _, p := range split([]byte(r.value), false) {
			if _, err := yaml.YAMLToJSONStrict(p.text); err != nil {
				k.wrong(from.problem(r.field, "%s: %s", plain(r.field), oneLine(err.Error())))
			}
		}
		return
	}
	docs, wrong := parseFile(from.file, []byte(r.value))
	if len(wrong) > 0 {
		k.wrong(from.problem(r.field, "%s: %s", plain(r.field), wrong[0].Message))
		return
	}
	at := from.problem(r.field, "").Origin
	for _, d := range docs {
		d.origin, d.lines = at, func() map[string]int { return nil }
	}
	r.set(string(k.checkPlugins(docs)))
}

// checkPlugins lets the plugins pass that are part of kustomize and read only
// the tree, in a form that leaves nothing to a second parser's taste.
func (k *kustomized) checkPlugins(docs []*document) []byte {
	var out bytes.Buffer
	for _, d := range docs {
		kind, _ := d.object["kind"].(string)
		switch {
		case d.object["apiVersion"] != "builtin":
			k.wrong(d.problem("kind", "plugin %s: only plugins that are part of kustomize are run (apiVersion: builtin)", kind))
		case strings.HasPrefix(kind, "Helm"):
			k.wrong(d.problem("kind", "plugin %s: helm is not run; commit the rendered chart", kind))
		}
		k.checkPluginPaths(d, d.object)
		fmt.Fprintf(&out, "---\n%s\n", encode(d.object))
	}
	return out.Bytes()
}

// checkPluginPaths refuses urls wherever a plugin would load a file.
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
				k.wrong(d.problem("", "%s: nothing is fetched; commit what it names", r.location()))
			}
		}
		for _, v := range value {
			k.checkPluginPaths(d, v)
		}
	}
}

// plain is a field without its position in a list.
func plain(field string) string {
	field, _, _ = strings.Cut(field, "[")
	return field
}

// originAnnotation is where kustomize writes what it knows of an object.
const originAnnotation = "config.kubernetes.io/origin"

// documents reads what was built.
func (k *kustomized) documents(file string, built resmap.ResMap) ([]*document, []propagate.Problem) {
	if n := built.Size(); n > maxObjects {
		return nil, []propagate.Problem{problem(file, 0, fmt.Sprintf("kustomization makes %d objects, at most %d are read", n, maxObjects))}
	}
	size := 0
	docs := make([]*document, 0, built.Size())
	for _, resource := range built.Resources() {
		b, err := resource.MarshalJSON()
		if err != nil {
			return nil, []propagate.Problem{problem(file, 0, fmt.Sprintf("kustomize: object %s: %s", resource.CurId(), oneLine(err.Error())))}
		}
		if size += len(b); size > maxOutput {
			return nil, []propagate.Problem{problem(file, 0, fmt.Sprintf("kustomization makes more than %d bytes", maxOutput))}
		}
		object, err := decode(b)
		if err != nil {
			return nil, []propagate.Problem{problem(file, 0, fmt.Sprintf("kustomize: object %s: %s", resource.CurId(), oneLine(err.Error())))}
		}
		d := &document{object: object, origin: propagate.Origin{File: file}, lines: func() map[string]int { return nil }}
		k.locate(d)
		docs = append(docs, d)
	}
	return docs, nil
}

// locate finds the file and line that an object comes from.
func (k *kustomized) locate(d *document) {
	meta, _ := d.object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	text, _ := annotations[originAnnotation].(string)
	if k.strip && text != "" {
		if delete(annotations, originAnnotation); len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}
	var origin struct{ Path, ConfiguredIn string }
	if raw, err := yaml.YAMLToJSON([]byte(text)); err == nil {
		_ = json.Unmarshal(raw, &origin) // what cannot be read is not known
	}
	name, _ := meta["name"].(string)
	kind, _ := d.object["kind"].(string)
	switch {
	case origin.Path != "":
		d.origin.File = path.Join(k.root, origin.Path)
		if source := k.sources[d.origin.File].of(kind, name); source != nil {
			d.origin, d.lines = source.origin, source.lines
		}
	case origin.ConfiguredIn != "":
		d.origin.File = path.Join(k.root, origin.ConfiguredIn)
		d.origin.Line = k.generatorLine(d.origin.File, kind, name)
	}
}

// generatorLine is the line of the generator that makes a ConfigMap or Secret.
func (k *kustomized) generatorLine(file, kind, name string) int {
	b, err := read(k.fsys, file)
	if err != nil {
		return 0
	}
	parsed, wrong := parseKustomization(path.Dir(file), path.Base(file), b)
	if len(wrong) > 0 {
		return 0
	}
	field := map[string]string{"ConfigMap": "configMapGenerator", "Secret": "secretGenerator"}[kind]
	list, _ := parsed.fields[field].([]any)
	longest, line := -1, 0
	for i, entry := range list {
		generator, _ := entry.(map[string]any)
		named, _ := generator["name"].(string)
		if strings.Contains(name, named) && len(named) > longest {
			longest, line = len(named), parsed.problem(fmt.Sprintf("%s[%d]", field, i), "").Line
		}
	}
	return line
}
