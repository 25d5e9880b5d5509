// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"strconv"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// WavesOf returns the order in which clusters are promoted under a policy, clusters by
// wave: what the policy's annotation says, or else fairlead.yaml.
func (s *Snapshot) WavesOf(p *Policy) [][]string {
	switch {
	case p == nil:
		return nil
	case len(p.Waves) > 0:
		return p.Waves
	}
	return s.Settings.Waves()
}

// WaveName returns what fairlead.yaml calls a wave of WavesOf, by its number; "" of an
// order that the policy has for itself.
func (s *Snapshot) WaveName(p *Policy, n int) string {
	if p == nil || len(p.Waves) > 0 || s.Settings == nil || n < 1 || n > len(s.Settings.Spec.Waves) {
		return ""
	}
	return s.Settings.Spec.Waves[n-1].Name
}

// Waves returns the fleet's own waves, clusters by wave.
func (s *Settings) Waves() (waves [][]string) {
	if s == nil {
		return nil
	}
	for _, w := range s.Spec.Waves {
		waves = append(waves, w.Clusters)
	}
	return waves
}

// Wave returns the number of a wave of the fleet, counted from 1; 0 if none has that
// name.
func (s *Settings) Wave(name string) int {
	if s == nil {
		return 0
	}
	return 1 + slices.IndexFunc(s.Spec.Waves, func(w fleetv1alpha1.Wave) bool { return w.Name == name })
}

// checkFleetWaves validates the waves of fairlead.yaml. A name that reads as a number
// could be taken for the number of another wave.
func checkFleetWaves(c *check, waves []fleetv1alpha1.Wave) {
	var clusters [][]string
	seen := map[string]bool{}
	for i, w := range waves {
		clusters = append(clusters, w.Clusters)
		at := fmt.Sprintf("spec.waves[%d].name", i)
		_, err := strconv.Atoi(w.Name)
		switch {
		case w.Name == "":
			c.at(at, "%s is required", at)
		case err == nil:
			c.at(at, "%s is %q, must not be a number", at, w.Name)
		case seen[w.Name]:
			c.at(at, "%s: there are two waves %q", at, w.Name)
		}
		seen[w.Name] = true
	}

	checkWaves(c, "spec.waves", "spec.waves", clusters)
}

// checkWaves validates clusters by wave; what is how their source is called.
func checkWaves(c *check, at, what string, waves [][]string) {
	in := map[string]int{}
	for i, wave := range waves {
		if len(wave) == 0 {
			c.at(at, "%s: wave %d names no cluster", what, i+1)
		}
		for _, name := range wave {
			switch first := in[name]; {
			case name == "":
				c.at(at, "%s: wave %d has an empty name", what, i+1)
			case first > 0:
				c.at(at, "%s: %s is in wave %d and in wave %d", what, name, first, i+1)
			}
			in[name] = i + 1
		}
	}
}
