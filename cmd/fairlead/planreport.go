// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/fairlead/fairlead/propagate"
)

// planReport is a plan as it is printed; its JSON is a contract. Within a
// major of FormatVersion fields are only added.
type planReport struct {
	APIVersion    string        `json:"apiVersion"`
	Kind          string        `json:"kind"`
	FormatVersion string        `json:"formatVersion"`
	Complete      bool          `json:"complete"`
	Base          planCommit    `json:"base"`
	Head          planCommit    `json:"head"`
	Digest        string        `json:"digest"`
	Summary       planSummary   `json:"summary"`
	Clusters      []planCluster `json:"clusters"`
	Cells         []planCell    `json:"cells"`
	Findings      []planFinding `json:"findings"`
}

type planCommit struct {
	Commit string `json:"commit"`
}

type planSummary struct {
	Cells           cellCounts `json:"cells"`
	Clusters        int        `json:"clusters"`
	DistinctChanges int        `json:"distinctChanges"`
	Errors          int        `json:"errors"`
	Cautions        int        `json:"cautions"`
	Notices         int        `json:"notices"`
}

// cellCounts counts the cells in which something happens or waits, by when it
// happens; deletions and what is left running are counted apart.
type cellCounts struct {
	Now       int `json:"now"`
	Released  int `json:"released"`
	Held      int `json:"held"`
	Deferred  int `json:"deferred"`
	Blocked   int `json:"blocked"`
	Deleted   int `json:"deleted"`
	Preserved int `json:"preserved"`
}

type planCluster struct {
	Name string `json:"name"`
	cellCounts
	Replicas *planReplicas `json:"replicas,omitempty"`
}

type planReplicas struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
	Asked  int64 `json:"asked"`
}

type planObject struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

type planCell struct {
	Object      planObject            `json:"object"`
	Cluster     string                `json:"cluster"`
	Policy      string                `json:"policy,omitempty"`
	Action      propagate.Action      `json:"action"`
	Disposition propagate.Disposition `json:"disposition"`
	Replicas    *planReplicas         `json:"replicas,omitempty"`
	Because     []planBecause         `json:"because"`
	DependsOn   string                `json:"dependsOn,omitempty"`
	Change      string                `json:"change,omitempty"`
}

