// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"regexp"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/fleet"
)

// unusedComponent is what a directory that no kustomization uses is if its own one is of
// kind Component: a notice. A component edits what uses it, so it is never deployed by
// itself, and a mistake in it refuses nothing (decision 56). nil for any other kind.
func unusedComponent(v *view, dir string) *fleet.Finding {
	found := kustomizationFile(v.fsys, dir)
	if len(found) != 1 {
		return nil
	}

	file := path.Join(dir, found[0])
	b, err := v.content(file)
	if err != nil || checkText(b) != nil || !isComponent(b) {
		return nil
	}

	for _, name := range konfig.RecognizedKustomizationFileNames() {
		v.stat(path.Join(dir, name)) // a second one is a mistake
	}
	return &fleet.Finding{
		Code: fleet.FindingUnusedComponent, Severity: fleet.SeverityNotice, Origin: fleet.Origin{File: file, Line: 1},
		Message: "no kustomization uses this Component, so it is not deployed",
	}
}

// kindOfComponent finds the kind in a kustomization that cannot be parsed.
var kindOfComponent = regexp.MustCompile(`(?m)^kind:[ \t]*["']?Component["']?[ \t]*(#.*)?\r?$`)

func isComponent(b []byte) bool {
	var k struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(b, &k); err != nil {
		return kindOfComponent.Match(b)
	}
	return k.Kind == types.ComponentKind
}
