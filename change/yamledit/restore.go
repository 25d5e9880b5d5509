// SPDX-License-Identifier: Apache-2.0

package yamledit

import (
	"bytes"
	"strings"
)

// Identity is what a document says of itself.
type Identity struct{ APIVersion, Kind, Namespace, Name string }

// Restore returns a file with documents as an earlier version of it has them. Only
// those that restores selects are replaced, and those that the file has no longer are
// added at its end; a document that the earlier version does not have stays.
func Restore(name string, now, then []byte, restores func(Identity) bool) ([]byte, error) {
	earlier, order, err := documents(name, then)
	if err != nil {
		return nil, err
	}

	file, err := Read(name, now)
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer
	there, at := map[Identity]bool{}, 0
	for _, p := range file.parts() {
		id, ok := p.identity()
		there[id] = true
		old := earlier[id]
		if !ok || old == nil || !restores(id) {
			continue
		}

		// What stands on the line of the marker before it belongs to the file as it is.
		marker := 0
		if p.start > 0 && !p.json {
			marker = bytes.IndexByte(p.text, '\n') + 1
		}
		out.Write(file.text[at : p.start+marker])
		out.Write(old.body())
		at = p.start + len(p.text)
	}
	out.Write(file.text[at:])

	for _, id := range order {
		if there[id] || !restores(id) {
			continue
		}
		if out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
			out.WriteByte('\n')
		}
		out.WriteString("---\n")
		out.Write(earlier[id].body())
	}

	return out.Bytes(), nil
}

// Identities are the objects of a file, in their order.
func Identities(name string, text []byte) ([]Identity, error) {
	_, order, err := documents(name, text)
	return order, err
}

// documents are the documents of a file that are objects, and their order.
func documents(name string, text []byte) (all map[Identity]*part, order []Identity, err error) {
	file, err := Read(name, text)
	if err != nil {
		return nil, nil, err
	}

	all = map[Identity]*part{}
	for _, p := range file.parts() {
		if id, ok := p.identity(); ok && all[id] == nil {
			all[id] = p
			order = append(order, id)
		}
	}
	return all, order, nil
}

// identity reports what a document is, and whether it is an object.
func (p *part) identity() (id Identity, ok bool) {
	v, err := p.decode()
	object, _ := v.(map[string]any)
	if err != nil || object == nil {
		return id, false
	}

	meta, _ := object["metadata"].(map[string]any)
	for _, f := range []struct {
		to   *string
		from any
	}{{&id.APIVersion, object["apiVersion"]}, {&id.Kind, object["kind"]}, {&id.Namespace, meta["namespace"]}, {&id.Name, meta["name"]}} {
		*f.to, _ = f.from.(string)
	}
	return id, id.Kind != "" && id.Name != ""
}

// body is the text of a document without the rest of its marker's line, ending with
// a line break.
func (p *part) body() []byte {
	text := string(p.text)
	if p.start > 0 && !p.json {
		_, text, _ = strings.Cut(text, "\n")
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return []byte(text)
}
