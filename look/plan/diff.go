// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/printable"
	"github.com/fairlead/fairlead/propagate"
)

// A plan has so many diffs at most, each of so many bytes. The paths of a change are
// always there.
const (
	mostDiffs     = 200
	mostDiffBytes = 32 << 10
)

// diffs adds the manifests' diffs to the changes of what is there before and after.
func diffs(changes []Change) {
	n := 0
	for i := range changes {
		c := &changes[i]
		if len(c.Paths) == 0 || n == mostDiffs {
			continue
		}
		if c.Diff = unified(c.runs, c.wants); c.Diff != "" {
			n++
		}
	}
}

// unified returns the hunks of a unified diff of two contents. Secrets have none, nor has
// what SOPS encrypted.
func unified(runs, wants *propagate.Content) string {
	before, after := runs.Object(), wants.Object()
	for _, manifest := range []map[string]any{before, after} {
		if manifest == nil || object.IsSecret(manifest) || object.IsEncrypted(manifest) {
			return ""
		}
	}

	was, err := yaml.Marshal(before)
	if err != nil {
		return ""
	}
	is, err := yaml.Marshal(after)
	if err != nil {
		return ""
	}

	hunks := diff.Diff("before", was, "after", is)
	at := bytes.Index(hunks, []byte("@@ "))
	if at < 0 {
		return ""
	}
	return shortened(visible(string(hunks[at:])), mostDiffBytes)
}

// visible is a text whose lines are safe to show.
func visible(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(printable.Line(strings.TrimRight(line, "\n")) + "\n")
	}
	return b.String()
}

// shortened cuts a text behind a line, and says how many lines are left out.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := strings.LastIndexByte(text[:most], '\n') + 1
	return text[:end] + fmt.Sprintf("… %d more lines\n", strings.Count(text[end:], "\n"))
}
