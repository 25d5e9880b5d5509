// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/ordered"
)

// The feature gates of fairlead.yaml.
const (
	GateStaticPolicy = "StaticPolicy"
	GatePreemption   = "PropagationPolicyPreemption"
	GateFailover     = "Failover"
)

// Gates returns the known feature gates and their defaults.
func Gates() map[string]bool {
	return map[string]bool{GateStaticPolicy: false, GatePreemption: true, GateFailover: false}
}

// NewSettings validates fairlead.yaml (decision 8a).
func NewSettings(in *fleetv1alpha1.FleetConfig, origin Origin, lines map[string]int) (*Settings, []Problem) {
	return build(settings{}, in.DeepCopy(), &check{origin: origin, lines: lines})
}

// SettingsFile holds the fleet's settings, at the root of its tree.
const SettingsFile = "fairlead.yaml"

// settings is the kind FleetConfig. There is at most one document, so it has no
// name and an empty key.
type settings struct{}

func (settings) Names() Names {
	return Names{fleetv1alpha1.GroupVersion, []string{fleetv1alpha1.KindFleetConfig}}
}

func (settings) ID(*Settings) object.ID {
	return object.ID{Group: fleetv1alpha1.GroupVersion.Group, Kind: fleetv1alpha1.KindFleetConfig}
}

func (settings) Key(*Settings) string      { return "" }
func (settings) Origin(s *Settings) Origin { return s.Origin }
func (settings) Equal(a, b *Settings) bool { return reflect.DeepEqual(a, b) }

func (settings) Load(s *Snapshot) (all ordered.Map[*Settings]) {
	if s.Settings != nil {
		all = all.With("", s.Settings)
	}
	return all
}

func (settings) Store(s *Snapshot, all ordered.Map[*Settings]) { s.Settings = all.At("") }

func (settings) Prepare(s *Source) ([]*Finding, []Problem) {
	if s.Unit != SettingsFile {
		return nil, []Problem{s.problem("kind", "FleetConfig is only read from %s at the root of the fleet", SettingsFile)}
	}
	return nil, nil
}

func (settings) Default(*fleetv1alpha1.FleetConfig, *check) {}

func (settings) Validate(doc *fleetv1alpha1.FleetConfig, c *check) *Settings {
	s, known := doc.Spec, Gates()
	if problem := object.FleetNameProblem(doc.Name); doc.Name != "" && problem != "" {
		c.at("metadata.name", "the fleet's name %q must be fit for a label: %s", doc.Name, problem)
	}
	for _, name := range slices.Sorted(maps.Keys(s.FeatureGates)) {
		at := "spec.featureGates." + name
		if _, ok := known[name]; !ok {
			c.at(at, "unknown feature gate %q; known: %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}

	oneOf(c, "spec.onBroken", s.OnBroken, "", fleetv1alpha1.RefuseCommit, fleetv1alpha1.FreezeUnit)
	if s.MaxDelete != nil {
		if n, _, ok := numberOrPercent(s.MaxDelete); !ok || n < 0 {
			c.at("spec.maxDelete", "spec.maxDelete is %q, must be a non-negative number or a percentage such as \"25%%\"", s.MaxDelete.String())
		}
	}

	for i, glob := range s.SkippedNamespaces {
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			at := fmt.Sprintf("spec.skippedNamespaces[%d]", i)
			c.at(at, "%s is %q, must be a pattern such as \"kube-*\"", at, glob)
		}
	}

	checkFleetWaves(c, s.Waves)
	return &Settings{Name: doc.Name, Spec: s, Origin: c.origin}
}

// Freezes reports whether an error in a unit is contained to that unit (fold
// rule 3).
func (s *Settings) Freezes() bool {
	return s != nil && s.Spec.OnBroken == fleetv1alpha1.FreezeUnit
}

// Gate reports whether a feature gate is on in a snapshot.
func (s *Snapshot) Gate(name string) bool {
	if s.Settings != nil {
		if on, set := s.Settings.Spec.FeatureGates[name]; set {
			return on
		}
	}
	return Gates()[name]
}

// DefaultSkippedNamespaces are skipped where the settings name none.
var DefaultSkippedNamespaces = []string{"kube-*"}

// Skips returns the namespace of a template, or of a Namespace itself, if no policy
// takes it (decision 55); "" if one may.
func (s *Snapshot) Skips(id object.ID) string {
	namespace := id.Namespace
	if object.IsNamespace(id) {
		namespace = id.Name
	}
	if namespace == "" {
		return ""
	}

	for _, glob := range s.SkippedNamespaces() {
		if skipped, _ := path.Match(glob, namespace); skipped {
			return namespace
		}
	}
	return ""
}

// SkippedNamespaces are the patterns in effect.
func (s *Snapshot) SkippedNamespaces() []string {
	if s.Settings == nil || s.Settings.Spec.SkippedNamespaces == nil {
		return DefaultSkippedNamespaces
	}
	return s.Settings.Spec.SkippedNamespaces
}

// WithGates returns the snapshot as if fairlead.yaml set these gates, for the
// flag of commands that only read.
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

// MaxDelete is the number of works that a step may delete from a fleet with
// that many, and whether there is a limit at all.
func (s *Settings) MaxDelete(works int) (limit int, limited bool) {
	if s == nil || s.Spec.MaxDelete == nil {
		return works / 2, works > 20
	}

	n, percent, ok := numberOrPercent(s.Spec.MaxDelete)
	if percent {
		n = min(n, 100) * works / 100 // all of them is no limit, and nor is more
	}
	return n, ok
}

// numberOrPercent reads an integer or a percentage in whole numbers. A float that
// is out of range becomes another integer on another processor.
func numberOrPercent(v *intstr.IntOrString) (n int, percent, ok bool) {
	if v.Type == intstr.Int {
		return v.IntValue(), false, true
	}

	text, percent := strings.CutSuffix(v.StrVal, "%")
	n, err := strconv.Atoi(text)
	return n, percent, percent && err == nil
}
