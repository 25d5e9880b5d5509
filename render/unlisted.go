// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/fairlead/fairlead/fleet"
)

// Unlisted are the documents that decide what goes where (clusters, policies, overrides)
// and have no effect: they stand below a kustomization, and no kustomization lists their
// file. It reads what the fold never reads, so only a user who asks pays for it.
func Unlisted(fsys fs.FS) (found []fleet.Finding) {
	w := walk(fsys)
	w.resolve()
	if len(w.problems) > 0 {
		return nil // which refuse the tree, and are told of
	}

	listed := map[string]bool{}
	for dir := range w.layout.uses {
		k, _, wrong := readKustomization(dir, kustomizationFile(fsys, dir), func(name string) ([]byte, error) { return read(fsys, name) })
		if k == nil || len(wrong) > 0 {
			continue
		}
		for _, r := range k.refs {
			listed[path.Join(dir, r.location())] = true
		}
	}

	kinds := fleet.Known()
	for _, file := range w.below {
		if listed[file] {
			continue
		}

		b, err := read(fsys, file)
		if err != nil || !bytes.Contains(b, []byte("karmada.io/")) && !bytes.Contains(b, []byte("fairlead.dev/")) {
			continue
		}
		docs, _ := parseFile(file, b)
		for _, d := range docs {
			if d.isControl(kinds) {
				found = append(found, w.layout.unlisted(d))
			}
		}
	}
	return found
}

// unlisted is the finding for a document that no kustomization lists.
func (l *layout) unlisted(d *document) fleet.Finding {
	kind, name := d.kindAndName()
	above := slices.DeleteFunc(parents(d.origin.File), func(dir string) bool { return !l.dirs[dir] })
	return fleet.Finding{
		Code: fleet.FindingUnlisted, Severity: fleet.SeverityCaution, Origin: d.origin,
		Message: fmt.Sprintf("%s %s has no effect: it is below the kustomization in %s, and none lists its file; list it there, move it out, or name it in .fairleadignore", kind, name, above[len(above)-1]),
	}
}
