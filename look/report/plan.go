// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Plan is the effect of a change on every cluster; its JSON is a contract. Within a
// major of FormatVersion fields are only added.
type Plan struct {
	APIVersion    string        `json:"apiVersion"`
	Kind          string        `json:"kind"`
	FormatVersion string        `json:"formatVersion"`
	Complete      bool          `json:"complete"`
	Base          Commit        `json:"base"`
	Head          Commit        `json:"head"`
	Digest        string        `json:"digest"`
	Summary       PlanSummary   `json:"summary"`
	Clusters      []PlanCluster `json:"clusters"`
	Cells         []PlanCell    `json:"cells"`
	Findings      []PlanFinding `json:"findings"`
}

// PlanSummary counts what is in a plan.
type PlanSummary struct {
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

// PlanCluster counts what happens on one cluster.
type PlanCluster struct {
	Name string `json:"name"`
	CellCounts
	Replicas *Replicas `json:"replicas,omitempty"`
}

// Replicas are those of a work, or a sum of them. After differs from Asked where the
// new number is not released yet.
type Replicas struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
	Asked  int64 `json:"asked"`
}

// PlanCell is what happens to one object on one cluster, and why.
type PlanCell struct {
	Object      Object                `json:"object"`
	Cluster     string                `json:"cluster"`
	Policy      string                `json:"policy,omitempty"`
	Action      propagate.Action      `json:"action"`
	Disposition propagate.Disposition `json:"disposition"`
	// After is what clusters are to acknowledge first.
	After     []string  `json:"after,omitempty"`
	Replicas  *Replicas `json:"replicas,omitempty"`
	Because   []Because `json:"because"`
	DependsOn string    `json:"dependsOn,omitempty"`
	Change    string    `json:"change,omitempty"`
}

