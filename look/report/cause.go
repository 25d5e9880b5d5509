// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/fairlead/fairlead/propagate"
)

// Glyphs are the symbols of actions.
var Glyphs = map[propagate.Action]string{
	propagate.ActionCreate: "+", propagate.ActionUpdate: "~", propagate.ActionScale: "^",
	propagate.ActionDelete: "-", propagate.ActionPreserve: "o", propagate.ActionNone: "=", ActionAdopt: "~",
}

// ActionAdopt is a create of an object that the cluster has already, and that is
// adopted. A plan from git alone cannot know that; fairlead adopt does.
const ActionAdopt propagate.Action = "adopt"

// Replicas are those of a work, or a sum of them. After differs from Asked where the
// new number is not released yet.
type Replicas struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
	Asked  int64 `json:"asked"`
}

// Text reads "3 -> 4 (asked 5)"; it is empty without replicas.
func (n *Replicas) Text() string {
	if n == nil {
		return ""
	}
	text := fmt.Sprintf("%d -> %d", n.Before, n.After)
	if n.Asked != n.After {
		text += fmt.Sprintf(" (asked %d)", n.Asked)
	}
	return text
}

// Because is a cause, and the document that is responsible for it.
type Because struct {
	Code string `json:"code"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Sources are the edited lines that caused it, where a change is the cause.
	Sources []Source `json:"sources,omitempty"`
}

// Source is an edited line.
type Source struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// Reasons reads "placement policies/web.yaml:12" for each cause.
func Reasons(reasons []Because) (why []string) {
	for _, b := range reasons {
		if b.File == "" {
			why = append(why, b.Code)
			continue
		}
		why = append(why, fmt.Sprintf("%s %s:%d", b.Code, b.File, b.Line))
	}
	return why
}
