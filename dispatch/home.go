// SPDX-License-Identifier: Apache-2.0

package dispatch

import "strings"

// Flux and Argo CD apply the files of a cluster together, and none of them when
// one is of a namespace that is missing. So the namespace goes along with what
// is in it, and its file stays for as long as there is anything in its folder.

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
	doc = stayingFile(name, doc)
	section(section(doc, "metadata"), "annotations")[fluxApply] = "IfNotPresent"
	return doc
}

// stayingFile is what becomes of the document of a namespace that the fleet gave
// up, and that something is still in. It goes on being applied, so that the
// cluster learns that nothing is to prune it.
func stayingFile(name string, doc map[string]any) map[string]any {
	doc = onTheWay(name, doc)
	KeepFromPruning(section(section(doc, "metadata"), "annotations"))
	return doc
}
