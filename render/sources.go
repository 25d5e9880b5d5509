// SPDX-License-Identifier: Apache-2.0

package render

import "strings"

// sources are the documents of a file, from which objects are made.
type sources struct {
	docs  []*document
	named map[[2]string]*document // by kind and name, the first of each
}

func sourcesOf(docs []*document) *sources {
	s := &sources{docs, map[[2]string]*document{}}
	for _, d := range docs {
		kind, name := d.called()
		if key := [2]string{kind, name}; s.named[key] == nil {
			s.named[key] = d
		}
	}
	return s
}

// of is the document that an object was made from. Its name may have got a
// prefix, a suffix or both.
func (s *sources) of(kind, name string) (best *document) {
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
		if k, named := d.called(); k == kind && strings.Contains(name, named) && len(named) > longest {
			best, longest = d, len(named)
		}
	}
	return best
}

// called is what a document says that it is; "" for what it does not say.
func (d *document) called() (kind, name string) {
	meta, _ := d.object["metadata"].(map[string]any)
	kind, _ = d.object["kind"].(string)
	name, _ = meta["name"].(string)
	return kind, name
}
