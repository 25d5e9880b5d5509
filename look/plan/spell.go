// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
)

// mostSpelled is how many differences of a change are spelled out in a line.
const mostSpelled = 4

// summary reads "image web:1.0 -> 2.0", "replicas 3 -> 5", "+env TRACE".
func (c *Change) summary() (all []string) {
	for _, p := range c.Paths {
		all = append(all, p.spelled())
	}
	if text := c.scaled(); text != "" {
		all = append(all, text)
	}
	if len(all) > mostSpelled {
		all = append(all[:mostSpelled-1], fmt.Sprintf("and %d more", len(all)-mostSpelled+1))
	}
	if c.Hidden > 0 && len(c.Paths) == 0 {
		all = append(all, report.Count(c.Hidden, "field")+" that follow from another change")
	}
	return all
}

// scaled reads "replicas 12 -> 15 in all (asked 16)", and is empty where their number
// stays.
func (c *Change) scaled() string {
	n := c.Replicas
	if n == nil {
		return ""
	}
	all := ""
	if c.Cells > 1 {
		all = " in all"
	}

	switch {
	case c.Action == propagate.ActionDelete || c.Action == propagate.ActionPreserve:
		return ""
	case c.Action == propagate.ActionCreate && n.After == n.Asked:
		return fmt.Sprintf("replicas %d%s", n.After, all)
	case n.Before == n.After && n.After == n.Asked:
		return ""
	}
	return "replicas " + n.Text() + all
}

// spelled reads "image web:1.0 -> 2.0", "+env TRACE", "label tier gold -> silver".
func (p Path) spelled() string {
	name := shortPath(p.Path)
	if name == "image" {
		before, was := p.Before.(string)
		after, is := p.After.(string)
		if was && is {
			return "image " + imageStep(before, after)
		}
	}

	switch before, after := spell(p.Before), spell(p.After); {
	case p.Before == nil && after == "":
		return "+" + name
	case p.Before == nil:
		return "+" + name + " " + after
	case p.After == nil:
		return "-" + name
	case before == "" || after == "":
		return name + " changes"
	default:
		return name + " " + before + " -> " + after
	}
}

// spell returns a value as it stands in a line, and "" for one that is too long for
// that, or never shown.
func spell(v any) string {
	const most = 48
	var text string
	switch v := v.(type) {
	case nil, Redacted:
		return ""
	case string:
		text = v
	default:
		raw, err := json.Marshal(v)
		if err != nil || isRedacted(v) {
			return ""
		}
		text = string(raw)
	}

	switch {
	case text == "":
		return `""`
	case strings.ContainsAny(text, "\n\r") || utf8.RuneCountInString(text) > most:
		return ""
	}
	return text
}

// isRedacted reports whether a value, as it is read from JSON, is not shown.
func isRedacted(v any) bool {
	m, ok := v.(map[string]any)
	return ok && m["redacted"] == true
}

// places are the paths that have a short name, and what that is.
var places = []struct {
	path *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`^.*ontainers\[name=[^\]]*\]\.env\[name=([^\]]*)\]\.(?:value|name)$`), "env $1"},
	{regexp.MustCompile(`^.*ontainers\[name=[^\]]*\]\.resources\.(limits|requests)\.(.*)$`), "$2 $1"},
	{regexp.MustCompile(`^.*ontainers\[name=[^\]]*\]\.(.*)$`), "$1"},
	{regexp.MustCompile(`^metadata\.labels\.?\[?([^\]]*)\]?$`), "label $1"},
	{regexp.MustCompile(`^metadata\.annotations\.?\[?([^\]]*)\]?$`), "annotation $1"},
	{regexp.MustCompile(`^data\.?\[?([^\]]*)\]?$`), "key $1"},
	{regexp.MustCompile(`^spec\.replicas$`), "replicas"},
	{regexp.MustCompile(`^spec\.(template\.(?:spec\.)?)?(.*)$`), "$2"},
}

// shortPath returns a path as people call it.
func shortPath(path string) string {
	for _, p := range places {
		if p.path.MatchString(path) {
			return p.path.ReplaceAllString(path, p.name)
		}
	}
	return path
}
