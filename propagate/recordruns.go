// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/schedule"
)

// WorkRecords are the works of a binding on disk: neighbors that are alike but for their
// cluster are one entry, as a fleet has most. One that was written for each work is read
// as well.
type WorkRecords []WorkRecord

// workRun is an entry: Clusters has the names, with blanks between them.
type workRun struct {
	WorkRecord
	Clusters string `json:"clusters,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (all WorkRecords) MarshalJSON() ([]byte, error) {
	var runs []workRun
	for begin := 0; begin < len(all); {
		end := begin + 1
		for end < len(all) && alike(all[begin], all[end]) {
			end++
		}
		run := workRun{WorkRecord: all[begin]}
		run.Cluster = ""
		names := make([]string, 0, end-begin)
		for _, w := range all[begin:end] {
			names = append(names, w.Cluster)
		}
		run.Clusters = strings.Join(names, " ")
		runs = append(runs, run)
		begin = end
	}
	return json.Marshal(runs)
}

// UnmarshalJSON implements json.Unmarshaler.
func (all *WorkRecords) UnmarshalJSON(raw []byte) (err error) {
	*all, err = expand(raw, func(run workRun) (string, func(string) WorkRecord) {
		return run.Clusters, func(name string) WorkRecord {
			w := run.WorkRecord
			w.Cluster = name
			return w
		}
	}, func(run workRun) WorkRecord { return run.WorkRecord })
	return err
}

// alike reports whether two works differ in their cluster only.
func alike(a, b WorkRecord) bool {
	return a.Want == b.Want && a.Released == b.Released && a.Held == b.Held && a.Preserve == b.Preserve &&
		a.Blocked == b.Blocked && slices.Equal(a.After, b.After)
}

// TargetRecords are the targets of a binding on disk: neighbors with as many replicas are
// one entry.
type TargetRecords []schedule.Share

// targetRun is an entry; older ones have a Name.
type targetRun struct {
	Name     string `json:",omitempty"`
	Clusters string `json:",omitempty"`
	Count    int64
}

// MarshalJSON implements json.Marshaler.
func (all TargetRecords) MarshalJSON() ([]byte, error) {
	var runs []targetRun
	for i, share := range all {
		if i > 0 && share.Count == all[i-1].Count {
			runs[len(runs)-1].Clusters += " " + share.Name
			continue
		}
		runs = append(runs, targetRun{Clusters: share.Name, Count: share.Count})
	}
	return json.Marshal(runs)
}

// UnmarshalJSON implements json.Unmarshaler.
func (all *TargetRecords) UnmarshalJSON(raw []byte) (err error) {
	*all, err = expand(raw, func(run targetRun) (string, func(string) schedule.Share) {
		return run.Clusters, func(name string) schedule.Share { return schedule.Share{Name: name, Count: run.Count} }
	}, func(run targetRun) schedule.Share { return schedule.Share{Name: run.Name, Count: run.Count} })
	return err
}

// expand decodes runs, and returns the records of their clusters; single is that of an entry
// from before, which has one cluster.
func expand[Run, Record any](raw []byte, clusters func(Run) (names string, of func(name string) Record), single func(Run) Record) (all []Record, err error) {
	var runs []Run
	if err := json.Unmarshal(raw, &runs); err != nil {
		return nil, err
	}

	for _, run := range runs {
		names, of := clusters(run)
		if names == "" {
			all = append(all, single(run))
			continue
		}
		all = slices.Grow(all, 1+strings.Count(names, " "))
		for name := range strings.SplitSeq(names, " ") {
			all = append(all, of(name))
		}
	}
	return all, nil
}
