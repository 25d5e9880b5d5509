// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"cmp"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/output"
)

// Documents lists the documents of a snapshot by where they stand.
func Documents(s *fleet.Snapshot) output.List {
	type placed struct {
		fleet.Origin
		item output.Item
	}
	var all []placed
	add := func(at fleet.Origin, document any, namespace, kind, name string) {
		all = append(all, placed{at, output.Item{Object: document, Row: []any{namespace, kind, name, at.String()}}})
	}
	for c := range s.Clusters.Values() {
		add(c.Origin, c.Cluster, "", "Cluster", c.Name)
	}
	for p := range s.Policies.Values() {
		add(p.Origin, policy(p), p.Ref.Namespace, p.Ref.Kind(), p.Ref.Name)
	}
	for t := range s.Templates.Values() {
		add(t.Origin, t, t.Namespace, t.Kind, t.Name)
	}

	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	found := output.List{Columns: output.NewColumns("NAMESPACE", "KIND", "NAME", "FILE")}
	for _, p := range all {
		found.Items = append(found.Items, p.item)
	}
	return found
}
