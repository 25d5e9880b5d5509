// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

// Change is a group of cells of one object in which the same happens: clusters whose
// overrides make other manifests share one if the difference is equal.
type Change struct {
	ID          string                `json:"id"`
	Object      report.Object         `json:"object"`
	Action      propagate.Action      `json:"action"`
	Disposition propagate.Disposition `json:"disposition"`
	// After is what clusters are to acknowledge first.
	After    []string `json:"after,omitempty"`
	Clusters []string `json:"clusters"`
	Cells    int      `json:"cells"`
	// Paths are the fields that change; there are none for an object that comes or
	// goes as a whole.
	Paths []Path `json:"paths"`
	// Added and Removed are how many of Paths only one side has, and Hidden is how
	// many more there are that tell a reviewer nothing.
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Hidden  int `json:"hidden"`
	// Replicas is the sum over the clusters; nil where each has the same, which Paths
	// tells, and for kinds without.
	Replicas *report.Replicas `json:"replicas,omitempty"`
	// Replaces and ReplacedBy are the names of a generated object whose name holds a
	// hash of its content.
	Replaces   string `json:"replaces,omitempty"`
	ReplacedBy string `json:"replacedBy,omitempty"`
	// Diff is the manifest of one of the clusters as a unified diff. It is left out
	// for Secrets, and where a plan has too many changes.
	Diff string `json:"diff,omitempty"`

	runs, wants *propagate.Content // of the first cluster
	cells       []int              // places in Plan.Cells
}

// grouping makes the changes of a plan.
type grouping struct {
	noise bool
	known map[[2]*propagate.Content]*difference
	same  map[sameAs]*difference
	found []Change
}

// sameAs finds the difference of contents that are equal, but were made apart.
type sameAs struct {
	object      object.ID
	runs, wants object.Digest
}

// changes groups the cells in which something happens, or newly waits. Cells are sorted
// by object.
func (r *Plan) changes(cells []propagate.Cell, noise bool) {
	g := &grouping{noise: noise, known: map[[2]*propagate.Content]*difference{}, same: map[sameAs]*difference{}}
	for i := 0; i < len(cells); {
		j := i
		for j < len(cells) && cells[j].Object == cells[i].Object {
			j++
		}
		g.object(cells[i:j], r.Cells[i:j], i)
		i = j
	}
	pairGenerated(g.found, noise)
	diffs(g.found)

	r.Changes = g.found
	if r.Changes == nil {
		r.Changes = []Change{}
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		c.ID = fmt.Sprintf("c%d", i+1)
		for _, at := range c.cells {
			r.Cells[at].Change = c.ID
		}
		if c.ReplacedBy != "" {
			r.replaced(c)
		}
	}
}

// replaced counts the deletions of a generated object that another one replaces.
func (r *Plan) replaced(c *Change) {
	r.Summary.Cells.Replaced += c.Cells
	for _, name := range c.Clusters {
		i, _ := slices.BinarySearchFunc(r.Clusters, name, func(c Cluster, name string) int { return cmp.Compare(c.Name, name) })
		r.Clusters[i].Replaced++
	}
}

// object groups the cells of one object, which begin at a place of the plan's.
func (g *grouping) object(cells []propagate.Cell, shown []Cell, at int) {
	groups := map[string]int{} // into found
	for i := range cells {
		c := &cells[i]
		if c.Action == propagate.ActionNone || c.Already {
			continue
		}

		d := g.difference(c)
		key := fmt.Sprintf("%s %s %s", when(c.Disposition, c.After), c.Action, d.key)
		n, ok := groups[key]
		if !ok {
			n = len(g.found)
			groups[key] = n
			g.found = append(g.found, Change{Object: shown[i].Object, Action: c.Action, Disposition: c.Disposition, After: c.After,
				Paths: slices.Clone(d.paths), Hidden: d.hidden, runs: c.Runs, wants: c.Wants})
		}
		g.found[n].join(shown[i], d, at+i)
	}

	for n := range g.found[len(g.found)-len(groups):] {
		g.found[len(g.found)-len(groups)+n].settle()
	}
}

