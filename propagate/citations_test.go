// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A citation that leads nowhere is worse than none: the reader cannot look up
// what the code relies on. So every rule, decision and section that a file cites
// has an anchor in the page that the citation leads to.
func TestCitations(t *testing.T) {
	anchors := map[string]map[string]bool{}
	for _, kind := range cited {
		anchors[kind.page] = anchorsIn(t, filepath.Join(root, "docs", kind.page))
	}

	found := 0
	for name, text := range textFiles(t) {
		for _, c := range citations(text) {
			found++
			if !anchors[c.page][c.anchor] {
				t.Errorf("%s cites %q, and docs/%s has no %s", name, c.words, c.page, c.anchor)
			}
		}
	}

	// If the forms change and nothing is found, nothing is checked.
	if found < 200 {
		t.Errorf("%d citations found, want at least 200", found)
	}
}

// TestCitations is only as good as the forms that it knows. Each is shown here,
// and a text that cites nothing.
func TestCitationForms(t *testing.T) {
	for text, want := range map[string]string{
		"(fold rule 13)":             "rule-13",
		"Fold rules 1, 5 and 21.":    "rule-1 rule-5 rule-21",
		"// (fold rule\n\t// 13)":    "rule-13",
		"rules 11-13":                "rule-11 rule-12 rule-13",
		"decisions 8a and 17":        "decision-8a decision-17",
		"(digest §4.7, decision 22)": "decision-22 s4.7",
		"digest §3.5–3.7":            "s3.5 s3.6 s3.7",
		"Digest §10.3, §5.8: purged": "s10.3 s5.8",
		"§13, cases 7 and 17":        "s13",
		"(digest 2.8, decision 14)":  "decision-14 s2.8",
		"a rule of 3 decisions":      "",
	} {
		var got []string
		for _, c := range citations(text) {
			got = append(got, c.anchor)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q cites %q, want %q", text, got, want)
		}
	}
}

// A link in a document leads to a file of the repository, and to a heading or
// anchor in it. A page that moves would otherwise leave its readers behind.
func TestLinks(t *testing.T) {
	found := 0
	for name, text := range textFiles(t) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		for _, m := range markdownLink.FindAllStringSubmatch(withoutFences(text), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			found++

			file := filepath.Join(root, name)
			if target != "" {
				file = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
				continue
			}
			if anchor != "" && !anchorsIn(t, file)[anchor] {
				t.Errorf("%s links to %s, which has no such anchor", name, m[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("%d links found, want at least 50", found)
	}
}

// citation is one number in a text, and the page and anchor that it leads to.
type citation struct{ words, page, anchor string }

// cited are the forms of a citation. A list or a range of numbers cites each of
// them.
var cited = []struct {
	form         *regexp.Regexp
	page, prefix string
}{
	{regexp.MustCompile(`\b[Rr]ules? (\d+(?:(?:, | and |[-–])\d+)*)`), "fold.md", "rule-"},
	{regexp.MustCompile(`\b[Dd]ecisions? (\d+[ab]?(?:(?:, | and |[-–])\d+[ab]?)*)`), "decisions.md", "decision-"},
	{regexp.MustCompile(`(?:§|\b[Dd]igest )(\d+(?:\.\d+)?(?:[-–]\d+\.\d+)?)`), "karmada-behaviour.md", "s"},
}

// oneNumber is a number or a range inside a citation.
var oneNumber = regexp.MustCompile(`(\d+(?:\.\d+)?[ab]?)(?:[-–](\d+(?:\.\d+)?))?`)

// citations are what a text cites, form by form.
func citations(text string) (all []citation) {
	text = flatComments(text)
	for _, kind := range cited {
		for _, m := range kind.form.FindAllStringSubmatch(text, -1) {
			for _, n := range oneNumber.FindAllStringSubmatch(m[1], -1) {
				for _, number := range span(n[1], n[2]) {
					all = append(all, citation{m[0], kind.page, kind.prefix + number})
				}
			}
		}
	}
	return all
}

// span is every number from first to last: 4.5, 4.6 and 4.7 for "4.5" and "4.7".
// Without a last number it is the first alone.
func span(first, last string) []string {
	if last == "" {
		return []string{first}
	}
	dot := strings.LastIndex(first, ".") + 1
	from, _ := strconv.Atoi(first[dot:])
	to, _ := strconv.Atoi(last[strings.LastIndex(last, ".")+1:])

	var all []string
	for n := from; n <= to; n++ {
		all = append(all, first[:dot]+strconv.Itoa(n))
	}
	return all
}

// flatComments is text in one line, without comment marks, because a citation may
// be broken over two lines.
func flatComments(text string) string {
	return strings.Join(strings.Fields(commentMark.ReplaceAllString(text, " ")), " ")
}

var (
	commentMark  = regexp.MustCompile(`(?m)^\s*(?://|#)\s?`)
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence        = regexp.MustCompile("(?ms)^```.*?^```")
	anchorID     = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// withoutFences is a document without its blocks of code.
func withoutFences(text string) string {
	return fence.ReplaceAllString(text, "")
}

// anchorsIn are the anchors of a document: those that it sets, and those that a
// forge makes of its headings.
func anchorsIn(t *testing.T, file string) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := withoutFences(string(raw))

	all := map[string]bool{}
	for _, m := range anchorID.FindAllStringSubmatch(text, -1) {
		all[m[1]] = true
	}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		slug := notInSlug.ReplaceAllString(strings.ToLower(anchorID.ReplaceAllString(m[1], "")), "")
		all[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return all
}

// textFiles are the code, the stories and the documents of the repository by
// their paths in it. The changelog may cite what is gone, and this file cites what
// never existed.
func textFiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name := e.Name(); name != root && (strings.HasPrefix(name, ".") || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}

		name := strings.TrimPrefix(filepath.ToSlash(path), root+"/")
		switch filepath.Ext(name) {
		case ".go", ".txtar", ".md":
		default:
			return nil
		}
		if name == "CHANGELOG.md" || name == "propagate/citations_test.go" {
			return nil
		}

		raw, err := os.ReadFile(path)
		all[name] = string(raw)
		return err
	})
	if err != nil || len(all) < 100 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}
