// SPDX-License-Identifier: Apache-2.0

package render

import "strings"

// sources are the documents of a file that objects are built from.
type sources struct {
	docs  []*document
	named map[[2]string]*document // by kind and name; the first of each
}

func sourcesOf(docs []*document) *sources {
	s := &sources{docs, map[[2]string]*document{}}
	for _, d := range docs {
		kind, name := d.kindAndName()
		if key := [2]string{kind, name}; s.named[key] == nil {
			s.named[key] = d
		}
	}
	return s
}

// find returns the document that an object was built from. kustomize may have
// added a prefix or suffix to its name.
func (s *sources) find(kind, name string) (best *document) {
	switch {
	case s == nil:
		return nil
	case len(s.docs) == 1:
		return s.docs[0]
	case s.named[[2]string{kind, name}] != nil:
		return s.named[[2]string{kind, name}]
	}

	longest := -1
	for _, d := range s.docs {
		if k, named := d.kindAndName(); k == kind && strings.Contains(name, named) && len(named) > longest {
			best, longest = d, len(named)
		}
	}

	return best
}

// kindAndName returns the kind and name that a document gives; "" for a missing
// one.
func (d *document) kindAndName() (kind, name string) {
	meta, _ := d.object["metadata"].(map[string]any)
	kind, _ = d.object["kind"].(string)
	name, _ = meta["name"].(string)
	return kind, name
}
