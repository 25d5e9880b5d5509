// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/fairlead/fairlead/fleet"
)

// kustomization is one kustomization file, validated before kustomize sees it.
type kustomization struct {
	dir, file string
	fields    map[string]any
	lines     func() map[string]int
	refs      []ref
}

// ref is a field of a kustomization that refers to something to read.
type ref struct {
	field string // "resources[0]"
	kind  refKind
	value string
	keyed bool         // "key=path": the key names the file in a generated object
	set   func(string) // replaces the value in fields
}

type refKind int

const (
	refEither refKind = iota // a file, or the directory of a kustomization
	refDir                   // the directory of a component
	refYAML                  // a file that kustomize parses
	refFile                  // a file of any content
	refPatch                 // a file, or the patch itself
	refPlugin                // a file of plugin configurations, or one itself
)

// kustomizationFile returns the kustomization files of a directory. There
// should be at most one.
func kustomizationFile(fsys fs.FS, dir string) (found []string) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if s := stateOf(fsys, path.Join(dir, name)); s != absent && s != directory {
			found = append(found, name)
		}
	}
	return found
}

func isKustomizationFile(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

// readKustomization reads a directory's kustomization; found are its
// kustomization files. file is "" if there is none.
func readKustomization(dir string, found []string, content func(string) ([]byte, error)) (k *kustomization, file string, wrong []fleet.Problem) {
	if len(found) == 0 {
		return nil, "", nil
	}

	file = path.Join(dir, found[0])
	if len(found) > 1 {
		return nil, file, []fleet.Problem{problem(file, 1, fmt.Sprintf("%s exists too; a directory can have only one kustomization file", found[1]))}
	}

	b, err := content(file)
	if err != nil {
		return nil, file, []fleet.Problem{problem(file, 0, cause(err))}
	}

	k, wrong = parseKustomization(dir, found[0], b)
	return k, file, wrong
}

// parseKustomization decodes a file as kustomize would, whose field names
// ignore case, but refuses fields that are set twice.
func parseKustomization(dir, file string, b []byte) (*kustomization, []fleet.Problem) {
	name := path.Join(dir, file)
	if err := checkText(b); err != nil {
		return nil, []fleet.Problem{problem(name, 0, err.Error())}
	}

	p := split(b, false)[0]
	for _, other := range split(b, false) {
		if p.blank() {
			p = other // skip markers and comments before the content
		}
	}

	raw, err := p.toJSON()
	if err != nil {
		return nil, p.faults(name, err)
	}

	k := &kustomization{dir: dir, file: name, lines: p.lazyLines()}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, []fleet.Problem{problem(name, p.first, "kustomization must be an object")}
	}

	k.fields = make(map[string]any, len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		known, value := canonical(key), fields[key]
		if known != key {
			k.lines = aliased(k.lines, key, known)
		}
		if _, twice := k.fields[known]; twice {
			return nil, []fleet.Problem{k.problem(key, "%s is set twice", known)}
		}
		k.fields[known] = value
	}

	// kustomize would print a deprecation warning to the terminal.
	k.rename("bases", "resources")
	k.rename("imageTags", "images")
	if wrong := k.checkFields(); len(wrong) > 0 {
		return nil, wrong
	}

	k.findRefs()
	return k, nil
}

var unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)

// checkFields decodes the fields as kustomize will, but its errors have lines.
func (k *kustomization) checkFields() []fleet.Problem {
	err := new(types.Kustomization).Unmarshal(encode(k.fields))
	if err == nil {
		return nil
	}

	text := strings.TrimPrefix(oneLine(err.Error()), "invalid Kustomization: json: ")
	at := ""
	if m := unknownField.FindStringSubmatch(text); m != nil {
		at = m[1]
		for _, path := range slices.Sorted(maps.Keys(k.lines())) {
			if strings.HasSuffix(path, "."+m[1]) {
				at = path
			}
		}
	}

	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		at, text = mismatch.Field, fmt.Sprintf("%s is a %s, must be %s", mismatch.Field, mismatch.Value, fleet.TypeName(mismatch))
	}

	return []fleet.Problem{k.problem(at, "%s", text)}
}

// aliased gives a field in unusual case its usual name.
func aliased(lines func() map[string]int, spelled, known string) func() map[string]int {
	return func() map[string]int {
		d := document{lines: lines}
		d.alias(spelled, known)
		return lines()
	}
}

// fieldNames are the fields that refer to files; others keep their spelling.
var fieldNames = []string{
	"resources", "bases", "components", "crds", "configurations", "generators", "transformers", "validators",
	"patches", "patchesJson6902", "patchesStrategicMerge", "replacements", "configMapGenerator", "secretGenerator",
	"openapi", "helmCharts", "helmGlobals", "helmChartInflationGenerator", "buildMetadata", "images", "imageTags",
}

func canonical(key string) string {
	for _, name := range fieldNames {
		if strings.EqualFold(key, name) {
			return name
		}
	}
	return key
}

