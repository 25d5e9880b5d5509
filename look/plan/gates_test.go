// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/propagate"
)

// Every code that a finding can have can be a gate.
func TestEveryFindingIsAGate(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "testdata" || e.Name() == "hack") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Finding") {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			found++
			if code, err := strconv.Unquote(literal.Value); err != nil || !slices.Contains(plan.GateWords, code) {
				t.Errorf("%s: --fail-on does not know %s", path, literal.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	others := len([]string{plan.GateDelete, plan.GateMove, plan.GateCaution, plan.GateError})
	if known := len(plan.GateWords) - others; found != known {
		t.Errorf("%d codes are declared, and %d are known", found, known)
	}
}

func gated() *plan.Plan {
	web := report.Object{Kind: "Deployment", Namespace: "shop", Name: "web"}
	return &plan.Plan{
		Complete: true,
		Images:   []plan.Image{}, Releases: []plan.Release{}, Suspensions: []plan.Suspension{}, Deferred: []plan.Deferral{}, Changes: []plan.Change{{ID: "c1", Replaces: "web-1"}, {ID: "c2", ReplacedBy: "web-2"}},
		Cells: []plan.Cell{
			{Object: web, Cluster: "eu-1", Action: propagate.ActionCreate, Disposition: propagate.Now},
			{Object: web, Cluster: "eu-2", Action: propagate.ActionUpdate, Disposition: propagate.Released},
			{Object: web, Cluster: "eu-3", Action: propagate.ActionScale, Disposition: propagate.Now, After: []string{"eu-1"}},
			{Object: web, Cluster: "us-1", Action: propagate.ActionDelete, Disposition: propagate.Now, After: []string{"eu-1"}},
			{Object: web, Cluster: "us-2", Action: propagate.ActionDelete, Disposition: propagate.Now},
			{Object: web, Cluster: "us-3", Action: propagate.ActionUpdate, Disposition: propagate.Held},
			{Object: web, Cluster: "us-4", Action: propagate.ActionCreate, Disposition: propagate.Deferred},
			{Object: web, Cluster: "us-5", Action: propagate.ActionNone, Disposition: propagate.Held},
			{Object: web, Cluster: "us-6", Action: propagate.ActionPreserve, Disposition: propagate.Now},
			{Object: web, Cluster: "us-7", Action: propagate.ActionCreate, Disposition: propagate.Now, Change: "c1"},
			{Object: web, Cluster: "us-7", Action: propagate.ActionDelete, Disposition: propagate.Now, Change: "c2"},
		},
		Findings: []plan.Finding{
			{Code: fleet.FindingNewCluster, Severity: fleet.SeverityNotice, Message: "a cluster appears"},
			{Code: fleet.FindingNoPolicy, Severity: fleet.SeverityCaution, Message: "no policy\nclaims it"},
		},
	}
}

func TestStops(t *testing.T) {
	for words, want := range map[string]string{
		"":                     "",
		"delete":               "delete: Deployment shop/web on us-1 and 1 more",
		"move":                 "move: Deployment shop/web on eu-3 and 1 more",
		"caution":              "caution: no policy",
		"error":                "",
		"new-cluster":          "new-cluster: a cluster appears",
		"no-policy no-policy":  "no-policy: no policy",
		"fleet-wide-delete":    "",
		"no-policy error move": "move: Deployment shop/web on eu-3 and 1 more; no-policy: no policy",
	} {
		if got := strings.Join(gated().Stops(strings.Fields(words)), "; "); got != want {
			t.Errorf("%q stops for %q, want %q", words, got, want)
		}
	}

	r := gated()
	r.Findings[0].Severity = fleet.SeverityError
	for _, word := range []string{plan.GateError, plan.GateCaution} {
		if got := r.Stops([]string{word}); len(got) != 1 || !strings.HasPrefix(got[0], word+": a cluster appears") {
			t.Errorf("%s stops for %q", word, got)
		}
	}
}

func TestGitLabReport(t *testing.T) {
	r := gated()
	for complete, want := range map[bool]string{true: `{"create":1,"update":4,"delete":2}`, false: `{}`} {
		r.Complete = complete
		form, ok := plan.FormOf(plan.FormGitLab)
		var out bytes.Buffer
		if err := form.Write(r, &out, plan.View{}); !ok || err != nil || strings.TrimSpace(out.String()) != want {
			t.Errorf("complete %v: %s, %v; want %s", complete, &out, err, want)
		}
	}
}
