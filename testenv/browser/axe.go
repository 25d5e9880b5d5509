// SPDX-License-Identifier: Apache-2.0

package browser

import (
	_ "embed" // axe-core
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/chromedp"
)

//go:embed axe/axe.min.js
var axeScript string

// Barrier is something that keeps people from using a page.
type Barrier struct {
	Rule   string `json:"id"`
	Impact string `json:"impact"` // minor, moderate, serious, critical
	Help   string `json:"help"`
	Nodes  []struct {
		HTML   string `json:"html"`
		Target []any  `json:"target"`
		Why    string `json:"failureSummary"`
	} `json:"nodes"`
}

// String says what and where, with three places at most.
func (b Barrier) String() string {
	var places []string
	for _, n := range b.Nodes[:min(len(b.Nodes), 3)] {
		places = append(places, fmt.Sprintf("%v %.200s: %s", n.Target, n.HTML, strings.Join(strings.Fields(n.Why), " ")))
	}
	return fmt.Sprintf("%s (%s): %s, %d times\n\t%s", b.Rule, b.Impact, b.Help, len(b.Nodes), strings.Join(places, "\n\t"))
}

// Barriers has axe-core look at the page as it is, and returns what is serious or
// critical.
func (p *Page) Barriers() (found []Barrier) {
	p.t.Helper()
	// A script of the debugger is not under the policy of the page.
	p.do("axe", chromedp.Evaluate[chromedp.Void](axeScript+"; true"))
	raw := Eval[json.RawMessage](p, "axe.run(document, {resultTypes: ['violations'], iframes: false}).then(r => r.violations)")
	if err := json.Unmarshal(raw, &found); err != nil {
		p.t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(b Barrier) bool { return b.Impact != "serious" && b.Impact != "critical" })
}
