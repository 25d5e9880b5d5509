// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every rule of the fold is in docs/fold-rules.md, once and in order, with a
// link to its text and what shows it, and a story that cites a rule is named
// there.
func TestFoldRules(t *testing.T) {
	named := map[int][]string{}
	for i, row := range table(t, "fold-rules.md", "rule") {
		if want := fmt.Sprintf("[%d](fold.md#rule-%[1]d)", i+1); row[0] != want {
			t.Fatalf("%q stands where %q should", row[0], want)
		}

		for _, p := range proofs(t, "rule "+row[0], row[2]) {
			named[i+1] = append(named[i+1], p.name)
		}
		if len(named[i+1]) == 0 {
			t.Errorf("rule %d is shown nowhere", i+1)
		}
	}

	if len(named) != 29 {
		t.Errorf("the list has %d rules, want 29", len(named))
	}

	for name, text := range stories(t) {
		for _, rule := range rulesIn(text) {
			if !slices.Contains(named[rule], name) && !slices.Contains(named[rule], strings.TrimSuffix(name, "_cpp")) {
				t.Errorf("%s cites fold rule %d, and the list does not name it there", name, rule)
			}
		}
	}
}

// citesRules reads "fold rules 12 and 15".
var citesRules = regexp.MustCompile(`fold rules? (\d+(?:(?:, | and )\d+)*)`)

func rulesIn(text string) (rules []int) {
	for _, m := range citesRules.FindAllStringSubmatch(flat(text), -1) {
		for _, n := range number.FindAllString(m[1], -1) {
			i, _ := strconv.Atoi(n)
			rules = append(rules, i)
		}
	}

	return rules
}

// stories are what the text archives say that they show, by the name that a
// list has for them.
func stories(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"propagate/testdata/*.txtar", "render/testdata/*.txtar", "render/testdata/freeze/*.txtar", "cmd/fairlead/testdata/script/*.txtar"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := comment(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(filepath.ToSlash(file), root+"/")
			if strings.HasPrefix(name, "propagate/") {
				name = strings.TrimSuffix(filepath.Base(name), ".txtar")
			}
			all[name] = text
		}
	}

	return all
}
