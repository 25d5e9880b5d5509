// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/source"
)

// record is what our comment remembers about the plan that it shows, in its last line:
// the next run compares with it. It is bounded, so it does not outgrow the comment.
type record struct {
	Head    string    `json:"head"`
	Verdict string    `json:"verdict"`
	Earlier []verdict `json:"earlier,omitempty"` // newest first
	Dropped int       `json:"dropped,omitempty"` // how many more there were
	Alarms  int       `json:"alarms,omitempty"`
	Keys    []string  `json:"keys,omitempty"` // of the alarms; none where they are too many
}

// verdict is what an earlier plan came to.
type verdict struct {
	Head    string `json:"head"`
	Verdict string `json:"verdict"`
}

// Bounds of a record.
const (
	mostEarlier = 10
	mostVerdict = 120 // bytes
	mostKeys    = 200
	mostRecord  = 16 << 10 // bytes that are read of one
)

const (
	recordBegin = "<!-- fairlead:plan:v1:record "
	recordEnd   = " -->"
)

// String is the record as a line of a comment.
func (r record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("a record has no JSON: %v", err))
	}
	// JSON escapes the angle brackets; the hyphens of an end go as well.
	return recordBegin + strings.ReplaceAll(string(text), "--", `-\u002d`) + recordEnd
}

// readRecord reads the record of a body that we wrote. A body that somebody has edited
// may have none, or nonsense: then we begin again.
func readRecord(body string) (record, bool) {
	at := strings.LastIndex(body, "\n"+recordBegin)
	if at < 0 {
		return record{}, false
	}
	line, _, _ := strings.Cut(body[at+1+len(recordBegin):], "\n")
	text, ended := strings.CutSuffix(strings.TrimRight(line, "\r "), recordEnd)
	var r record
	if !ended || len(text) > mostRecord || json.Unmarshal([]byte(text), &r) != nil || !isCommit(r.Head) {
		return record{}, false
	}

	r.Verdict = shortened(r.Verdict)
	r.Earlier = r.Earlier[:min(len(r.Earlier), mostEarlier)]
	for i, e := range r.Earlier {
		r.Earlier[i] = verdict{source.Short(e.Head), shortened(e.Verdict)}
	}
	r.Dropped = min(max(r.Dropped, 0), 1_000_000)
	return r, true
}

// after returns the record with the plans of another one as earlier ones. A second plan
// of the same head replaces the first.
func (r record) after(before record) record {
	r.Earlier, r.Dropped = before.Earlier, before.Dropped
	if before.Head == r.Head {
		return r
	}

	r.Earlier = append([]verdict{{source.Short(before.Head), before.Verdict}}, before.Earlier...)
	if more := len(r.Earlier) - mostEarlier; more > 0 {
		r.Earlier, r.Dropped = r.Earlier[:mostEarlier], r.Dropped+more
	}
	return r
}

// fold is the table of earlier plans; "" if there are none.
func (r record) fold() string {
	if len(r.Earlier) == 0 {
		return ""
	}

	var b strings.Builder
	fmt.Fprintf(&b, "\n<details><summary>Earlier plans of this pull request (%d)</summary>\n\n| head | verdict |\n|---|---|\n", len(r.Earlier)+r.Dropped)
	for _, e := range r.Earlier {
		fmt.Fprintf(&b, "| %s | %s |\n", codeSpan(e.Head), verdictText(e.Verdict))
	}
	if r.Dropped > 0 {
		fmt.Fprintf(&b, "| | and %d before |\n", r.Dropped)
	}
	b.WriteString("\n</details>\n")
	return b.String()
}