type planBecause struct {
	Code string `json:"code"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

type planFinding struct {
	Code     string          `json:"code"`
	Level    propagate.Level `json:"level"`
	Message  string          `json:"message"`
	Object   *planObject     `json:"object,omitempty"`
	Clusters []string        `json:"clusters,omitempty"`
	Policy   string          `json:"policy,omitempty"`
	File     string          `json:"file,omitempty"`
	Line     int             `json:"line,omitempty"`
	Trailer  string          `json:"trailer,omitempty"`
}

func newPlanReport(p *propagate.Plan, base, head string, after *propagate.State) *planReport {
	r := &planReport{
		APIVersion: "fairlead.dev/v1", Kind: "Plan", FormatVersion: "1.0", Complete: true,
		Base: planCommit{base}, Head: planCommit{head},
		Clusters: []planCluster{}, Cells: []planCell{}, Findings: []planFinding{},
	}
	if refusal := after.Refusal; refusal != nil && refusal.Guard == nil && refusal.Commit == head {
		r.Complete = false
		for _, problem := range refusal.Problems {
			r.Findings = append(r.Findings, planFinding{Code: propagate.FindingRenderError, Level: propagate.LevelError,
				Message: fmt.Sprintf("commit %s: %s", short(head), problem.Error()), File: problem.File, Line: problem.Line})
		}
	}
	for _, c := range p.Cells {
		r.addCell(c)
	}
	for _, f := range p.Findings {
		r.addFinding(f)
	}
	for _, f := range r.Findings {
		switch f.Level {
		case propagate.LevelError:
			r.Summary.Errors++
		case propagate.LevelCaution:
			r.Summary.Cautions++
		default:
			r.Summary.Notices++
		}
	}
	slices.SortFunc(r.Clusters, func(a, b planCluster) int { return cmp.Compare(a.Name, b.Name) })
	r.Summary.Clusters = len(r.Clusters)
	cells, err := json.Marshal(r.Cells)
	if err != nil {
		panic(fmt.Sprintf("plan cells have no JSON: %v", err))
	}
	r.Digest = propagate.DigestOf(cells).String()
	return r
}

func (r *planReport) addCell(c propagate.Cell) {
	cell := planCell{
		Object:  planObject{c.APIVersion, c.Object.Kind, c.Object.Namespace, c.Object.Name},
		Cluster: c.Cluster, Policy: c.Policy.Name, Action: c.Action, Disposition: c.Disposition, Change: c.Change, DependsOn: c.DependsOn,
		Because: []planBecause{},
	}
	for _, why := range c.Because {
		cell.Because = append(cell.Because, planBecause{why.Code, why.File, why.Line})
	}
	if c.Replicas != nil {
		cell.Replicas = &planReplicas{c.Replicas.Before, c.Replicas.After, c.Replicas.Asked}
	}
	r.Cells = append(r.Cells, cell)
	r.Summary.Cells.add(c)
	r.cluster(c.Cluster).add(c)
	var n int
	if _, err := fmt.Sscanf(c.Change, "c%d", &n); err == nil {
		r.Summary.DistinctChanges = max(r.Summary.DistinctChanges, n)
	}
}

func (r *planReport) addFinding(f propagate.Finding) {
	finding := planFinding{Code: f.Code, Level: f.Level, Message: f.Message, Clusters: f.Clusters, Policy: f.Policy.Name,
		File: f.Origin.File, Line: f.Origin.Line, Trailer: f.Trailer}
	if f.Object != (propagate.ID{}) {
		finding.Object = &planObject{Kind: f.Object.Kind, Namespace: f.Object.Namespace, Name: f.Object.Name}
	}
	r.Findings = append(r.Findings, finding)
}

// cluster is the row of a cluster, added when it is new.
func (r *planReport) cluster(name string) *planCluster {
	for i := range r.Clusters {
		if r.Clusters[i].Name == name {
			return &r.Clusters[i]
		}
	}
	r.Clusters = append(r.Clusters, planCluster{Name: name})
	return &r.Clusters[len(r.Clusters)-1]
}

func (n *cellCounts) add(c propagate.Cell) {
	switch {
	case c.Action == propagate.ActionNone: // held, and nothing waits
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

func (c *planCluster) add(cell propagate.Cell) {
	c.cellCounts.add(cell)
	if cell.Replicas == nil {
		return
	}
	if c.Replicas == nil {
		c.Replicas = &planReplicas{}
	}
	c.Replicas.Before += cell.Replicas.Before
	c.Replicas.After += cell.Replicas.After
	c.Replicas.Asked += cell.Replicas.Asked
}

// changes is whether a merge would change anything on a cluster.
func (r *planReport) changes() bool {
	c := r.Summary.Cells
	return c.Now+c.Released+c.Deleted+c.Preserved > 0
}

// held is whether the guard asks for a confirmation.
func (r *planReport) held() bool {
	return slices.ContainsFunc(r.Findings, func(f planFinding) bool { return f.Trailer != "" })
}

// frozen is whether units cannot be read.
func (r *planReport) frozen() bool {
	return slices.ContainsFunc(r.Findings, func(f planFinding) bool { return f.Code == propagate.FindingFrozen })
}

var glyphs = map[propagate.Action]string{
	propagate.ActionCreate: "+", propagate.ActionUpdate: "~", propagate.ActionScale: "^",
	propagate.ActionDelete: "-", propagate.ActionPreserve: "o", propagate.ActionNone: "=", actionAdopt: "~",
}

// actionAdopt is a create that finds an object there and takes it over. Git
// does not know of that; who asked the cluster does.
const actionAdopt propagate.Action = "adopt"

// text prints the verdict first, then what to check, then the clusters and
// the changes; equal changes share a line.
func (r *planReport) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "plan %s..%s\n\n", short(r.Base.Commit), short(r.Head.Commit))
	r.verdict(w)
	r.check(w)
	r.table(w)
	r.cells(w)
	return w.Flush()
}

func (r *planReport) verdict(w io.Writer) {
	c := r.Summary.Cells
	switch {
	case !r.Complete:
		fmt.Fprintln(w, "The change cannot be planned: the fleet would stay as it is.")
		return
	case !r.changes() && r.frozen():
		fmt.Fprintln(w, "Nothing changes on any cluster: what cannot be read stays as it is.")
	case !r.changes() && c.Held == 0:
		fmt.Fprintln(w, "Nothing changes on any cluster.")
		return
	case !r.changes():
		fmt.Fprintln(w, "Nothing changes on any cluster; what is held stays held.")
	case r.held():
		fmt.Fprintln(w, "Held: nothing happens on merge until the deletion is confirmed. Then")
	default:
		fmt.Fprintln(w, "On merge")
	}
	for _, line := range c.lines() {
		fmt.Fprintf(w, "  %4d %s\n", line.n, line.text)
	}
}

// countLine is a number of cells, and what happens in them.
type countLine struct {
	n           int
	brief, text string
}

// lines are the counts that are not zero.
func (n cellCounts) lines() []countLine {
	return slices.DeleteFunc([]countLine{
		{n.Now, "now", "now"}, {n.Released, "released", "released: a hold is lifted"}, {n.Deleted, "deleted", "deleted"},
		{n.Preserved, "left running", "left running, no longer managed"}, {n.Held, "held", "held by a suspension"},
		{n.Deferred, "deferred", "deferred until their template changes"}, {n.Blocked, "blocked", "blocked"},
	}, func(l countLine) bool { return l.n == 0 })
}

func (r *planReport) check(w io.Writer) {
	if len(r.Findings) == 0 {
		return
	}
	fmt.Fprintln(w, "\nCheck")
	mark := map[propagate.Level]string{propagate.LevelError: "x", propagate.LevelCaution: "!", propagate.LevelNotice: "."}
	for _, f := range r.Findings {
		where := f.where()
		if where != "" {
			where = "  (" + where + ")"
		}
		fmt.Fprintf(w, "  %s %s  %s%s\n", mark[f.Level], f.Code, f.Message, where)
	}
}

// where is the place of a finding whose message does not name it.
func (f *planFinding) where() string {
	where := f.File
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	if strings.Contains(f.Message, where) {
		return ""
	}
	return where
}

func (r *planReport) table(w io.Writer) {
	if len(r.Clusters) == 0 {
		return
	}
	fmt.Fprintln(w, "\nCLUSTER\tNOW\tRELEASED\tHELD\tDEFERRED\tDELETED\tLEFT\tREPLICAS")
	for _, c := range r.Clusters {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, dash(c.Now), dash(c.Released), dash(c.Held), dash(c.Deferred), dash(c.Deleted), dash(c.Preserved), cmp.Or(c.Replicas.text(), "-"))
	}
}

// text reads "3 -> 4 (asked 5)", or nothing where there are none.
func (n *planReplicas) text() string {
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

func (r *planReport) cells(w io.Writer) {
	if len(r.Cells) == 0 {
		return
	}
	fmt.Fprintln(w, "\nChanges")
	for c := range r.groups() {
		fmt.Fprintf(w, "  %s %s\t%s\t%s\t%s\t%s\n", glyphs[c.Action], c.what(), c.Object.text(), c.Disposition, strings.Join(c.clusters, " "), because(c.planCell))
	}
}

// planGroup is a cell with every cluster on which the same happens.
type planGroup struct {
	planCell
	clusters []string
}

// groups are the cells, those of an object that are alike as one.
func (r *planReport) groups() iter.Seq[planGroup] {
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
				g := planGroup{planCell: c}
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

// alike is equal for cells of an object in which the same happens.
func (c *planCell) alike() string { return c.Change + string(c.Disposition) + string(c.Action) }

func (c *planCell) what() string {
	if c.Action == propagate.ActionNone {
		return "up to date"
	}
	return string(c.Action)
}

func (o planObject) text() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

func because(c planCell) string {
	var why []string
	for _, b := range c.Because {
		if b.File == "" {
			why = append(why, b.Code)
			continue
		}
		why = append(why, fmt.Sprintf("%s %s:%d", b.Code, b.File, b.Line))
	}
	return strings.Join(why, ", ")
}
