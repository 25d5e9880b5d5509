// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Plan is the effect of a change on every cluster; its JSON is a contract. Within a
// major of FormatVersion fields are only added.
type Plan struct {
	APIVersion    string       `json:"apiVersion"`
	Kind          string       `json:"kind"`
	FormatVersion string       `json:"formatVersion"`
	Complete      bool         `json:"complete"`
	Base          Revision     `json:"base"`
	Head          Revision     `json:"head"`
	Merge         *Merge       `json:"merge,omitempty"`
	Positions     Positions    `json:"positions"`
	Digest        string       `json:"digest"`
	Summary       Summary      `json:"summary"`
	Clusters      []Cluster    `json:"clusters"`
	Images        []Image      `json:"images"`
	Releases      []Release    `json:"releases"`
	Suspensions   []Suspension `json:"suspensions"`
	Deferred      []Deferral   `json:"deferred"`
	Changes       []Change     `json:"changes"`
	Cells         []Cell       `json:"cells"`
	Findings      []Finding    `json:"findings"`

	differ map[object.ID][]string // the clusters that run something else than was released
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
// happens; deletions and objects that are left running are counted separately. Already
// counts those of Held, Deferred and Blocked that waited before, and to which the change
// adds nothing. UpToDate counts what is held with nothing to send; it is in no other
// count.
type CellCounts struct {
	Now       int `json:"now"`
	Released  int `json:"released"`
	Held      int `json:"held"`
	Deferred  int `json:"deferred"`
	Blocked   int `json:"blocked"`
	Deleted   int `json:"deleted"`
	Preserved int `json:"preserved"`
	// Replaced counts those of Deleted that another object takes the place of, whose
	// name differs in the hash of its content alone.
	Replaced int     `json:"replaced"`
	Already  Waiting `json:"already"`
	UpToDate int     `json:"upToDate"`
}

// Waiting counts cells in which something waits, by why.
type Waiting struct {
	Held     int `json:"held"`
	Deferred int `json:"deferred"`
	Blocked  int `json:"blocked"`
}

// Gone is how much is deleted and not replaced.
func (n CellCounts) Gone() int { return n.Deleted - n.Replaced }

func (n Waiting) all() int { return n.Held + n.Deferred + n.Blocked }

// Newly counts what waits and did not wait before.
func (n CellCounts) Newly() Waiting {
	return Waiting{n.Held - n.Already.Held, n.Deferred - n.Already.Deferred, n.Blocked - n.Already.Blocked}
}

// Cluster counts what happens on one cluster.
type Cluster struct {
	Name string `json:"name"`
	// Wave is from 1 on; 0 where policies do not agree on one. WaveName is what
	// fairlead.yaml calls it, "" where it does not.
	Wave     int    `json:"wave,omitempty"`
	WaveName string `json:"waveName,omitempty"`
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
	Wave      int              `json:"wave,omitempty"` // of the cluster under the policy
	WaveName  string           `json:"waveName,omitempty"`
	// Already says that it waited before, and that the change adds nothing to that.
	Already bool `json:"already,omitempty"`
	// Hold is what was noted of the hold that keeps it back.
	Hold *fleetv1alpha1.Hold `json:"hold,omitempty"`
	// Change is the id of the change that the cell is in.
	Change string `json:"change,omitempty"`
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

// Ends are what a plan leads from and to.
type Ends struct {
	Base, Head    string // commits
	Before, After *propagate.State
	// Causes are the edited lines that made a template what it is in After.
	Causes map[object.ID][]fleet.Origin
	// Noise has the paths listed that tell a reviewer nothing.
	Noise bool
}

// New returns the report of a comparison.
func New(p *propagate.Plan, of Ends) *Plan {
	r := &Plan{
		APIVersion: report.APIVersion, Kind: "Plan", FormatVersion: "1.1", Complete: !p.Incomplete,
		Base: Revision{Commit: of.Base}, Head: Revision{Commit: of.Head}, Positions: Positions{PositionsDerived, of.Base},
		Clusters: []Cluster{}, Cells: []Cell{}, Findings: []Finding{}, Releases: []Release{},
	}
	r.refused(of)
	r.addCells(p.Cells, of)
	r.changes(p.Cells, of.Noise)
	r.Images = r.images()
	r.Summary.DistinctChanges = len(r.Changes)
	r.suspensions(of.Before, of.After, p.Cells)
	r.deferrals(of.After, p.Cells)

	for _, f := range p.Findings {
		r.addFinding(f)
	}
	r.digest(p.Cells)
	return r
}

// refused adds why the head cannot be folded.
func (r *Plan) refused(of Ends) {
	refusal := of.After.Refusal
	if refusal == nil || refusal.Guard != nil || refusal.Commit != of.Head {
		return
	}

	r.Complete = false
	for _, problem := range refusal.Problems {
		r.find(Finding{Code: fleet.FindingRenderError, Severity: fleet.SeverityError,
			Message: fmt.Sprintf("commit %s: %s", source.Short(of.Head), problem.Error()), File: problem.File, Line: problem.Line})
	}
}

// digest is equal for plans in which the same happens on the clusters, with the same
// content: another value of a Secret makes another plan, though none shows it.
func (r *Plan) digest(cells []propagate.Cell) {
	contents := make([]object.Digest, len(cells))
	for i := range cells {
		if cells[i].Wants != nil {
			contents[i] = cells[i].Wants.Digest
		}
	}

	raw, err := json.Marshal([]any{r.Cells, contents})
	if err != nil {
		panic(fmt.Sprintf("plan cells have no JSON: %v", err))
	}
	r.Digest = object.DigestOf(raw).String()
}

func (r *Plan) addCells(cells []propagate.Cell, of Ends) {
	byName := map[string]*Cluster{}
	waves := wavesOf(of.After)
	r.Cells = make([]Cell, len(cells))
	for i := range cells {
		c := &cells[i]
		r.Cells[i] = newCell(c, of.Causes)
		r.Cells[i].Wave, r.Cells[i].WaveName = waves(c.Policy, c.Cluster)
		r.Cells[i].Hold = holdOf(of.After, c)
		r.Summary.Cells.add(c)
		if byName[c.Cluster] == nil {
			byName[c.Cluster] = &Cluster{Name: c.Cluster, Wave: r.Cells[i].Wave, WaveName: r.Cells[i].WaveName}
		}
		byName[c.Cluster].add(c, r.Cells[i].Wave)
	}

	for _, name := range slices.Sorted(maps.Keys(byName)) {
		r.Clusters = append(r.Clusters, *byName[name])
	}
	r.Summary.Clusters = len(r.Clusters)
}

// holdOf is what was noted of the hold of a cell: of the template's own, or else of its
// policy's.
func holdOf(s *propagate.State, c *propagate.Cell) *fleetv1alpha1.Hold {
	if c.Disposition != propagate.Held || s.Snapshot == nil {
		return nil
	}
	if t := s.Snapshot.Templates.At(c.Object.Key()); t != nil {
		if note, ok := t.Note(c.Cluster); ok {
			return &note
		}
	}
	if p, ok := s.Snapshot.Policies.Get(c.Policy.Key()); ok {
		if note, ok := p.Note(c.Cluster); ok {
			return &note
		}
	}
	return nil
}

// wavesOf returns what tells the wave of a cluster under a policy, and its name.
func wavesOf(s *propagate.State) func(fleet.PolicyRef, string) (int, string) {
	known := map[fleet.PolicyRef]map[string]int{}
	return func(ref fleet.PolicyRef, cluster string) (int, string) {
		if s.Snapshot == nil {
			return 0, ""
		}
		if known[ref] == nil {
			known[ref] = map[string]int{}
			policy, _ := s.Snapshot.Policies.Get(ref.Key())
			for i, clusters := range s.Snapshot.WavesOf(policy) {
				for _, name := range clusters {
					known[ref][name] = i + 1
				}
			}
		}
		n := known[ref][cluster]
		return n, s.Snapshot.WaveName(s.Snapshot.Policies.At(ref.Key()), n)
	}
}

func newCell(c *propagate.Cell, causes map[object.ID][]fleet.Origin) Cell {
	cell := Cell{
		Object:  report.Object{APIVersion: c.APIVersion, Kind: c.Object.Kind, Namespace: c.Object.Namespace, Name: c.Object.Name},
		Cluster: c.Cluster, Policy: c.Policy.Name, Action: c.Action, Disposition: c.Disposition, After: c.After, DependsOn: c.DependsOn,
		Already: c.Already, Because: make([]report.Because, 0, len(c.Because)),
	}
	for _, why := range c.Because {
		b := report.Because{Code: why.Code, File: why.File, Line: why.Line}
		if why.Code == "template" || why.Code == "template-removed" {
			for _, at := range causes[c.Object] {
				b.Sources = append(b.Sources, report.Source{File: at.File, Line: at.Line})
			}
		}
		cell.Because = append(cell.Because, b)
	}

	if c.Replicas != nil {
		cell.Replicas = &report.Replicas{Before: c.Replicas.Before, After: c.Replicas.After, Asked: c.Replicas.Asked}
	}
	return cell
}

func (r *Plan) addFinding(f fleet.Finding) {
	finding := Finding{Code: f.Code, Severity: f.Severity, Message: f.Message, Clusters: f.Clusters, Policy: f.Policy.Name,
		File: f.Origin.File, Line: f.Origin.Line, Trailer: f.Trailer}
	if f.Object != (object.ID{}) {
		finding.Object = &report.Object{Kind: f.Object.Kind, Namespace: f.Object.Namespace, Name: f.Object.Name}
	}
	r.find(finding)
}

func (r *Plan) find(f Finding) {
	r.Findings = append(r.Findings, f)
	switch f.Severity {
	case fleet.SeverityError:
		r.Summary.Errors++
	case fleet.SeverityCaution:
		r.Summary.Cautions++
	default:
		r.Summary.Notices++
	}
}

func (n *CellCounts) add(c *propagate.Cell) {
	already := 0
	if c.Already {
		already = 1
	}

	switch {
	case c.Action == propagate.ActionNone:
		n.UpToDate++
	case c.Disposition == propagate.Held:
		n.Held++
		n.Already.Held += already
	case c.Disposition == propagate.Deferred:
		n.Deferred++
		n.Already.Deferred += already
	case c.Disposition == propagate.Blocked:
		n.Blocked++
		n.Already.Blocked += already
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

func (c *Cluster) add(cell *propagate.Cell, wave int) {
	c.CellCounts.add(cell)
	if c.Wave != wave {
		c.Wave, c.WaveName = 0, ""
	}
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

// HasEffect reports whether a merge would change anything on a cluster.
func (r *Plan) HasEffect() bool {
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

// when returns the disposition, or which clusters come first.
func when(d propagate.Disposition, after []string) string {
	const most = 3
	switch {
	case len(after) == 0:
		return string(d)
	case len(after) > most:
		return fmt.Sprintf("after %s and %d more", strings.Join(after[:most], ", "), len(after)-most)
	default:
		return "after " + strings.Join(after, ", ")
	}
}
