// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Flux tries the files of a cluster together, and applies none when one is of a
// namespace that is missing, or of a kind. So a namespace goes along with what
// is in it; and its file, and that of a definition, stays for as long as there
// are files that need it.

// homeRef is a namespace, when its file has to be there; false for what every
// cluster has.
func homeRef(namespace string) (Ref, bool) {
	everywhere := namespace == "" || namespace == "default" || strings.HasPrefix(namespace, "kube-")
	return Ref{namespaceKind, "", namespace}, !everywhere
}

// homeFile is the document of a namespace that nobody placed, from the fleet's
// if there is one. Nothing prunes it, and Flux leaves one alone that is there
// already: what others have put on it is not ours to take.
func homeFile(name string, fleets func() map[string]any) map[string]any {
	var doc map[string]any
	if fleets != nil {
		doc = fleets()
	}
	if doc == nil {
		ref, _ := homeRef(name)
		doc = identity(ref)
	}
	doc = stayingFile(doc)
	section(section(doc, "metadata"), "annotations")[fluxApply] = "IfNotPresent"
	return doc
}

// stayingFile is what becomes of the document of a namespace or a definition
// that the fleet gave up, and that something still needs. It goes on being
// applied, so that the cluster learns that nothing is to prune it.
func stayingFile(doc map[string]any) map[string]any {
	doc = unplaced(doc)
	KeepFromPruning(section(section(doc, "metadata"), "annotations"))
	return doc
}

// needs are the files that need an object: those in a folder, "" for any, whose
// names begin so.
type needs struct{ folder, prefix string }

// needsOf is of a namespace or a definition, with its document.
func needsOf(ref Ref, doc map[string]any) needs {
	if isNamespace(ref.ID()) {
		return needs{folder: safe(ref.Name)}
	}
	var of Ref
	spec, _ := doc["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	of.Group, _ = spec["group"].(string)
	of.Kind, _ = names["kind"].(string)
	return needs{prefix: filesOf(of)}
}

func (n needs) are(file string) bool {
	folder, name := path.Split(file)
	return (n.folder == "" || n.folder+"/" == folder) && strings.HasPrefix(name, n.prefix)
}

// someIn is whether there are such files, other than those that are to go.
func (n needs) someIn(files fs.FS, goes func(file string) bool) (bool, error) {
	folders := []string{n.folder}
	if n.folder == "" {
		entries, err := fs.ReadDir(files, ".")
		if err != nil {
			return false, &Error{Reason: Unavailable, Err: err}
		}
		folders = nil
		for _, e := range entries {
			if e.IsDir() {
				folders = append(folders, e.Name())
			}
		}
	}
	for _, folder := range folders {
		entries, err := fs.ReadDir(files, folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, &Error{Reason: Unavailable, Err: err}
		}
		for _, e := range entries {
			if file := folder + "/" + e.Name(); n.are(file) && !goes(file) {
				return true, nil
			}
		}
	}
	return false, nil
}
