// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/status"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Matrix is the state of every template on every cluster; its JSON is a contract.
// Within a major of FormatVersion fields are only added.
type Matrix struct {
	APIVersion    string `json:"apiVersion"`
	Kind          string `json:"kind"`
	FormatVersion string `json:"formatVersion"`
	Head          Commit `json:"head"`
	// Refusal is why the head is not in effect; nil if it is.
	Refusal *Refusal `json:"refusal,omitempty"`
	// Blocks have one order of clusters each: templates whose policies define other
	// waves are in a block of their own.
	Blocks []MatrixBlock `json:"blocks"`
}

// MatrixBlock is some templates under the same columns.
type MatrixBlock struct {
	Waves [][]string  `json:"waves"` // clusters by wave; those of no wave are last
	Rows  []MatrixRow `json:"rows"`
}

// MatrixRow is one template.
type MatrixRow struct {
	Object Object       `json:"object"`
	Policy string       `json:"policy,omitempty"`
	Cells  []MatrixCell `json:"cells"` // of the clusters that have or await the template
}

// MatrixCell is one template on one cluster.
type MatrixCell struct {
	Cluster string `json:"cluster"`
	// State is "" if the cluster has nothing yet and only something deferred waits.
	State    status.State `json:"state,omitempty"`
	Held     bool         `json:"held,omitempty"`
	Deferred bool         `json:"deferred,omitempty"`
	// Runs is the commit whose content the cluster has; "" if it has none of ours, or if
	// nobody knows.
	Runs string `json:"runs,omitempty"`
	// Behind is how many commits an outdated cell is behind, -1 if the branch does
	// not have the commit that it runs.
	Behind int    `json:"behind,omitempty"`
	Why    string `json:"why,omitempty"`
	// Failure is why a run could not bring it there, as its record tells.
	Failure string `json:"failure,omitempty"`
	// After is what clusters are to acknowledge before the template is deleted here, or
	// has replicas taken away.
	After []string `json:"after,omitempty"`
	// Replicas is how many the cluster should run. Available is set during a rollout.
	Replicas  *int64 `json:"replicas,omitempty"`
	Available *int64 `json:"available,omitempty"`
}

// MatrixQuery selects what a matrix shows of a fleet.
type MatrixQuery struct {
	// Template reports whether to show a template, given its labels; those of a
	// removed template are nil.
	Template func(id object.ID, labels map[string]string) bool
	Clusters []string // by name; nil is all
	Only     []string // templates with a cell in one of these states, of Words; nil is all
	Wave     int      // only this wave of the templates' policies; 0 is all
}

// Words are the valid elements of MatrixQuery.Only.
var Words = []string{string(status.Outdated), "held", "deferred", string(status.InProgress), string(status.Failed), string(status.Unknown)}

// Row is a template that a query selects.
type Row struct {
	ID      object.ID
	Binding *propagate.Binding // nil for a removed template
	policy  *fleet.Policy      // nil if none claims it
	waves   [][]string         // of the policy
}

// Rows returns the templates that a query selects, sorted.
func (q MatrixQuery) Rows(f *status.Fleet) (rows []Row) {
	s := &f.State
	seen := map[object.ID]bool{}
	for b := range s.Bindings.Values() {
		seen[b.ID] = true
		if !q.Template(b.ID, b.TemplateLabels(s)) {
			continue
		}
		r := Row{ID: b.ID, Binding: b}
		if b.Claim != nil {
			r.policy = s.Snapshot.Policies.At(b.Claim.Key())
			r.waves = s.Snapshot.WavesOf(r.policy)
		}
		rows = append(rows, r)
	}

	for _, id := range f.IDs() {
		if !seen[id] && q.Template(id, nil) {
			rows = append(rows, Row{ID: id})
		}
	}

	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.ID.Key(), b.ID.Key()) })

	return slices.DeleteFunc(rows, func(r Row) bool { return !q.wants(r, f.Cells[r.ID]) })
}

// wants reports whether a query selects a cell of a row.
func (q MatrixQuery) wants(r Row, cells map[string]*status.Cell) bool {
	if q.Wave > len(r.waves) {
		return false
	}
	if len(q.Only) == 0 && len(q.Clusters) == 0 {
		return true
	}

	for cluster, c := range cells {
		chosen := len(q.Clusters) == 0 || slices.Contains(q.Clusters, cluster)
		if chosen && q.inWave(r, cluster) && (len(q.Only) == 0 || slices.ContainsFunc(q.Only, func(word string) bool { return is(c, word) })) {
			return true
		}
	}

	return false
}