func (g *grouping) difference(c *propagate.Cell) *difference {
	if c.Runs == nil || c.Wants == nil {
		return &difference{}
	}
	pair := [2]*propagate.Content{c.Runs, c.Wants}
	if d := g.known[pair]; d != nil {
		return d
	}

	as := sameAs{c.Object, c.Runs.Digest, c.Wants.Digest}
	d := g.same[as]
	if d == nil {
		d = compare(c.Runs, c.Wants, g.noise)
		g.same[as] = d
	}
	g.known[pair] = d
	return d
}

// join adds a cell to a change.
func (c *Change) join(cell Cell, d *difference, at int) {
	c.Clusters = append(c.Clusters, cell.Cluster)
	c.Cells++
	c.cells = append(c.cells, at)
	if cell.Replicas != nil {
		if c.Replicas == nil {
			c.Replicas = &report.Replicas{}
		}
		c.Replicas.Before += cell.Replicas.Before
		c.Replicas.After += cell.Replicas.After
		c.Replicas.Asked += cell.Replicas.Asked
	}

	if share(c.Paths) != share(d.paths) {
		c.Paths = withoutShare(c.Paths) // each has another number
	}
}

// share is the change of replicas in paths, and "" without one.
func share(paths []Path) string {
	for _, p := range paths {
		if p.Path == pathReplicas {
			return fmt.Sprint(p.Before, " ", p.After)
		}
	}
	return ""
}

// settle counts what a change has when all its cells are known.
func (c *Change) settle() {
	if share(c.Paths) != "" {
		c.Replicas = nil
	}
	if c.Paths == nil {
		c.Paths = []Path{}
	}
	for _, p := range c.Paths {
		switch {
		case p.Before == nil:
			c.Added++
		case p.After == nil:
			c.Removed++
		}
	}
}

// generated names an object whose name holds a hash, without the hash, on a cluster.
type generated struct {
	kind, namespace, base, cluster string
}

// pairGenerated joins the changes of generated objects that come and go in each other's
// place: what a reviewer wants to know of them is what differs. The old one may stay
// until something that uses it has the new one.
func pairGenerated(changes []Change, noise bool) {
	gone := map[generated]*Change{}
	for i := range changes {
		c := &changes[i]
		if base, _, ok := object.CutHash(c.Object.Name); ok && c.Action == propagate.ActionDelete {
			for _, cluster := range c.Clusters {
				gone[generated{c.Object.Kind, c.Object.Namespace, base, cluster}] = c
			}
		}
	}
	if len(gone) == 0 {
		return
	}

	covered := map[*Change]int{} // clusters on which a successor comes
	for i := range changes {
		c := &changes[i]
		old := predecessor(c, gone)
		if old == nil {
			continue
		}
		for _, cluster := range c.Clusters {
			base, _, _ := object.CutHash(c.Object.Name)
			of := gone[generated{c.Object.Kind, c.Object.Namespace, base, cluster}]
			if covered[of]++; covered[of] == of.Cells {
				of.ReplacedBy = c.Object.Name
			}
		}
		d := compare(old.runs, c.wants, noise)
		c.Paths, c.Hidden, c.runs, c.Replaces = d.paths, d.hidden, old.runs, old.Object.Name
		c.settle()
	}
}

// predecessor is the object that a new one takes the place of on each of its clusters;
// nil where that is not one object.
func predecessor(c *Change, gone map[generated]*Change) (old *Change) {
	base, _, ok := object.CutHash(c.Object.Name)
	if !ok || c.Action != propagate.ActionCreate {
		return nil
	}
	for _, cluster := range c.Clusters {
		of := gone[generated{c.Object.Kind, c.Object.Namespace, base, cluster}]
		if of == nil || old != nil && of.Object != old.Object {
			return nil
		}
		old = of
	}
	return old
}