func (k *kustomization) rename(old, now string) {
	more, ok := k.fields[old].([]any)
	if !ok {
		return // kustomize reports a wrong type
	}

	have, ok := k.fields[now].([]any)
	if !ok && k.fields[now] != nil {
		return
	}

	k.fields[now] = append(have, more...)
	delete(k.fields, old)
}

func (k *kustomization) problem(field, format string, args ...any) fleet.Problem {
	d := document{origin: fleet.Origin{File: k.file}, lines: k.lines}
	return d.problem(field, format, args...)
}

// findRefs lists the references of the kustomization, in the order of
// fieldNames.
func (k *kustomization) findRefs() {
	kinds := map[string]refKind{
		"resources": refEither, "components": refDir, "crds": refYAML, "configurations": refYAML,
		"generators": refPlugin, "transformers": refPlugin, "validators": refPlugin,
		"patches": refPatch, "patchesJson6902": refPatch, "patchesStrategicMerge": refPatch, "replacements": refYAML,
		"configMapGenerator": refFile, "secretGenerator": refFile,
	}

	for _, field := range fieldNames {
		kind, ok := kinds[field]
		if !ok {
			continue
		}

		list, _ := k.fields[field].([]any)
		for i, entry := range list {
			at := fmt.Sprintf("%s[%d]", field, i)
			switch entry := entry.(type) {
			case string:
				k.refs = append(k.refs, ref{field: at, kind: kind, value: entry, set: func(s string) { list[i] = s }})
			case map[string]any:
				k.findPaths(at, kind, entry)
			}
		}
	}

	if openapi, ok := k.fields["openapi"].(map[string]any); ok {
		k.findPaths("openapi", refFile, openapi)
	}
}

// pathKeys are the keys, at any depth, under which kustomize's builtin plugins
// expect a file name.
var pathKeys = []string{"path", "paths", "files", "file", "envs", "env"}

func (k *kustomization) findPaths(at string, kind refKind, entry map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		where := at + "." + key
		isPath := slices.ContainsFunc(pathKeys, func(name string) bool { return strings.EqualFold(name, key) })
		keyed := strings.EqualFold(key, "files")
		switch value := entry[key].(type) {
		case string:
			if isPath {
				k.refs = append(k.refs, ref{where, kind, value, keyed, func(s string) { entry[key] = s }})
			} else if kind == refPatch && strings.EqualFold(key, "patch") {
				k.refs = append(k.refs, ref{where, refPatch, value, false, func(string) {}})
			}
		case []any:
			for i, v := range value {
				if s, ok := v.(string); ok && isPath {
					k.refs = append(k.refs, ref{fmt.Sprintf("%s[%d]", where, i), kind, s, keyed, func(s string) { value[i] = s }})
				}
			}
		}
	}
}

// uses returns the directories of the kustomizations that this one may use.
// They need not exist.
func (k *kustomization) uses() (dirs []string) {
	for _, r := range k.refs {
		if r.kind != refEither && r.kind != refDir || r.remote() {
			continue
		}
		if target := path.Join(k.dir, r.value); inTree(target) && !path.IsAbs(r.value) {
			dirs = append(dirs, target)
		}
	}

	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func inTree(target string) bool { return target != ".." && !strings.HasPrefix(target, "../") }

// inline reports whether the value is content, not a path.
func (r ref) inline() bool {
	switch r.kind {
	case refPlugin:
		return strings.ContainsAny(r.value, "\n{") || strings.Contains(r.value, ": ")
	case refPatch:
		return strings.HasSuffix(r.field, ".patch") || strings.ContainsAny(r.value, "\n{") || strings.Contains(r.value, ": ")
	}
	return false
}

// location is the path without a generator's key.
func (r ref) location() string {
	if r.keyed {
		if _, after, ok := strings.Cut(r.value, "="); ok {
			return after
		}
	}
	return r.value
}

// name says which reference is meant. In a generator of a Secret it may be a value that
// stands in the wrong list, and is not repeated.
func (r ref) name() string {
	if strings.HasPrefix(r.field, "secretGenerator[") {
		return r.field
	}
	return fieldName(r.field) + " " + withoutUser(r.location())
}

// withoutUser is an address without the name and password of a user.
func withoutUser(address string) string { return userInfo.ReplaceAllString(address, "://") }

var userInfo = regexp.MustCompile(`://[^/]*@`)

// hostLike matches what kustomize may take for a git repository: a prefix
// "git::", a user, or GitHub's name.
var hostLike = regexp.MustCompile(`(?i)^(?:[a-z][a-z0-9+.-]*::|[a-z][a-z0-9-]*@|github\.com[/:])`)

// remote reports whether kustomize would fetch it.
func (r ref) remote() bool {
	if r.inline() {
		return false
	}
	return strings.Contains(r.value, "://") || hostLike.MatchString(r.value) || hostLike.MatchString(r.location())
}
