// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
)

// Image is another image of one container, and where it arrives when.
type Image struct {
	Object    report.Object `json:"object"`
	Container string        `json:"container"`
	Before    string        `json:"before"`
	After     string        `json:"after"`
	// Now, Released and Held are clusters.
	Now      []string `json:"now"`
	Released []string `json:"released"`
	Held     []string `json:"held"`
	// Until is the day until which all of Held are, as far as that was noted.
	Until string `json:"until,omitempty"`
}

// containerImage is the path of a container's image, in any kind that has a pod.
var containerImage = regexp.MustCompile(`ontainers\[name=([^\]]*)\]\.image$`)

// images lists the images that changes set otherwise, one line for a container and a
// step of versions.
func (r *Plan) images() []Image {
	all := []Image{}
	for i := range r.Changes {
		c := &r.Changes[i]
		for _, p := range c.Paths {
			container := containerImage.FindStringSubmatch(p.Path)
			before, was := p.Before.(string)
			after, is := p.After.(string)
			if container == nil || !was || !is {
				continue
			}
			n := slices.IndexFunc(all, func(m Image) bool {
				return m.Object == c.Object && m.Container == container[1] && m.Before == before && m.After == after
			})
			if n < 0 {
				n = len(all)
				all = append(all, Image{Object: c.Object, Container: container[1], Before: before, After: after, Now: []string{}, Released: []string{}, Held: []string{}})
			}
			all[n].add(c, r.Cells)
		}
	}
	return all
}

func (m *Image) add(c *Change, cells []Cell) {
	if c.Disposition == propagate.Held {
		until := ""
		for i, at := range c.cells {
			note := cells[at].Hold
			if note == nil || i > 0 && note.Until != until {
				until = ""
				break
			}
			until = note.Until
		}
		m.Until = until
	}

	to := &m.Held
	switch c.Disposition {
	case propagate.Now:
		to = &m.Now
	case propagate.Released:
		to = &m.Released
	}
	*to = append(*to, c.Clusters...)
	slices.SortFunc(*to, cmp.Compare[string])
}

// Step reads "1.4.2 -> 1.5.0", with the repository where that changes, too.
func (m *Image) Step() string { return imageStep(m.Before, m.After) }

// imageStep reads "web:1.4.2 -> 1.5.0", and has both references in full if they are not
// of one repository.
func imageStep(before, after string) string {
	repository, tag := splitImage(before)
	next, nextTag := splitImage(after)
	if repository != next || nextTag == "" {
		return before + " -> " + after
	}
	return nameOfImage(repository) + versionMark(tag) + " -> " + strings.TrimLeft(nextTag, ":@")
}

func versionMark(tag string) string {
	if tag == "" {
		return " (no tag)"
	}
	return tag
}

// splitImage splits a reference before its tag or digest, which keeps its mark.
func splitImage(ref string) (repository, version string) {
	if i := strings.IndexByte(ref, '@'); i >= 0 {
		return ref[:i], ref[i:]
	}
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return ref[:i], ref[i:]
	}
	return ref, ""
}

func nameOfImage(repository string) string {
	return repository[strings.LastIndexByte(repository, '/')+1:]
}
