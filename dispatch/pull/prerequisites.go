// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// Flux tries the files of a cluster together, and applies none when one is of a
// namespace that is missing, or of a kind. So a namespace goes along with what
// is in it; and its file, and that of a definition, stays for as long as there
// are files that need it.

// namespaceRef is a namespace, when its file has to be there; false for what every
// cluster has.
func namespaceRef(namespace string) (member.Ref, bool) {
	everywhere := namespace == "" || namespace == "default" || strings.HasPrefix(namespace, "kube-")
	return member.Ref{GroupVersionKind: member.NamespaceKind, Namespace: "", Name: namespace}, !everywhere
}

// namespaceFile is the document of a namespace that nobody placed, from the fleet's
// if there is one. Nothing prunes it, and Flux leaves one alone that is there
// already: what others have put on it is not ours to take.
func namespaceFile(name string, opt member.ApplyOptions) map[string]any {
	var doc map[string]any
	if opt.Namespace != nil {
		doc = opt.Namespace()
	}
	if doc == nil {
		ref, _ := namespaceRef(name)
		doc = member.Identity(ref)
	}
	doc = stayingFile(doc, opt.Marker)
	object.Section(object.Section(doc, "metadata"), "annotations")[object.FluxApply] = "IfNotPresent"
	return doc
}

// stayingFile is what becomes of the document of a namespace or a definition
// that the fleet gave up, and that something still needs. It goes on being
// applied, so that the cluster learns that nothing is to prune it.
func stayingFile(doc map[string]any, of object.Marker) map[string]any {
	doc = object.AsNeeded(doc, of)
	object.KeepFromPruning(object.Section(object.Section(doc, "metadata"), "annotations"))
	return doc
}

// needs are the files that need an object: those in a folder, "" for any, whose
// names begin so.
type needs struct{ folder, prefix string }

// needsOf is of a namespace or a definition, with its document.
func needsOf(ref member.Ref, doc map[string]any) needs {
	if object.IsNamespace(ref.ID()) {
		return needs{folder: safe(ref.Name)}
	}
	var of member.Ref
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

// someIn reports whether there are such files, other than those that are to go.
func (n needs) someIn(files fs.FS, goes func(file string) bool) (bool, error) {
	folders := []string{n.folder}
	if n.folder == "" {
		entries, err := fs.ReadDir(files, ".")
		if err != nil {
			return false, &member.Error{Reason: member.Unavailable, Err: err}
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
			return false, &member.Error{Reason: member.Unavailable, Err: err}
		}
		for _, e := range entries {
			if file := folder + "/" + e.Name(); n.are(file) && !goes(file) {
				return true, nil
			}
		}
	}
	return false, nil
}
