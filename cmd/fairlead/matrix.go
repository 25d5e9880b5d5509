// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
)

// statusRow is one template.
type statusRow struct {
	id      propagate.ID
	binding *propagate.Binding // nil of a template that is removed
	policy  *propagate.Policy  // nil where none has it
}

// rows are the templates that the user asked to see.
func (v *statusView) rows() (rows []statusRow) {
	s := &v.state
	seen := map[propagate.ID]bool{}
	for b := range s.Bindings.Values() {
		seen[b.ID] = true
		if !v.asked.shows(b.Namespace, b.Name, v.asked.labelsOf(b)) {
			continue
		}
		r := statusRow{id: b.ID, binding: b}
		if b.Claim != nil {
			r.policy, _ = s.Snapshot.Policies.Get(b.Claim.Key())
		}
		rows = append(rows, r)
	}
	for _, id := range v.ids() {
		if !seen[id] && v.asked.shows(id.Namespace, id.Name, nil) {
			rows = append(rows, statusRow{id: id})
		}
	}
	slices.SortFunc(rows, func(a, b statusRow) int { return strings.Compare(a.id.Key(), b.id.Key()) })
	return slices.DeleteFunc(rows, func(r statusRow) bool { return !v.wants(r) })
}

// wants is whether a row has a cell that was asked for.
func (v *statusView) wants(r statusRow) bool {
	if v.flags.wave > 0 && (r.policy == nil || v.flags.wave > len(r.policy.Waves)) {
		return false
	}
	chose := len(v.flags.only) > 0
	if !chose && len(v.flags.clusters) == 0 {
		return true
	}
	for cluster, c := range v.cells[r.id] {
		if v.chosen[cluster] && v.inWave(r, cluster) && (!chose || slices.ContainsFunc(v.flags.only, func(word string) bool { return isOnly(c, word) })) {
			return true
		}
	}
	return false
}

// inWave is whether a cluster is of the wave that was asked for.
func (v *statusView) inWave(r statusRow, cluster string) bool {
	return v.flags.wave == 0 || slices.Contains(r.policy.Waves[v.flags.wave-1], cluster)
}

func isOnly(c *reconcile.Cell, word string) bool {
	switch word {
	case "behind":
		return c.Position == reconcile.Behind
	case "held":
		return c.Held
	case "deferred":
		return c.Deferred
	case "rolling":
		return c.Position == reconcile.Rolling
	case "failed":
		return c.Position == reconcile.Broken
	}
	return c.Position == reconcile.Silent
}

