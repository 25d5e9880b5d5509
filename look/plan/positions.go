// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/source"
)

// Positions say where a plan has it from what clusters run.
type Positions struct {
	// Source is "reported" by the members, or "derived" from git: what was released.
	Source string `json:"source"`
	// Head is the commit of the status that was reported, or that it was derived at.
	Head string `json:"head,omitempty"`
}

// The sources of positions.
const (
	PositionsReported = "reported"
	PositionsDerived  = "derived"
)

// FindingPositionDiffers is the code of the finding that a cluster runs another commit
// than git has released to it.
const FindingPositionDiffers = "position-differs"

// Reported are the commits whose content clusters have, by object and cluster.
type Reported struct {
	head string
	runs map[object.ID]map[string]running
}

// running is what a cluster runs of an object: the content, where it is known without
// reading it off the commit.
type running struct {
	commit  string
	content *propagate.Content
}

// NewReported returns positions at a commit of the base, for Runs to add to. Clusters that
// it is silent about run what was released to them.
func NewReported(head string) *Reported {
	return &Reported{head: head, runs: map[object.ID]map[string]running{}}
}

// Runs adds what a cluster runs of an object.
func (r *Reported) Runs(id object.ID, cluster string, content *propagate.Content) {
	r.set(id, cluster, running{content.Revision, content})
}

// ReadPositions reads them off what 'fairlead status -o json' prints, or a matrix.
func ReadPositions(raw []byte) (*Reported, error) {
	var doc struct {
		Kind   string               `json:"kind"`
		Head   report.Commit        `json:"head"`
		Blocks []report.MatrixBlock `json:"blocks"`
		Items  []reportedBinding    `json:"items"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("it is not the JSON of fairlead status: %w", err)
	}
	if doc.Kind != "List" && doc.Kind != "Matrix" {
		return nil, fmt.Errorf("it is not the JSON of fairlead status: it is of kind %q", doc.Kind)
	}

	r := NewReported(doc.Head.Commit)
	for _, block := range doc.Blocks {
		for _, row := range block.Rows {
			for _, c := range row.Cells {
				r.add(object.ID{Group: row.Object.Group, Kind: row.Object.Kind, Namespace: row.Object.Namespace, Name: row.Object.Name}, c.Cluster, c.Runs)
			}
		}
	}
	for _, b := range doc.Items {
		of := b.Spec.Resource
		group, _, found := strings.Cut(of.APIVersion, "/")
		if !found {
			group = ""
		}
		for _, c := range b.Status.AggregatedStatus {
			r.add(object.ID{Group: group, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name}, c.ClusterName, c.Revision)
		}
	}
	return r, nil
}

// reportedBinding is what is read of a ResourceBinding.
type reportedBinding struct {
	Spec struct {
		Resource report.Object `json:"resource"`
	} `json:"spec"`
	Status struct {
		AggregatedStatus []struct {
			ClusterName string `json:"clusterName"`
			Revision    string `json:"revision"`
		} `json:"aggregatedStatus"`
	} `json:"status"`
}

func (r *Reported) add(id object.ID, cluster, commit string) {
	if commit == "" {
		return // nobody knows, so git has to say
	}
	r.set(id, cluster, running{commit: commit})
}

func (r *Reported) set(id object.ID, cluster string, runs running) {
	if r.runs[id] == nil {
		r.runs[id] = map[string]running{}
	}
	r.runs[id][cluster] = runs
}

// differences are what clusters run and git has not released to them: a caution for each
// object, and the clusters on which the state was changed.
type differences struct {
	findings []fleet.Finding
	clusters map[object.ID][]string
}

// moved returns a state in which clusters run what they have reported, and where that is
// not what was released. What a commit has released to a cluster is read off the state
// at that commit.
func (r *Reported) moved(states *history.States, s propagate.State) (propagate.State, differences, error) {
	earlier := &earlierStates{states: states, of: map[string]*propagate.State{}, holds: history.Holds(states.Repo, s.Commit)}
	found := differences{clusters: map[object.ID][]string{}}
	for b := range s.Bindings.Values() {
		runs := r.runs[b.ID]
		if len(runs) == 0 {
			continue
		}

		is := *b
		is.Works = slices.Clone(b.Works)
		differs := map[string][]string{} // clusters by what is said of them
		for i := range is.Works {
			w := &is.Works[i]
			commit, content := runs[w.Cluster].commit, runs[w.Cluster].content
			if commit == "" || w.Released != nil && w.Released.Revision == commit {
				continue
			}
			if content == nil {
				var err error
				if content, err = earlier.released(b.Key(), w.Cluster, commit); err != nil {
					return s, found, err
				}
			}
			what := differing(commit, w.Released, content)
			differs[what] = append(differs[what], w.Cluster)
			if content != nil {
				w.Released = content
				found.clusters[b.ID] = append(found.clusters[b.ID], w.Cluster)
			}
		}

		for _, what := range slices.Sorted(maps.Keys(differs)) {
			found.findings = append(found.findings, fleet.Finding{Code: FindingPositionDiffers, Severity: fleet.SeverityCaution, Object: b.ID, Clusters: differs[what],
				Message: fmt.Sprintf("%s on %s: %s", b.ID, strings.Join(differs[what], ", "), what)})
		}
		if len(differs) > 0 {
			s.Bindings = s.Bindings.With(b.Key(), &is)
		}
	}
	return s, found, nil
}

// differing says how what is run differs from what was released.
func differing(runs string, released, content *propagate.Content) string {
	says := "git has released nothing"
	if released != nil {
		says = "git has released " + source.Short(released.Revision)
	}
	if content == nil {
		return fmt.Sprintf("it runs %s, which this branch has not released there, and %s: planned from that", source.Short(runs), says)
	}
	return fmt.Sprintf("it runs %s, and %s: planned from what runs", source.Short(runs), says)
}

// earlierStates are states at earlier commits of one line.
type earlierStates struct {
	states *history.States
	holds  func(commit string) bool
	of     map[string]*propagate.State
}

// released returns what a commit released to a cluster of a binding; nil if it did not.
func (e *earlierStates) released(key, cluster, commit string) (*propagate.Content, error) {
	if !e.holds(commit) {
		return nil, nil
	}
	s, known := e.of[commit]
	if !known {
		at, err := e.states.At(commit)
		if err != nil {
			return nil, err
		}
		s, e.of[commit] = &at, &at
	}

	b := s.Bindings.At(key)
	if b == nil {
		return nil, nil
	}
	w := b.Work(cluster)
	if w == nil || w.Released == nil || w.Released.Revision != commit {
		return nil, nil
	}
	return w.Released, nil
}
