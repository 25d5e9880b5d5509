// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Plan is the effect of a change on every cluster; its JSON is a contract. Within a
// major of FormatVersion fields are only added.
type Plan struct {
	APIVersion    string    `json:"apiVersion"`
	Kind          string    `json:"kind"`
	FormatVersion string    `json:"formatVersion"`
	Complete      bool      `json:"complete"`
	Base          Revision  `json:"base"`
	Head          Revision  `json:"head"`
	Merge         *Merge    `json:"merge,omitempty"`
	Positions     Positions `json:"positions"`
	Digest        string    `json:"digest"`
	Summary       Summary   `json:"summary"`
	Clusters      []Cluster `json:"clusters"`
	Cells         []Cell    `json:"cells"`
	Findings      []Finding `json:"findings"`
}

// Summary counts what is in a plan.
type Summary struct {
	Cells           CellCounts `json:"cells"`
	Clusters        int        `json:"clusters"`
	DistinctChanges int        `json:"distinctChanges"`
	Errors          int        `json:"errors"`
	Cautions        int        `json:"cautions"`
	Notices         int        `json:"notices"`
}

// CellCounts counts the cells in which something happens or waits, by when it
// happens; deletions and objects that are left running are counted separately.
type CellCounts struct {
	Now       int `json:"now"`
	Released  int `json:"released"`
	Held      int `json:"held"`
	Deferred  int `json:"deferred"`
	Blocked   int `json:"blocked"`
	Deleted   int `json:"deleted"`
	Preserved int `json:"preserved"`
}

// Cluster counts what happens on one cluster.
type Cluster struct {
	Name string `json:"name"`
	CellCounts
	Replicas *report.Replicas `json:"replicas,omitempty"`
}

// Cell is what happens to one object on one cluster, and why.
type Cell struct {
	Object      report.Object         `json:"object"`
	Cluster     string                `json:"cluster"`
	Policy      string                `json:"policy,omitempty"`
	Action      propagate.Action      `json:"action"`
	Disposition propagate.Disposition `json:"disposition"`
	// After is what clusters are to acknowledge first.
	After     []string         `json:"after,omitempty"`
	Replicas  *report.Replicas `json:"replicas,omitempty"`
	Because   []report.Because `json:"because"`
	DependsOn string           `json:"dependsOn,omitempty"`
	Change    string           `json:"change,omitempty"`
}

// Finding is something that a reviewer should know.
type Finding struct {
	Code     string         `json:"code"`
	Severity fleet.Severity `json:"level"`
	Message  string         `json:"message"`
	Object   *report.Object `json:"object,omitempty"`
	Clusters []string       `json:"clusters,omitempty"`
	Policy   string         `json:"policy,omitempty"`
	File     string         `json:"file,omitempty"`
	Line     int            `json:"line,omitempty"`
	Trailer  string         `json:"trailer,omitempty"`
}

func (f Finding) kind() (fleet.Severity, string) { return f.Severity, f.Code }

