// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"path"
	"regexp"
	"strings"

	"github.com/fairlead/fairlead/fleet"
)

// hint is how the problem of a file ends that is probably no manifest: a chart, values,
// a dashboard.
const hint = "; if it is not meant for a cluster, add this line to .fairleadignore: "

// noManifest is the problem of a plain file that is probably no manifest.
func noManifest(p fleet.Problem) fleet.Problem {
	p.Message += hint + ignoreLine(p.File)
	return p
}

// ignoreLine is the line of an ignore file that leaves a file out, or the whole chart
// that it belongs to.
func ignoreLine(file string) string {
	dir := path.Dir(file)
	if i := strings.LastIndex("/"+dir+"/", "/templates/"); i > 0 {
		return escaped("/"+dir[:i-1]) + "/"
	}
	if path.Base(file) == "Chart.yaml" && dir != "." {
		return escaped("/"+dir) + "/"
	}
	return escaped("/" + file)
}

// escaped is a path as a pattern that matches it alone.
func escaped(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// IgnoreLine is the line for .fairleadignore that a problem proposes; "" for none.
func IgnoreLine(p fleet.Problem) string {
	_, line, _ := strings.Cut(p.Message, hint)
	if strings.HasSuffix(line, cutOff) {
		return ""
	}
	return line
}

var fieldsOfManifest = regexp.MustCompile(`(?m)^["']?kind["']?[ \t]*:|apiVersion["']?[ \t]*:`)

// looksLikeManifest reports whether a file that cannot be parsed was meant to be one: it
// has an apiVersion or a kind, and nothing that Helm would fill in.
func looksLikeManifest(b []byte) bool {
	return fieldsOfManifest.Match(b) && !bytes.Contains(b, []byte("{{"))
}