// Because is a cause, and the document that is responsible for it.
type Because struct {
	Code string `json:"code"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// PlanFinding is something that a reviewer should know.
type PlanFinding struct {
	Code     string         `json:"code"`
	Severity fleet.Severity `json:"level"`
	Message  string         `json:"message"`
	Object   *Object        `json:"object,omitempty"`
	Clusters []string       `json:"clusters,omitempty"`
	Policy   string         `json:"policy,omitempty"`
	File     string         `json:"file,omitempty"`
	Line     int            `json:"line,omitempty"`
	Trailer  string         `json:"trailer,omitempty"`
}

// NewPlan returns the report of a plan from base to head; after is the state that
// head leads to.
func NewPlan(p *propagate.Plan, base, head string, after *propagate.State) *Plan {
	r := &Plan{
		APIVersion: apiVersion, Kind: "Plan", FormatVersion: "1.0", Complete: !p.Incomplete,
		Base: Commit{base}, Head: Commit{head},
		Clusters: []PlanCluster{}, Cells: []PlanCell{}, Findings: []PlanFinding{},
	}
	if refusal := after.Refusal; refusal != nil && refusal.Guard == nil && refusal.Commit == head {
		r.Complete = false
		for _, problem := range refusal.Problems {
			r.Findings = append(r.Findings, PlanFinding{Code: fleet.FindingRenderError, Severity: fleet.SeverityError,
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

	slices.SortFunc(r.Clusters, func(a, b PlanCluster) int { return cmp.Compare(a.Name, b.Name) })
	r.Summary.Clusters = len(r.Clusters)
	cells, err := json.Marshal(r.Cells)
	if err != nil {
		panic(fmt.Sprintf("plan cells have no JSON: %v", err))
	}

	r.Digest = object.DigestOf(cells).String()
	return r
}

func (r *Plan) addCell(c propagate.Cell) {
	cell := PlanCell{
		Object:  Object{APIVersion: c.APIVersion, Kind: c.Object.Kind, Namespace: c.Object.Namespace, Name: c.Object.Name},
		Cluster: c.Cluster, Policy: c.Policy.Name, Action: c.Action, Disposition: c.Disposition, After: c.After, Change: c.Change, DependsOn: c.DependsOn,
		Because: []Because{},
	}
	for _, why := range c.Because {
		cell.Because = append(cell.Because, Because{why.Code, why.File, why.Line})
	}

	if c.Replicas != nil {
		cell.Replicas = &Replicas{c.Replicas.Before, c.Replicas.After, c.Replicas.Asked}
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
	finding := PlanFinding{Code: f.Code, Severity: f.Severity, Message: f.Message, Clusters: f.Clusters, Policy: f.Policy.Name,
		File: f.Origin.File, Line: f.Origin.Line, Trailer: f.Trailer}
	if f.Object != (object.ID{}) {
		finding.Object = &Object{Kind: f.Object.Kind, Namespace: f.Object.Namespace, Name: f.Object.Name}
	}
	r.Findings = append(r.Findings, finding)
}

// cluster returns the row of a cluster, and adds it if it is new.
func (r *Plan) cluster(name string) *PlanCluster {
	for i := range r.Clusters {
		if r.Clusters[i].Name == name {
			return &r.Clusters[i]
		}
	}
	r.Clusters = append(r.Clusters, PlanCluster{Name: name})
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

func (c *PlanCluster) add(cell propagate.Cell) {
	c.CellCounts.add(cell)
	if cell.Replicas == nil {
		return
	}

	if c.Replicas == nil {
		c.Replicas = &Replicas{}
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
	return slices.ContainsFunc(r.Findings, func(f PlanFinding) bool { return f.Trailer != "" })
}

// frozen reports whether there are frozen units.
func (r *Plan) frozen() bool {
	return slices.ContainsFunc(r.Findings, func(f PlanFinding) bool { return f.Code == fleet.FindingFrozen })
}

var glyphs = map[propagate.Action]string{
	propagate.ActionCreate: "+", propagate.ActionUpdate: "~", propagate.ActionScale: "^",
	propagate.ActionDelete: "-", propagate.ActionPreserve: "o", propagate.ActionNone: "=", ActionAdopt: "~",
}

// ActionAdopt is a create of an object that the cluster has already, and that is
// adopted. A plan from git alone cannot know that; fairlead adopt does.
const ActionAdopt propagate.Action = "adopt"

// Text prints the verdict, the findings, the clusters and the changes; equal changes
// share a line.
func (r *Plan) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	printable.Fprintf(w, "plan %s..%s\n\n", source.Short(r.Base.Commit), source.Short(r.Head.Commit))
	r.verdict(w)
	r.check(w)
	r.table(w)
	r.cells(w)
	return w.Flush()
}

func (r *Plan) verdict(w io.Writer) {
	c := r.Summary.Cells
	switch {
	case !r.Complete:
		fmt.Fprintln(w, "The change cannot be planned: the fleet would stay as it is.")
		return
	case !r.Changes() && r.frozen():
		fmt.Fprintln(w, "Nothing changes on any cluster: what cannot be read stays as it is.")
	case !r.Changes() && c.Held == 0:
		fmt.Fprintln(w, "Nothing changes on any cluster.")
		return
	case !r.Changes():
		fmt.Fprintln(w, "Nothing changes on any cluster; what is held stays held.")
	case r.awaitsConfirmation():
		fmt.Fprintln(w, "Held: nothing happens on merge until the deletion is confirmed. Then")
	default:
		fmt.Fprintln(w, "On merge")
	}

	for _, line := range c.lines() {
		printable.Fprintf(w, "  %4d %s\n", line.n, line.text)
	}
}

// countLine is a count with its labels.
type countLine struct {
	n           int
	brief, text string
}

// lines returns the counts that are not zero.
func (n CellCounts) lines() []countLine {
	return slices.DeleteFunc([]countLine{
		{n.Now, "now", "now"}, {n.Released, "released", "released: a hold is lifted"}, {n.Deleted, "deleted", "deleted"},
		{n.Preserved, "left running", "left running, no longer managed"}, {n.Held, "held", "held by a suspension"},
		{n.Deferred, "deferred", "deferred until their template changes"}, {n.Blocked, "blocked", "blocked"},
	}, func(l countLine) bool { return l.n == 0 })
}

func (r *Plan) check(w io.Writer) {
	if len(r.Findings) == 0 {
		return
	}

	fmt.Fprintln(w, "\nCheck")
	mark := map[fleet.Severity]string{fleet.SeverityError: "x", fleet.SeverityCaution: "!", fleet.SeverityNotice: "."}
	for f, more := range Abridge(r.Findings, MostAlike, PlanFinding.kind) {
		where := f.where()
		if where != "" {
			where = "  (" + where + ")"
		}
		printable.Fprintf(w, "  %s %s  %s%s\n", mark[f.Severity], f.Code, f.Message, where)
		if more > 0 {
			printable.Fprintf(w, "  %s %s  and %d more; -o json has them all\n", mark[f.Severity], f.Code, more)
		}
	}
}

// where returns the place of a finding, "" if its message names it already.
func (f *PlanFinding) where() string {
	where := f.File
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	if strings.Contains(f.Message, where) {
		return ""
	}
	return where
}

func (r *Plan) table(w io.Writer) {
	if len(r.Clusters) == 0 {
		return
	}
	fmt.Fprintln(w, "\nCLUSTER\tNOW\tRELEASED\tHELD\tDEFERRED\tDELETED\tLEFT")
	for _, c := range r.Clusters {
		printable.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, dash(c.Now), dash(c.Released), dash(c.Held), dash(c.Deferred), dash(c.Deleted), dash(c.Preserved))
	}
}

// text reads "3 -> 4 (asked 5)"; it is empty without replicas.
func (n *Replicas) text() string {
	if n == nil {
		return ""
	}
	text := fmt.Sprintf("%d -> %d", n.Before, n.After)
	if n.Asked != n.After {
		text += fmt.Sprintf(" (asked %d)", n.Asked)
	}
	return text
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func (r *Plan) cells(w io.Writer) {
	if len(r.Cells) == 0 {
		return
	}
	fmt.Fprintln(w, "\nChanges")
	for c := range r.groups() {
		printable.Fprintf(w, "  %s %s\t%s\t%s\t%s\t%s\n", glyphs[c.Action], c.what(), c.Object.text(), c.when(), strings.Join(c.clusters, " "), c.why())
	}
}

// planGroup is a cell with all clusters on which the same happens.
type planGroup struct {
	PlanCell
	clusters []string
}

// groups yields the cells, with equal ones of an object as one.
func (r *Plan) groups() iter.Seq[planGroup] {
	return func(yield func(planGroup) bool) {
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
				g := planGroup{PlanCell: c}
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
func (c *PlanCell) alike() string { return c.Change + c.when() + string(c.Action) }

// when returns the disposition, or which clusters come first.
func (c *PlanCell) when() string {
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

func (c *PlanCell) what() string {
	if c.Action == propagate.ActionNone {
		return "up to date"
	}
	return string(c.Action)
}

func (o Object) text() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// why returns what becomes of the replicas, and the reasons.
func (g planGroup) why() string {
	return strings.Join(append(g.scaled(), because(g.Because)...), ", ")
}

func because(reasons []Because) (why []string) {
	for _, b := range reasons {
		if b.File == "" {
			why = append(why, b.Code)
			continue
		}
		why = append(why, fmt.Sprintf("%s %s:%d", b.Code, b.File, b.Line))
	}
	return why
}

// scaled reads "replicas 3 -> 4 (asked 5)", empty where their number stays.
func (g planGroup) scaled() []string {
	n := g.Replicas
	switch {
	case n == nil || g.Action == propagate.ActionDelete:
		return nil
	case g.Action == propagate.ActionCreate && n.After == n.Asked:
		return []string{fmt.Sprintf("replicas %d", n.After)}
	case n.Before == n.After && n.After == n.Asked:
		return nil
	}
	return []string{"replicas " + n.text()}
}