// New returns the report of a plan from base to head; after is the state that
// head leads to.
func New(p *propagate.Plan, base, head string, after *propagate.State) *Plan {
	r := &Plan{
		APIVersion: report.APIVersion, Kind: "Plan", FormatVersion: "1.1", Complete: !p.Incomplete,
		Base: Revision{Commit: base}, Head: Revision{Commit: head}, Positions: Positions{PositionsDerived, base},
		Clusters: []Cluster{}, Cells: []Cell{}, Findings: []Finding{},
	}
	if refusal := after.Refusal; refusal != nil && refusal.Guard == nil && refusal.Commit == head {
		r.Complete = false
		for _, problem := range refusal.Problems {
			r.Findings = append(r.Findings, Finding{Code: fleet.FindingRenderError, Severity: fleet.SeverityError,
				Message: fmt.Sprintf("commit %s: %s", source.Short(head), problem.Error()), File: problem.File, Line: problem.Line})
		}
	}
	for _, c := range p.Cells {
		r.addCell(c)
	}

	for _, f := range p.Findings {
		r.addFinding(f)
	}

	for _, f := range r.Findings {
		switch f.Severity {
		case fleet.SeverityError:
			r.Summary.Errors++
		case fleet.SeverityCaution:
			r.Summary.Cautions++
		default:
			r.Summary.Notices++
		}
	}

	slices.SortFunc(r.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	r.Summary.Clusters = len(r.Clusters)
	cells, err := json.Marshal(r.Cells)
	if err != nil {
		panic(fmt.Sprintf("plan cells have no JSON: %v", err))
	}

	r.Digest = object.DigestOf(cells).String()
	return r
}

func (r *Plan) addCell(c propagate.Cell) {
	cell := Cell{
		Object:  report.Object{APIVersion: c.APIVersion, Kind: c.Object.Kind, Namespace: c.Object.Namespace, Name: c.Object.Name},
		Cluster: c.Cluster, Policy: c.Policy.Name, Action: c.Action, Disposition: c.Disposition, After: c.After, Change: c.Change, DependsOn: c.DependsOn,
		Because: []report.Because{},
	}
	for _, why := range c.Because {
		cell.Because = append(cell.Because, report.Because{Code: why.Code, File: why.File, Line: why.Line})
	}

	if c.Replicas != nil {
		cell.Replicas = &report.Replicas{Before: c.Replicas.Before, After: c.Replicas.After, Asked: c.Replicas.Asked}
	}
	r.Cells = append(r.Cells, cell)
	r.Summary.Cells.add(c)
	r.cluster(c.Cluster).add(c)
	var n int
	if _, err := fmt.Sscanf(c.Change, "c%d", &n); err == nil {
		r.Summary.DistinctChanges = max(r.Summary.DistinctChanges, n)
	}
}

func (r *Plan) addFinding(f fleet.Finding) {
	finding := Finding{Code: f.Code, Severity: f.Severity, Message: f.Message, Clusters: f.Clusters, Policy: f.Policy.Name,
		File: f.Origin.File, Line: f.Origin.Line, Trailer: f.Trailer}
	if f.Object != (object.ID{}) {
		finding.Object = &report.Object{Kind: f.Object.Kind, Namespace: f.Object.Namespace, Name: f.Object.Name}
	}
	r.Findings = append(r.Findings, finding)
}

// cluster returns the row of a cluster, and adds it if it is new.
func (r *Plan) cluster(name string) *Cluster {
	for i := range r.Clusters {
		if r.Clusters[i].Name == name {
			return &r.Clusters[i]
		}
	}
	r.Clusters = append(r.Clusters, Cluster{Name: name})
	return &r.Clusters[len(r.Clusters)-1]
}

func (n *CellCounts) add(c propagate.Cell) {
	switch {
	case c.Action == propagate.ActionNone: // held, with nothing new to send
	case c.Disposition == propagate.Held:
		n.Held++
	case c.Disposition == propagate.Deferred:
		n.Deferred++
	case c.Disposition == propagate.Blocked:
		n.Blocked++
	case c.Action == propagate.ActionDelete:
		n.Deleted++
	case c.Action == propagate.ActionPreserve:
		n.Preserved++
	case c.Disposition == propagate.Released:
		n.Released++
	default:
		n.Now++
	}
}

func (c *Cluster) add(cell propagate.Cell) {
	c.CellCounts.add(cell)
	if cell.Replicas == nil {
		return
	}

	if c.Replicas == nil {
		c.Replicas = &report.Replicas{}
	}
	c.Replicas.Before += cell.Replicas.Before
	c.Replicas.After += cell.Replicas.After
	c.Replicas.Asked += cell.Replicas.Asked
}

// Changes reports whether a merge would change anything on a cluster.
func (r *Plan) Changes() bool {
	c := r.Summary.Cells
	return c.Now+c.Released+c.Deleted+c.Preserved > 0
}

// awaitsConfirmation reports whether the guard requires a confirmation.
func (r *Plan) awaitsConfirmation() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Trailer != "" })
}

// frozen reports whether there are frozen units.
func (r *Plan) frozen() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Code == fleet.FindingFrozen })
}

// group is a cell with all clusters on which the same happens.
type group struct {
	Cell
	clusters []string
}

// groups yields the cells, with equal ones of an object as one.
func (r *Plan) groups() iter.Seq[group] {
	return func(yield func(group) bool) {
		for i := 0; i < len(r.Cells); {
			j := i
			for ; j < len(r.Cells) && r.Cells[j].Object == r.Cells[i].Object; j++ {
			}
			rest := r.Cells[i:j]
			i = j
			done := map[string]bool{}
			for _, c := range rest {
				if done[c.alike()] {
					continue
				}
				done[c.alike()] = true
				g := group{Cell: c}
				for _, same := range rest {
					if same.alike() == c.alike() {
						g.clusters = append(g.clusters, same.Cluster)
					}
				}
				if !yield(g) {
					return
				}
			}
		}
	}
}

// alike returns a key that is equal for the cells of an object in which the same
// happens.
func (c *Cell) alike() string { return c.Change + c.when() + string(c.Action) }

// when returns the disposition, or which clusters come first.
func (c *Cell) when() string {
	const most = 3
	switch after := c.After; {
	case len(after) == 0:
		return string(c.Disposition)
	case len(after) > most:
		return fmt.Sprintf("after %s and %d more", strings.Join(after[:most], ", "), len(after)-most)
	default:
		return "after " + strings.Join(after, ", ")
	}
}

func (c *Cell) what() string {
	if c.Action == propagate.ActionNone {
		return "up to date"
	}
	return string(c.Action)
}

// why returns what becomes of the replicas, and the reasons.
func (g group) why() string {
	return strings.Join(append(g.scaled(), report.Reasons(g.Because)...), ", ")
}

// scaled reads "replicas 3 -> 4 (asked 5)", empty where their number stays.
func (g group) scaled() []string {
	n := g.Replicas
	switch {
	case n == nil || g.Action == propagate.ActionDelete:
		return nil
	case g.Action == propagate.ActionCreate && n.After == n.Asked:
		return []string{fmt.Sprintf("replicas %d", n.After)}
	case n.Before == n.After && n.After == n.Asked:
		return nil
	}
	return []string{"replicas " + n.Text()}
}
