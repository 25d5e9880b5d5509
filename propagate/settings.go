// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// The feature gates of fairlead.yaml.
const (
	GateStaticPolicy = "StaticPolicy"
	GatePreemption   = "PropagationPolicyPreemption"
	GateFailover     = "Failover"
)

// Gates are the known feature gates and their defaults.
func Gates() map[string]bool {
	return map[string]bool{GateStaticPolicy: false, GatePreemption: true, GateFailover: false}
}

// NewSettings validates fairlead.yaml (decision 8a).
func NewSettings(in *fleetv1alpha1.FleetConfig, origin Origin, lines map[string]int) (*Settings, []Problem) {
	c := &check{origin: origin, lines: lines}
	s := in.DeepCopy().Spec
	known := Gates()
	for _, name := range slices.Sorted(maps.Keys(s.FeatureGates)) {
		path := "spec.featureGates." + name
		if _, ok := known[name]; !ok {
			c.at(path, "unknown feature gate %q; known: %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	oneOf(c, "spec.onBroken", s.OnBroken, "", fleetv1alpha1.RefuseCommit, fleetv1alpha1.FreezeUnit)
	if s.MaxDelete != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(s.MaxDelete, 100, false); err != nil || n < 0 {
			c.at("spec.maxDelete", "spec.maxDelete is %q, must be a number from 0 or a percentage such as \"25%%\"", s.MaxDelete.String())
		}
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return &Settings{Spec: s, Origin: origin}, nil
}

// Freezes is whether an error in a unit reaches that unit alone (fold rule 3).
func (s *Settings) Freezes() bool {
	return s != nil && s.Spec.OnBroken == fleetv1alpha1.FreezeUnit
}

// gate is whether a feature gate is on in a snapshot.
func (s *Snapshot) gate(name string) bool {
	if s.Settings != nil {
		if on, set := s.Settings.Spec.FeatureGates[name]; set {
			return on
		}
	}
	return Gates()[name]
}

// WithGates is the snapshot as if fairlead.yaml set these gates: what a look
// command's flag asks for.
func (s *Snapshot) WithGates(gates map[string]bool) *Snapshot {
	if s == nil || len(gates) == 0 {
		return s
	}
	with, settings := *s, Settings{}
	if s.Settings != nil {
		settings = *s.Settings
	}
	settings.Spec.FeatureGates = maps.Clone(settings.Spec.FeatureGates)
	if settings.Spec.FeatureGates == nil {
		settings.Spec.FeatureGates = map[string]bool{}
	}
	maps.Copy(settings.Spec.FeatureGates, gates)
	with.Settings = &settings
	return &with
}

// maxDelete is how many works a step may delete from a fleet of so many, and
// whether there is a limit at all.
func (s *Settings) maxDelete(works int) (limit int, limited bool) {
	if s == nil || s.Spec.MaxDelete == nil {
		return works / 2, works > 20
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(s.Spec.MaxDelete, works, false)
	return limit, err == nil
}
