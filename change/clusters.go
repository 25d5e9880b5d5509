// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
)

// expand returns the clusters that words select: by name, by glob, and by wave=N
// of the policy's waves. A cluster that the policy names may have left the fleet.
func (s *Session) expand(p *Policy, words []string) (names []string, err error) {
	_, held := p.now.Suspended()
	for _, word := range words {
		found, err := s.expandOne(p, word, held)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}

	return names, nil
}

func (s *Session) expandOne(p *Policy, word string, held []string) (found []string, err error) {
	clusters := s.in.Snapshot.Clusters
	if n, ok := strings.CutPrefix(word, "wave="); ok {
		wave, err := s.wave(p, n)
		if err != nil {
			return nil, err
		}
		return p.waves[wave-1], nil
	}
	if !strings.ContainsAny(word, "*?[") {
		if _, ok := clusters.Get(word); !ok && !slices.Contains(held, word) {
			return nil, fmt.Errorf("-c: the fleet has no cluster %q", word)
		}
		return []string{word}, nil
	}
	for c := range clusters.Values() {
		ok, err := path.Match(word, c.Name)
		if err != nil {
			return nil, optionf("-c %q: %w", word, err)
		}
		if ok {
			found = append(found, c.Name)
		}
	}

	if len(found) == 0 {
		return nil, fmt.Errorf("-c: no cluster of the fleet matches %q", word)
	}

	slices.Sort(found)
	return found, nil
}

// wave finds one of the policy's waves by its number, or by its name in fairlead.yaml.
func (s *Session) wave(p *Policy, called string) (int, error) {
	wave, err := strconv.Atoi(called)
	if err != nil && len(p.now.Waves) == 0 {
		wave = s.in.Snapshot.Settings.Wave(called)
	}

	switch {
	case len(p.waves) == 0:
		return 0, fmt.Errorf("%s has no waves: spec.waves of %s would list them, or its annotation %s", p.title, fleet.SettingsFile, fleetv1alpha1.AnnotationWaves)
	case wave < 1 || wave > len(p.waves):
		return 0, fmt.Errorf("%s has waves 1 to %d, and no wave %q", p.title, len(p.waves), called)
	}
	return wave, nil
}

// split divides names into those that are among others and those that are not.
func split(names, among []string) (in, out []string) {
	for _, name := range names {
		if slices.Contains(among, name) {
			in = append(in, name)
		} else {
			out = append(out, name)
		}
	}
	return in, out
}
