// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every threat and every fault is in docs/reliability.md, once and in order,
// with what shows it or why nothing does; and what says that it shows one is
// named there.
func TestReliabilityCases(t *testing.T) {
	named := map[string][]string{}
	for _, list := range []struct {
		page, title, letter string
		count               int
	}{
		{"reliability.md", "threat", "T", 63},
		{"reliability.md", "fault", "F", 48},
		{"reliability.md", "attack", "A", 17},
		{"tried.md", "use", "U", 38},
		{"tried.md", "repository", "R", 16},
	} {
		rows := table(t, list.page, list.title)
		if len(rows) != list.count {
			t.Errorf("%d rows of the table %q, want %d", len(rows), list.title, list.count)
		}
		for i, row := range rows {
			id := fmt.Sprintf("%s%02d", list.letter, i+1)
			if row[0] != id {
				t.Fatalf("%q stands where %s should", row[0], id)
			}
			for _, p := range proofs(t, id, row[2]) {
				named[id] = append(named[id], p.name)
			}
			if len(named[id]) == 0 && !notOurs.MatchString(row[2]) {
				t.Errorf("%s is shown nowhere, and the list does not say why: %s", id, row[2])
			}
		}
	}

	claims := stories(t)
	for name, text := range goTests(t) {
		claims[name] = text
	}

	for name, text := range claims {
		for _, id := range threatsIn(text) {
			if !slices.Contains(named[id], name) {
				t.Errorf("%s says that it shows %s, and the list does not name it there", name, id)
			}
		}
	}
}

var (
	notOurs  = regexp.MustCompile(`^not ours( yet)?: .`)
	threatID = regexp.MustCompile(`\b([TFAUR])(\d\d)(?:-[TFAUR](\d\d))?\b`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	contract = regexp.MustCompile(`(?m)^\t\t\{"([^"]+)", \w+\},(.*)$`)
)

// threatsIn reads "T44, F01-F10" and TestT44AndMore. A story of the fold calls
// a time T00.
func threatsIn(text string) (ids []string) {
	for _, m := range threatID.FindAllStringSubmatch(strings.ReplaceAll(text, "TestT", "T"), -1) {
		first, _ := strconv.Atoi(m[2])
		last := first
		if m[3] != "" {
			last, _ = strconv.Atoi(m[3])
		}
		for n := first; n <= last; n++ {
			ids = append(ids, fmt.Sprintf("%s%02d", m[1], n))
		}
	}

	return ids
}

// goTests are the tests of all packages with their names and comments, and the
// stories of the contract with theirs.
func goTests(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") && filepath.Base(path) != "contract.go" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range contract.FindAllStringSubmatch(string(raw), -1) {
			all["dispatchtest: "+m[1]] = m[2]
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		for _, m := range testFunc.FindAllStringSubmatch(string(raw), -1) {
			text, err := commentOf(dir, m[1])
			if err != nil {
				return err
			}
			all[strings.TrimPrefix(dir, root+"/")+" "+m[1]] = m[1] + " " + text
		}
		return nil
	})
	if err != nil || len(all) < 100 {
		t.Fatalf("%d tests, %v", len(all), err)
	}

	return all
}