// inWave reports whether a cluster is in the query's wave.
func (q MatrixQuery) inWave(r Row, cluster string) bool {
	return q.Wave == 0 || slices.Contains(r.waves[q.Wave-1], cluster)
}

// is reports whether a cell is in the state that a word of Words names.
func is(c *status.Cell, word string) bool {
	switch word {
	case "held":
		return c.Held
	case "deferred":
		return c.Deferred
	}
	return string(c.State) == word
}

// NewMatrix returns the matrix of a query's rows and a fleet's clusters.
func NewMatrix(f *status.Fleet, q MatrixQuery, rows []Row) *Matrix {
	m := &Matrix{APIVersion: APIVersion, Kind: "Matrix", FormatVersion: "1.0", Head: Commit{f.Head}, Blocks: []MatrixBlock{}}
	orders := waveOrders(&f.State)
	under := map[int][]Row{}
	for _, r := range rows {
		i := 0
		switch {
		case len(orders) == 1:
			i = 1 // the only order: rows without one fit into it
		case r.policy != nil:
			i = indexOf(orders, r.waves) + 1
		}
		under[i] = append(under[i], r)
	}

	for _, i := range slices.Sorted(maps.Keys(under)) {
		var order [][]string
		if i > 0 {
			order = orders[i-1]
		}
		block := MatrixBlock{Waves: q.columns(f.Clusters, order)}
		for _, r := range under[i] {
			block.Rows = append(block.Rows, newMatrixRow(r, block.Waves, f.Cells[r.ID]))
		}
		m.Blocks = append(m.Blocks, block)
	}

	return m
}

func newMatrixRow(r Row, waves [][]string, cells map[string]*status.Cell) MatrixRow {
	row := MatrixRow{Object: Object{Kind: r.ID.Kind, Group: r.ID.Group, Namespace: r.ID.Namespace, Name: r.ID.Name}, Policy: r.policyName(), Cells: []MatrixCell{}}
	for _, wave := range waves {
		for _, cluster := range wave {
			if c := cells[cluster]; c != nil {
				row.Cells = append(row.Cells, newMatrixCell(c))
			}
		}
	}

	return row
}

func newMatrixCell(c *status.Cell) MatrixCell {
	m := MatrixCell{Cluster: c.Cluster, State: c.State, Runs: c.Runs, Held: c.Held, Deferred: c.Deferred, Why: c.Why, Failure: c.Failure, After: c.After}
	if c.State == status.Outdated {
		m.Behind = c.Behind
	}
	switch {
	case c.State == status.InProgress && c.Observed != nil && c.Observed.Replicas >= 0:
		m.Replicas, m.Available = &c.Observed.Replicas, &c.Observed.Available
	case c.Replicas >= 0 && (c.Observed != nil && c.Observed.Ours || c.State == status.Unknown):
		m.Replicas = &c.Replicas
	}

	return m
}

// policyName returns the name of the policy that claims a template, or else of the
// one that is still in effect.
func (r Row) policyName() string {
	switch b := r.Binding; {
	case b == nil || b.Claim == nil && b.Active == nil:
		return ""
	case b.Claim != nil:
		return b.Claim.Name
	}
	return cmp.Or(r.Binding.Active.Policy.Ref.Name)
}

// waveOrders returns the different waves that the policies of a fleet define.
func waveOrders(s *propagate.State) (orders [][][]string) {
	for p := range s.Snapshot.Policies.Values() {
		if waves := s.Snapshot.WavesOf(p); len(waves) > 0 && indexOf(orders, waves) < 0 {
			orders = append(orders, waves)
		}
	}
	return orders
}

func indexOf(orders [][][]string, waves [][]string) int {
	return slices.IndexFunc(orders, func(o [][]string) bool {
		return slices.EqualFunc(o, waves, slices.Equal)
	})
}

// columns returns clusters by wave; those of no wave are last.
func (q MatrixQuery) columns(clusters []*fleet.Cluster, waves [][]string) (columns [][]string) {
	left := map[string]bool{}
	for _, c := range clusters {
		left[c.Name] = true
	}

	for i, wave := range waves {
		var names []string
		for _, name := range wave {
			if left[name] && (q.Wave == 0 || q.Wave == i+1) {
				names = append(names, name)
			}
			delete(left, name)
		}
		if len(names) > 0 {
			columns = append(columns, names)
		}
	}

	if q.Wave > 0 {
		return columns
	}

	var rest []string
	for _, c := range clusters {
		if left[c.Name] {
			rest = append(rest, c.Name)
		}
	}

	if len(rest) > 0 {
		columns = append(columns, rest)
	}

	return columns
}
