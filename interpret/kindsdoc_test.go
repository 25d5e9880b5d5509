// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The guide lists the kinds that are known, and says of each what there is.
func TestKindsAreInTheGuide(t *testing.T) {
	raw, err := os.ReadFile("../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(raw), "### Kinds of other projects\n")
	section, _, _ = strings.Cut(section, "\n## ")

	rows := map[string][]string{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cells) == 5 {
			rows[strings.TrimPrefix(cells[0], "| ")] = cells[1:]
		}
	}

	for _, k := range kinds {
		name := fmt.Sprintf("`%s` (`%s`)", k.Kind, k.APIVersion)
		row := rows[name]
		if row == nil {
			t.Errorf("%s has no row", name)
			continue
		}
		delete(rows, name)

		for _, c := range []struct {
			what      string
			told, has bool
		}{
			{"replicas", row[0] != "–", k.replicas != nil},
			{"division", strings.HasSuffix(row[0], ", divided"), k.Divides()},
			{"what goes along", row[1] != "–", len(k.pods)+len(k.names) > 0},
			{"health", row[2] != "–", k.healthy != nil},
			{"the status of a copy", !strings.HasPrefix(row[3], "everything"), k.reports != nil},
			{"the status of all", strings.Contains(row[3], "; "), k.adds != nil},
		} {
			if c.told != c.has {
				t.Errorf("%s: the guide says of %s %v, the rules %v", name, c.what, c.told, c.has)
			}
		}
	}
	for name := range rows {
		t.Errorf("%s is in the guide and not known", name)
	}
}
