// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"maps"
	"slices"

	"github.com/fairlead/fairlead/compact"
	"github.com/fairlead/fairlead/object"
)

// packedHead is the part of a Saved that is not per binding.
type packedHead struct {
	*Saved
	Bindings             map[string]BindingRecord `json:",omitempty"` // follow
	Tombstones, Detached map[string]TombstoneRecord
}

// Write writes the saved state in the order of its bindings. What they have in common, as
// the clusters of a policy, is written once, and once in memory when it is read.
func (s *Saved) Write(w *compact.Writer) error {
	if err := w.JSON(packedHead{Saved: s, Tombstones: texts(s.Tombstones), Detached: texts(s.Detached)}); err != nil {
		return err
	}

	keys := texts(s.Bindings)
	w.Uint(len(keys))
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		w.Text(key)
		r := keys[key]
		if err := r.write(w); err != nil {
			return err
		}
	}
	return nil
}

// write writes digests as they are, since no two bindings have the same.
func (r BindingRecord) write(w *compact.Writer) error {
	w.Raw(r.Template[:])
	w.Uint(len(r.Contents))
	for _, c := range r.Contents {
		w.Raw(c.Digest[:])
		c.Digest = object.Digest{}
		if err := w.JSON(c); err != nil {
			return err
		}
	}

	if err := w.JSON(r.Targets); err != nil {
		return err
	}
	if err := w.JSON(r.Works); err != nil {
		return err
	}
	r.Template, r.Contents, r.Targets, r.Works = object.Digest{}, nil, nil, nil
	return w.JSON(r)
}

// ReadSaved reads what Write wrote. Parts of it are shared: nobody may write to it.
func ReadSaved(r *compact.Reader) (*Saved, error) {
	head := compact.JSON[packedHead](r)
	s := head.Saved
	if s == nil {
		s = &Saved{}
	}
	s.Tombstones, s.Detached = ids(head.Tombstones), ids(head.Detached)

	n := r.Count()
	s.Bindings = make(map[object.ID]BindingRecord, n)
	for ; n > 0 && r.Err() == nil; n-- {
		id, ok := object.ParseKey(r.Text())
		record := readBinding(r)
		if ok {
			s.Bindings[id] = record
		}
	}
	return s, r.Err()
}

func readBinding(r *compact.Reader) BindingRecord {
	var template object.Digest
	r.Raw(template[:])
	contents := make([]ContentRecord, r.Count())
	for i := range contents {
		var digest object.Digest
		r.Raw(digest[:])
		contents[i] = compact.JSON[ContentRecord](r)
		contents[i].Digest = digest
	}

	targets, works := compact.JSON[TargetRecords](r), compact.JSON[WorkRecords](r)
	b := compact.JSON[BindingRecord](r)
	b.Template, b.Contents, b.Targets, b.Works = template, contents, targets, works
	return b
}

func texts[V any](records map[object.ID]V) map[string]V {
	out := make(map[string]V, len(records))
	for id, r := range records {
		out[id.Key()] = r
	}
	return out
}

func ids[V any](records map[string]V) map[object.ID]V {
	out := make(map[object.ID]V, len(records))
	for key, r := range records {
		if id, ok := object.ParseKey(key); ok {
			out[id] = r
		}
	}
	return out
}