// matrix prints the rows under the clusters. Where policies order clusters in
// waves, so are the columns; templates whose policies do that differently have
// a matrix of their own.
func (v *statusView) matrix(rows []statusRow, out io.Writer) error {
	orders := v.orders()
	under := map[int][]statusRow{}
	for _, r := range rows {
		i := 0
		switch {
		case len(orders) == 1:
			i = 1 // the fleet's: what has none fits into it
		case r.policy != nil:
			i = indexOf(orders, r.policy.Waves) + 1
		}
		under[i] = append(under[i], r)
	}
	var b strings.Builder
	for i := range len(orders) + 1 {
		if len(under[i]) == 0 {
			continue
		}
		var order [][]string
		if i > 0 {
			order = orders[i-1]
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		v.block(under[i], v.columns(order), &b)
	}
	b.WriteString(legend + "\n")
	b.WriteString(v.troubles(rows))
	_, err := io.WriteString(out, b.String())
	return err
}

// orders are the different ways in which policies of the fleet order clusters
// in waves.
func (v *statusView) orders() (orders [][][]string) {
	for p := range v.state.Snapshot.Policies.Values() {
		if len(p.Waves) > 0 && indexOf(orders, p.Waves) < 0 {
			orders = append(orders, p.Waves)
		}
	}
	return orders
}

func indexOf(orders [][][]string, waves [][]string) int {
	return slices.IndexFunc(orders, func(o [][]string) bool {
		return slices.EqualFunc(o, waves, slices.Equal)
	})
}

// columns are the clusters, wave by wave; those of no wave are the last.
func (v *statusView) columns(waves [][]string) (columns [][]string) {
	asked := map[string]bool{}
	for _, c := range v.clusters {
		asked[c.Name] = true
	}
	for i, wave := range waves {
		var names []string
		for _, name := range wave {
			if asked[name] && (v.flags.wave == 0 || v.flags.wave == i+1) {
				names = append(names, name)
			}
			delete(asked, name)
		}
		if len(names) > 0 {
			columns = append(columns, names)
		}
	}
	if v.flags.wave > 0 {
		return columns
	}
	var rest []string
	for _, c := range v.clusters {
		if asked[c.Name] {
			rest = append(rest, c.Name)
		}
	}
	if len(rest) > 0 {
		columns = append(columns, rest)
	}
	return columns
}

// block writes one matrix, its columns aligned and its waves apart.
func (v *statusView) block(rows []statusRow, columns [][]string, b *strings.Builder) {
	head := []string{"TEMPLATE", "POLICY"}
	for i, wave := range columns {
		if i > 0 {
			head = append(head, "|")
		}
		head = append(head, wave...)
	}
	lines := [][]string{head}
	for _, r := range rows {
		line := []string{title(r.id), r.policyName()}
		for i, wave := range columns {
			if i > 0 {
				line = append(line, "|")
			}
			for _, cluster := range wave {
				line = append(line, symbol(v.cells[r.id][cluster]))
			}
		}
		lines = append(lines, line)
	}
	align(lines, b)
}

// policyName is of the policy that has a template, or else of the one that is
// still in effect.
func (r statusRow) policyName() string {
	switch b := r.binding; {
	case b == nil || b.Claim == nil && b.Active == nil:
		return "-"
	case b.Claim != nil:
		return b.Claim.Name
	}
	return cmp.Or(r.binding.Active.Policy.Ref.Name, "-")
}

// align writes cells in columns, two blanks apart; a bar has one on its right.
func align(lines [][]string, b *strings.Builder) {
	width := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		var text strings.Builder
		for i, cell := range line {
			text.WriteString(cell)
			blanks := width[i] - utf8.RuneCountInString(cell) + 2
			if cell == "|" {
				blanks = 1
			}
			text.WriteString(strings.Repeat(" ", blanks))
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
}

// symbol is a cell as the matrix has it.
func symbol(c *reconcile.Cell) string {
	if c == nil {
		return "."
	}
	text := ""
	switch c.Position {
	case reconcile.AtHead:
		text = "="
	case reconcile.Rolling:
		text = ">"
	case reconcile.Behind:
		text = "-?"
		if c.Behind > 0 {
			text = fmt.Sprintf("-%d", c.Behind)
		}
	case reconcile.Broken:
		text = "X"
	case reconcile.Silent:
		text = "?"
	}
	if c.Held {
		text += "H"
	}
	if c.Deferred {
		text += "L"
	}
	switch {
	case c.Position == reconcile.Rolling && c.Sight != nil && c.Sight.Replicas >= 0:
		text += fmt.Sprintf(" %d/%d", c.Sight.Available, c.Sight.Replicas)
	case c.Replicas >= 0 && (c.Sight != nil && c.Sight.Ours || c.Position == reconcile.Silent):
		text += fmt.Sprintf(" %d", c.Replicas)
	}
	return text
}

// troubles say why cells are failed.
func (v *statusView) troubles(rows []statusRow) string {
	var b strings.Builder
	for _, r := range rows {
		for _, cluster := range v.clusters {
			if c := v.cells[r.id][cluster.Name]; c != nil && c.Position == reconcile.Broken && v.inWave(r, cluster.Name) {
				fmt.Fprintf(&b, "X %s on %s: %s\n", title(r.id), cluster.Name, c.Why)
			}
		}
	}
	return b.String()
}

// title is how people call an object: deploy/shop/web.
func title(id propagate.ID) string {
	kind := shortNames[id.GroupKind().String()]
	if kind == "" {
		kind = strings.ToLower(id.Kind)
		if _, known := propagate.BuiltinScope(id.Group, id.Kind); !known && id.Group != "" {
			kind = schema.GroupKind{Group: id.Group, Kind: kind}.String()
		}
	}
	if id.Namespace != "" {
		kind += "/" + id.Namespace
	}
	return kind + "/" + id.Name
}
