// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/report"
)

// mostPlan bounds the plan that is read. One of 100,000 changed cells has 40 MiB.
const mostPlan = 64 << 20

// ReadPlanFile is ReadPlan of a file, or of the standard input where its name is -.
func ReadPlanFile(name string, stdin io.Reader) (*plan.Plan, error) {
	if name == "-" {
		return ReadPlan(stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	p, err := ReadPlan(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// ReadPlan reads the JSON of a plan. A fork's job may have made it, so its length is
// bounded, and what it says of commits must look like commits.
func ReadPlan(from io.Reader) (*plan.Plan, error) {
	limited := &io.LimitedReader{R: from, N: mostPlan + 1}
	dec := json.NewDecoder(limited)
	p := &plan.Plan{}
	err := dec.Decode(p)
	switch {
	case limited.N == 0:
		return nil, fmt.Errorf("the plan is longer than %d MiB", mostPlan>>20)
	case err != nil:
		return nil, fmt.Errorf("the plan is not the output of 'fairlead plan -o json': %w", err)
	case dec.Decode(&struct{}{}) != io.EOF:
		return nil, errors.New("there is more than one value in the plan")
	case p.APIVersion != report.APIVersion || p.Kind != "Plan":
		return nil, fmt.Errorf("the document is %q %q and no plan of %s", p.APIVersion, p.Kind, report.APIVersion)
	}

	if major, _, _ := strings.Cut(p.FormatVersion, "."); major != "1" {
		return nil, fmt.Errorf("the plan has format %q, and this version of fairlead reads 1: use the same version for plan and comment", p.FormatVersion)
	}
	if !isCommit(p.Base.Commit) || !isCommit(p.Head.Commit) {
		return nil, errors.New("the plan names no commits as base and head")
	}
	return p, checkWords(p)
}

// word is what the codes, actions and dispositions of a plan look like: they stand in a
// comment as they are.
var word = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// checkWords refuses what no plan of ours says, and what its Markdown does not escape
// therefore.
func checkWords(p *plan.Plan) error {
	for i := range p.Findings {
		if f := &p.Findings[i]; !word.MatchString(f.Code) || !word.MatchString(string(f.Severity)) {
			return fmt.Errorf("finding %d of the plan has a code or a level that is not a word", i)
		}
	}
	for i := range p.Cells {
		if c := &p.Cells[i]; !word.MatchString(string(c.Action)) || !word.MatchString(string(c.Disposition)) {
			return fmt.Errorf("cell %d of the plan has an action or a disposition that is not a word", i)
		}
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		if !word.MatchString(string(c.Action)) || !word.MatchString(string(c.Disposition)) {
			return fmt.Errorf("change %d of the plan has an action or a disposition that is not a word", i)
		}
		if !isDiff(c.Diff) {
			return fmt.Errorf("change %d of the plan has a diff that is not one", i)
		}
	}
	return nil
}

// cutOff ends a diff that is too long.
var cutOff = regexp.MustCompile(`\n… [0-9]+ more lines\n$`)

// isDiff reports whether every line begins as one of a unified diff. So no line of it can
// end the block that it stands in, or be a command to GitLab.
func isDiff(text string) bool {
	if text == "" {
		return true
	}
	text = cutOff.ReplaceAllLiteralString(text, "\n")
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line == "" || !strings.ContainsRune(" +-@\\", rune(line[0])) || strings.ContainsAny(line, "\r\v\f\u0085\u2028\u2029") {
			return false
		}
	}
	return true
}

// isCommit reports whether a text is a full hash.
func isCommit(hash string) bool {
	if len(hash) != 40 && len(hash) != 64 {
		return false
	}
	return strings.Trim(hash, "0123456789abcdef") == ""
}
