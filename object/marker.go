// SPDX-License-Identifier: Apache-2.0

package object

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Marker is by what a fleet marks its objects and knows them again (decision 33).
// The zero Marker does not know its name: to it every object with our mark is ours.
type Marker struct {
	Name string
	// Former are the names that the fleet had earlier. Its objects get the new one
	// with their next apply.
	Former []string
	// Has reports whether a commit is of the fleet's history; nil has none.
	Has func(commit string) bool
}

// Whose says who an object on a member belongs to.
type Whose int

// An object is nobody's when it lacks our mark.
const (
	Nobodys Whose = iota
	Ours
	AnotherFleets
)

// Mark writes the labels of the fleet's objects.
func (m Marker) Mark(labels map[string]any) {
	labels[LabelManaged] = "true"
	if m.Name != "" {
		labels[LabelFleet] = m.Name
	}
}

// Whose decides by the labels and annotations of an object. known says that the
// fleet has it on record, by its UID. What bears no name, because an older version
// made it, or a name that the fleet had earlier, is ours where that or the commit
// on it says so.
func (m Marker) Whose(labels, annotations map[string]string, known bool) Whose {
	if !IsManaged(labels) {
		return Nobodys
	}

	name := labels[LabelFleet]
	switch {
	case m.Name == "" || name == m.Name:
		return Ours
	case name != "" && !slices.Contains(m.Former, name):
		return AnotherFleets
	case known || m.Has != nil && m.Has(annotations[AnnotationRevision]):
		return Ours
	}
	return AnotherFleets
}

// IsManaged reports whether an object bears our mark, whichever fleet's it is.
func IsManaged(labels map[string]string) bool { return labels[LabelManaged] == "true" }

// maxFleetName is how long the value of a label may be.
const maxFleetName = validation.LabelValueMaxLength

// FleetNameProblem is why a name cannot be a fleet's; "" if it can.
func FleetNameProblem(name string) string {
	problems := append(validation.IsDNS1123Subdomain(name), validation.IsValidLabelValue(name)...)
	if len(problems) == 0 {
		return ""
	}
	return problems[0]
}

// DerivedFleetName is the name of a fleet that gives itself none: the first twelve
// digits of the commit at which its fold began, and the directory if that is not
// the root. A directory that a label cannot spell is followed by a digest of it.
func DerivedFleetName(begin, directory string) string {
	name := begin[:min(len(begin), 12)]
	directory = path.Clean(directory)
	if directory == "." {
		return name
	}

	plain := true
	spelled := strings.Map(func(r rune) rune {
		switch {
		case r == '/':
			return '.'
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		plain = false
		return '-'
	}, directory)

	name += "-" + spelled
	if plain && len(name) <= maxFleetName && len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	digest := "-" + strings.TrimPrefix(DigestOf([]byte(directory)).String(), "sha256:")[:8]
	return name[:min(len(name), maxFleetName-len(digest))] + digest
}
