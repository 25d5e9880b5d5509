// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/look/output"
	"github.com/fairlead/fairlead/object"
)

// Changes tells what has changed between one look and the next. The zero Changes has
// seen nothing.
type Changes struct{ seen map[string]seenItem }

type seenItem struct {
	output.Item
	columns output.Columns
	live    bool
	digest  object.Digest
}

// What has become of an item, as a watch of Kubernetes has it.
const (
	added    = "ADDED"
	modified = "MODIFIED"
	deleted  = "DELETED"
)

// Of returns the items that have changed since the last call, in a column EVENT what
// happened to each. What a silent cluster has is as it was. Without rows, for forms
// that have no place to say it, what is gone is left out.
func (c *Changes) Of(lists []output.List, silent map[string]error, rows bool) ([]output.List, error) {
	before := c.seen
	c.seen = map[string]seenItem{}
	var changed []output.List
	for _, l := range lists {
		now := output.List{Columns: eventColumns(l.Columns), Live: l.Live}
		for _, it := range l.Items {
			key, digest, err := identify(it, l.Live)
			if err != nil {
				return nil, err
			}
			c.seen[key] = seenItem{it, l.Columns, l.Live, digest}
			was, known := before[key]
			switch {
			case !known:
				now.Items = append(now.Items, event(added, it))
			case was.digest != digest:
				now.Items = append(now.Items, event(modified, it))
			}
		}
		if len(now.Items) > 0 {
			changed = append(changed, now)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(before)) {
		was := before[key]
		if _, still := c.seen[key]; still {
			continue
		}
		if silent[was.Cluster] != nil {
			c.seen[key] = was
			continue
		}
		if !rows {
			continue
		}
		gone := output.List{Columns: eventColumns(was.columns), Live: was.live, Items: []output.Item{event(deleted, was.Item)}}
		if last := len(changed) - 1; last >= 0 && sameNames(changed[last].Columns, gone.Columns) {
			changed[last].Items = append(changed[last].Items, gone.Items...)
			continue
		}
		changed = append(changed, gone)
	}

	return changed, nil
}

func sameNames(a, b output.Columns) bool {
	return slices.EqualFunc(a, b, func(x, y output.Column) bool { return x.Name == y.Name })
}

func eventColumns(columns output.Columns) output.Columns {
	return append(output.Columns{{Name: "EVENT", Min: len(modified)}}, columns...)
}

func event(what string, it output.Item) output.Item {
	it.Row = append([]any{what}, it.Row...)
	return it
}

// identify returns what an item is known by, and the digest of what may change of it.
// The row of a live one has its age, which changes all the time.
func identify(it output.Item, live bool) (key string, digest object.Digest, err error) {
	id, err := it.Identity()
	if err != nil {
		return "", digest, err
	}
	u, err := it.Unstructured()
	if err != nil {
		return "", digest, err
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return "", digest, err
	}

	if !live {
		raw = fmt.Append(raw, it.Row)
	}
	key = id.Key() + "\x00" + it.Cluster
	return key, object.DigestOf(raw), nil
}
