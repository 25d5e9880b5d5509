// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"

	"github.com/fairlead/fairlead/ordered"
)

// UnknownHolds are the clusters that suspensions name since before and that the
// fleet does not have (decision 36): a hold that holds nothing is worse than none.
// Where a name stood there before, its cluster left later, and that refuses
// nothing.
func (s *Snapshot) UnknownHolds(before *Snapshot) (problems []Problem) {
	for d := range ordered.Diff(before.Policies, s.Policies) {
		if !d.Has {
			continue
		}
		var old []string
		if d.Had {
			old = ImmediateOf(d.Before).names()
		}

		for _, name := range s.unknown(ImmediateOf(d.After).names(), old) {
			_, at := d.After.Suspends(name)
			problems = append(problems, s.unknownHold(d.After.Ref.String(), name, at))
		}
	}

	for d := range ordered.Diff(before.Templates, s.Templates) {
		if !d.Has || d.After.Immediate == nil {
			continue
		}
		var old []string
		if d.Had {
			_, old = d.Before.Suspended()
		}

		_, names := d.After.Suspended()
		for _, name := range s.unknown(names, old) {
			problems = append(problems, s.unknownHold(d.After.ID.String(), name, d.After.Origin))
		}
	}
	return problems
}

// unknown are the names of no cluster that old does not have.
func (s *Snapshot) unknown(names, old []string) (unknown []string) {
	for _, name := range names {
		if _, ok := s.Clusters.Get(name); !ok && !slices.Contains(old, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

func (s *Snapshot) unknownHold(by, name string, at Origin) Problem {
	var clusters []string
	for cluster := range s.Clusters.All() {
		clusters = append(clusters, cluster)
	}

	message := fmt.Sprintf("%s holds cluster %q, which is not in the fleet", by, name)
	if near := Nearest(name, clusters); near != "" {
		message += fmt.Sprintf("; did you mean %q?", near)
	}
	return Problem{Origin: at, Message: message}
}
