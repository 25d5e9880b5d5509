// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

const root = ".."

// Every case of digest §13 is in docs/karmada-cases.md, once and in order, and
// what is named there exists and says that it shows the case. No story claims
// to show a case that the list has elsewhere.
func TestKarmadaCases(t *testing.T) {
	listed := map[int][]string{}
	next := 1
	for _, row := range table(t, "karmada-cases.md", "case") {
		n, err := strconv.Atoi(row[0])
		if err != nil || n != next {
			t.Fatalf("case %q stands where %d should", row[0], next)
		}
		next++
		where := row[2]
		named := proofs(t, "case "+row[0], where)
		for _, p := range named {
			listed[n] = append(listed[n], p.name)
			if !strings.HasPrefix(where, "not ours: ") && !slices.Contains(casesIn(p.text), n) {
				t.Errorf("case %d: %s does not say that it shows it", n, p.name)
			}
		}
		if len(named) == 0 {
			t.Errorf("case %d is shown nowhere, and the list does not say why: %s", n, where)
		}
	}

	if next != 91 {
		t.Errorf("the list ends before case %d, want 90 of them", next)
	}

	stories, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range stories {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		text, err := comment(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range casesIn(text) {
			if !slices.Contains(listed[n], name) && !slices.Contains(listed[n], strings.TrimSuffix(name, "_cpp")) {
				t.Errorf("%s says that it shows case %d, and the list does not name it there", name, n)
			}
		}
	}
}

// Every numbered case of the seed documents is in docs/seed-cases.md, and the
// stories that are named there exist and name the case.
func TestSeedCases(t *testing.T) {
	missing := map[string]bool{}
	for seed, kinds := range map[string]map[string]int{
		"lazy activation":      {"simple": 4, "combined": 6, "behaviour": 4},
		"static policy":        {"general": 5, "corner": 2, "test case": 6, "user story": 2},
		"suspend and resume":   {"corner": 1, "risk": 1, "user story": 4},
		"preserve on deletion": {"Q&A": 2, "user story": 1},
	} {
		for kind, count := range kinds {
			for n := range count {
				missing[fmt.Sprintf("%s: %s %d", seed, kind, n+1)] = true
			}
		}
	}

	seed := ""
	for _, row := range table(t, "seed-cases.md", "seed") {
		if row[0] != "" {
			seed = row[0]
		}
		named := proofs(t, seed+", "+row[1], row[2])
		if len(named) == 0 {
			t.Errorf("%s, %s is shown nowhere", seed, row[1])
			continue
		}
		for _, m := range numbered.FindAllStringSubmatch(row[1], -1) {
			delete(missing, seed+": "+m[0])
			kind := m[1]
			switch kind {
			case "simple", "combined", "general", "corner":
				kind += " case"
			case "test case":
			default:
				continue
			}
			if text := flat(named[0].text); !strings.Contains(text, kind+" "+m[2]) {
				t.Errorf("%s, %s: %s does not say that it shows %s %s", seed, row[1], named[0].name, kind, m[2])
			}
		}
		if seed != "lazy activation" && seed != "static policy" {
			continue
		}
		for _, p := range named {
			if _, err := os.Stat("testdata/" + p.name + "_cpp.txtar"); err != nil {
				t.Errorf("%s, %s: %s is not told for ClusterPropagationPolicies", seed, row[1], p.name)
			}
		}
	}

	for m := range missing {
		t.Errorf("%s is not in the list", m)
	}
}

// numbered finds "simple 1" in the words of a row.
var numbered = regexp.MustCompile(`\b(simple|combined|behaviour|general|corner|test case|user story|risk|Q&A) (\d+)`)

// table reads the rows of the table in a document whose first column has this
// title.
func table(t *testing.T, file, title string) (rows [][]string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "docs", file))
	if err != nil {
		t.Fatal(err)
	}

	inside := false
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "| "+title+" |"):
			inside = true
		case !inside || strings.HasPrefix(line, "|---"):
		case !strings.HasPrefix(line, "|"):
			inside = false
		default:
			var row []string
			for _, cell := range strings.Split(strings.Trim(line, "|"), " |") {
				row = append(row, strings.TrimSpace(cell))
			}
			if len(row) != 3 {
				t.Fatalf("%s: a row of %d columns: %s", file, len(row), line)
			}
			rows = append(rows, row)
		}
	}

	if len(rows) == 0 {
		t.Fatalf("%s has no table %q", file, title)
	}

	return rows
}

// proof is a story, test or file that a list names. text is where it says what
// it shows.
type proof struct{ name, text string }

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	testName = regexp.MustCompile(`^([a-z/]+) (Test\w+)$`)
)

// proofs are what one cell names.
func proofs(t *testing.T, row, cell string) (all []proof) {
	t.Helper()
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		p, err := prove(m[1])
		if err != nil {
			t.Errorf("%s: %v", row, err)
			continue
		}
		all = append(all, p)
	}

	return all
}

func prove(name string) (proof, error) {
	var text string
	var err error
	row, ofContract := strings.CutPrefix(name, "dispatchtest: ")
	test := testName.FindStringSubmatch(name)
	switch {
	case ofContract:
		text, err = lineWith(filepath.Join(root, "dispatch/dispatchtest/contract.go"), `{"`+row+`", `)
	case test != nil:
		text, err = commentOf(filepath.Join(root, test[1]), test[2])
	case strings.Contains(name, "/"):
		text, err = comment(filepath.Join(root, name))
	default:
		text, err = comment("testdata/" + name + ".txtar")
	}

	return proof{name, text}, err
}

func lineWith(file, part string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}

	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, part) {
			return line, nil
		}
	}

	return "", fmt.Errorf("%s has no %s", file, part)
}

// commentOf is the comment above a test of a package.
func commentOf(dir, test string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return "", err
	}

	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		before, _, found := strings.Cut(string(raw), "\nfunc "+test+"(")
		if !found {
			continue
		}
		lines := strings.Split(before, "\n")
		first := len(lines)
		for first > 0 && strings.HasPrefix(lines[first-1], "//") {
			first--
		}
		return strings.ReplaceAll(strings.Join(lines[first:], "\n"), "//", ""), nil
	}

	return "", fmt.Errorf("%s has no %s", dir, test)
}

func comment(file string) (string, error) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		return "", err
	}

	return string(ar.Comment), nil
}

// shows reads "§13, cases 7 and 17".
var (
	shows  = regexp.MustCompile(`§13, cases? (\d+(?:(?:, | and )\d+)*)`)
	number = regexp.MustCompile(`\d+`)
)

func casesIn(text string) (cases []int) {
	for _, m := range shows.FindAllStringSubmatch(flat(text), -1) {
		for _, n := range number.FindAllString(m[1], -1) {
			i, _ := strconv.Atoi(n)
			cases = append(cases, i)
		}
	}

	return cases
}

// flat is text in one line. A script's comment bears hashes.
func flat(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "#", " ")), " ")
}
