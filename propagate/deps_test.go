// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fairlead/fairlead/"

// Imports point inward, and each big library has one home.
var imports = []struct {
	pkg     string   // this package and those below it
	ours    []string // may import these of ours, and those below them
	library []string // and of these libraries, only these homes may import them
}{
	{pkg: "api", ours: []string{"api"}},
	{pkg: "source", ours: []string{"source"}, library: []string{"github.com/go-git"}},
	{pkg: "propagate/interpret", ours: []string{"api"}, library: []string{"github.com/yuin/gopher-lua"}},
	{pkg: "propagate/oracle"},
	{pkg: "propagate", ours: []string{"api", "propagate"}},
	{pkg: "edit", ours: []string{"api", "edit"}},
	{pkg: "render", ours: []string{"api", "propagate", "render"}, library: []string{"sigs.k8s.io/kustomize"}},
	{pkg: "dispatch", ours: []string{"propagate", "dispatch"}, library: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}},
	{pkg: "reconcile", ours: []string{"api", "source", "propagate", "render", "dispatch", "reconcile"}, library: []string{"go.etcd.io/bbolt"}},
	{pkg: "cmd", ours: []string{""}, library: []string{"github.com/spf13/cobra", "k8s.io/cli-runtime"}},
}

// impure are what a decision must not reach for, nor the change of a document.
var impure = []string{
	"context", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "time", "syscall",
	"github.com/", "go.etcd.io/", "go.yaml.in/", "gopkg.in/",
	"k8s.io/client-go", "k8s.io/klog", "sigs.k8s.io/controller-runtime",
}

// excused are what one package needs all the same: the interpreter counts the
// instructions of a script through the context that the Lua engine asks before
// each of them, because a deadline would make the fold hang on the clock. An
// edit asks the parser where the nodes of a text stand.
var excused = map[string][]string{
	"edit":                {"go.yaml.in/yaml/v3"},
	"propagate/interpret": {"context", "github.com/yuin/gopher-lua", "github.com/yuin/gopher-lua/ast", "github.com/yuin/gopher-lua/parse"},
}

func TestImportRule(t *testing.T) {
	for _, p := range packages(t) {
		at := strings.TrimPrefix(p.ImportPath, module)
		rule := slices.IndexFunc(imports, func(r struct {
			pkg     string
			ours    []string
			library []string
		}) bool {
			return within(at, r.pkg)
		})
		if rule < 0 {
			continue // examples and tools of the tests
		}
		for _, imported := range p.Imports {
			if name, ours := strings.CutPrefix(imported, module); ours {
				if within(name, "propagate/oracle") {
					t.Errorf("%s imports %s, which is for tests", at, imported)
				}
				if !slices.ContainsFunc(imports[rule].ours, func(allowed string) bool { return allowed == "" || within(name, allowed) }) {
					t.Errorf("%s imports %s: imports point inward", at, name)
				}
				continue
			}
			for i, home := range imports {
				if i == rule {
					continue
				}
				for _, library := range home.library {
					if within(imported, library) || strings.HasPrefix(imported, library+"/") {
						t.Errorf("%s imports %s, which is at home in %s", at, imported, home.pkg)
					}
				}
			}
			if (within(at, "propagate") || within(at, "edit")) && imported != "github.com/evanphx/json-patch/v5" && !slices.Contains(excused[at], imported) && slices.ContainsFunc(impure, func(i string) bool {
				return imported == i || strings.HasSuffix(i, "/") && strings.HasPrefix(imported, i) && !strings.HasPrefix(imported, module) ||
					strings.Contains(i, ".") && strings.HasPrefix(imported, i+"/")
			}) {
				t.Errorf("%s imports %s: it takes values and returns values", at, imported)
			}
		}
	}
}

func within(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

type goPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 5 {
		t.Fatalf("go list found %d packages", len(all))
	}
	return all
}
