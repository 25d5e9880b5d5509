// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// The annotations of a policy are notes for people and commands: who holds
// which cluster and why, and in which order clusters are promoted. No decision
// depends on them. A typo still refuses the commit, or nobody would notice it
// until the day the note is needed.

// readNotes parses and validates the annotations.
func (p *Policy) readNotes(c *check, annotations map[string]string) {
	p.Holds = readHolds(c, annotations)

	if text := annotations[fleetv1alpha1.AnnotationWaves]; text != "" {
		at := annotationPath(fleetv1alpha1.AnnotationWaves)
		if err := yaml.UnmarshalStrict([]byte(text), &p.Waves); err != nil {
			c.at(at, "annotation %s must be a list of lists of cluster names: %s", fleetv1alpha1.AnnotationWaves, yamlErrorText(err))
		}
		checkWaves(c, at, "annotation "+fleetv1alpha1.AnnotationWaves, p.Waves)
	}
}

// readHolds parses the notes about holds.
func readHolds(c *check, annotations map[string]string) (holds map[string]fleetv1alpha1.Hold) {
	text := annotations[fleetv1alpha1.AnnotationHolds]
	if text == "" {
		return nil
	}

	at := annotationPath(fleetv1alpha1.AnnotationHolds)
	if err := yaml.UnmarshalStrict([]byte(text), &holds); err != nil {
		c.at(at, "annotation %s must map cluster names to holds: %s", fleetv1alpha1.AnnotationHolds, yamlErrorText(err))
	}

	for _, cluster := range slices.Sorted(maps.Keys(holds)) {
		if until := holds[cluster].Until; until != "" && !isDay(until) {
			c.at(at, "annotation %s: until of %s is %q, must be a day such as 2026-11-28", fleetv1alpha1.AnnotationHolds, cluster, until)
		}
	}
	return holds
}

func annotationPath(key string) string { return "metadata.annotations." + key }

// yamlErrorText is the text of a YAML error on one line, without the prefixes of
// the parser.
func yamlErrorText(err error) string {
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "yaml: ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.Join(strings.Fields(text), " ")
}

// isDay reports whether text is a calendar day, such as 2006-01-02.
func isDay(text string) bool {
	var year, month, day int
	if n, err := fmt.Sscanf(text, "%d-%d-%d", &year, &month, &day); n != 3 || err != nil || fmt.Sprintf("%04d-%02d-%02d", year, month, day) != text {
		return false
	}

	days := []int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if year%4 == 0 && year%100 != 0 || year%400 == 0 {
		days[1] = 29
	}

	return year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= days[month-1]
}

// Suspended returns what the policy holds: every cluster, or the named ones.
func (p *Policy) Suspended() (everywhere bool, clusters []string) {
	b := ImmediateOf(p)
	return b.all(), b.names()
}

// Note returns the note about the hold of a cluster that the policy suspends,
// and whether there is one.
func (p *Policy) Note(cluster string) (fleetv1alpha1.Hold, bool) {
	everywhere, _ := p.Suspended()
	return note(p.Holds, cluster, everywhere)
}

func note(holds map[string]fleetv1alpha1.Hold, cluster string, everywhere bool) (fleetv1alpha1.Hold, bool) {
	h, ok := holds[cluster]
	if !ok && everywhere {
		h, ok = holds[fleetv1alpha1.AllClusters]
	}
	return h, ok
}
