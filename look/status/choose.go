// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
)

// WordError is the error of a word that selects clusters of no fleet.
type WordError struct{ text string }

func (e *WordError) Error() string { return e.text }

// Choose returns the clusters of the fleet that words select: by name, by glob, and by
// wave=N of any policy's waves. Without words it returns all.
func Choose(s *propagate.State, words []string) ([]*fleet.Cluster, error) {
	names := map[string]bool{}
	for _, word := range words {
		found, err := clustersCalled(s, word)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			names[name] = true
		}
	}

	var clusters []*fleet.Cluster
	for c := range s.Snapshot.Clusters.Values() {
		if len(words) == 0 || names[c.Name] {
			clusters = append(clusters, c)
		}
	}

	return clusters, nil
}

func clustersCalled(s *propagate.State, word string) (found []string, err error) {
	if text, ok := strings.CutPrefix(word, "wave="); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, &WordError{fmt.Sprintf("-c %s: waves are numbered from 1", word)}
		}
		if found = InWave(s, n); len(found) == 0 {
			return nil, fmt.Errorf("-c: no policy has a wave %d", n)
		}
		return found, nil
	}
	if _, ok := s.Snapshot.Clusters.Get(word); ok {
		return []string{word}, nil
	}

	for c := range s.Snapshot.Clusters.Values() {
		ok, err := path.Match(word, c.Name)
		if err != nil {
			return nil, &WordError{fmt.Sprintf("-c %q: %v", word, err)}
		}
		if ok {
			found = append(found, c.Name)
		}
	}

	if len(found) == 0 && strings.ContainsAny(word, "*?[") {
		return nil, fmt.Errorf("-c: no cluster of the fleet matches %q", word)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("-c: the fleet has no cluster %q", word)
	}

	return found, nil
}

// InWave returns the clusters of wave n of any policy.
func InWave(s *propagate.State, n int) (names []string) {
	for p := range s.Snapshot.Policies.Values() {
		if waves := s.Snapshot.WavesOf(p); n <= len(waves) {
			names = append(names, waves[n-1]...)
		}
	}
	return names
}
