// SPDX-License-Identifier: Apache-2.0

package fairlead_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fairlead/fairlead/"

// Imports point one way. The first row that a package is in, or below, says what
// of ours it may import: those packages and what is below them. A trailing = means
// that package alone.
var imports = []struct{ pkg, ours string }{
	// What the fold is made of.
	{"printable", ""},
	{"object", "printable"},
	{"ordered", ""},
	{"compact", ""},
	{"api", "api"},
	{"schedule", "api"},
	{"interpret", "api"},
	{"fleet", "api object ordered compact schedule interpret printable"},
	{"render", "api object ordered compact fleet render printable"},
	{"propagate/oracle", ""}, // a second account of the rules knows nothing of the first
	{"propagate", "api object ordered compact schedule interpret fleet propagate printable"},
	{"source", "source"},

	{"credentials", "source printable"},

	// Members. None of them knows what is decided, or why.
	{"dispatch/member", "object dispatch/member printable"},
	{"dispatch/push", "object dispatch/member dispatch/push printable"},
	{"dispatch/pull", "object dispatch/member dispatch/pull"},
	{"dispatch/embedded", "object dispatch/embedded printable"},
	{"dispatch/dispatchtest", "object dispatch printable"},
	{"dispatch", "object dispatch= dispatch/member printable"},
	{"testenv", "testenv"},

	// Looks and edits.
	{"look/history", "api object ordered compact fleet render propagate source look/history printable"},
	{"look/status", "api object ordered interpret fleet propagate source dispatch/member dispatch/push eventlog look/history look/status printable"},
	{"look/output", "object look/output printable"},
	{"look/listing", "api object fleet propagate source dispatch/member dispatch/push look/output look/report look/status look/listing printable"},
	{"look/report", "api object ordered schedule fleet propagate source eventlog look/history look/output look/status look/report printable"},
	{"look/plan", "api object ordered fleet propagate source dispatch/member dispatch/push look/history look/output look/status look/report look/plan printable"},
	{"change/yamledit", "api change/yamledit"},
	{"change", "api object ordered fleet propagate source look/history look/report look/plan change printable"},

	// The loop.
	{"eventlog", "object printable"},
	{"reconcile/checkpoint", "object ordered fleet render propagate dispatch= dispatch/member look/history reconcile/checkpoint printable"},
	{"reconcile/sharing/claims", "lease="},
	{"reconcile/sharing", "fleet ordered propagate look/history dispatch/member dispatch/push dispatch/pull lease reconcile= reconcile/sharing"},
	{"reconcile", "api object ordered interpret fleet propagate source dispatch look/history eventlog reconcile printable"},

	// Which replica dispatches where. The machine knows nothing of fleets and members,
	// and only what runs it has a client.
	{"lease/hub", "object dispatch/member dispatch/push dispatch/pull lease"},
	{"lease", "lease"},

	// Decryption, for the door that has the keys.
	{"decrypt", "object"},

	// Install.
	{"config", ""},
	{"install", "api config install"},

	// Doors.
	{"forge", "fleet propagate source look/report look/plan printable"},
	{"review", "object propagate source look/history look/plan forge reconcile review printable"},
	{"controller/webhook", "controller/webhook"},
	{"web/auth", "printable"},
	{"web/draw", "printable"},
	{"web/stream", "printable"},
	{"web", "api object ordered fleet propagate source eventlog look web printable"},
	{"examples", "examples"},
	{"metrics", "dispatch reconcile"},
	{"controller", "api credentials object fleet lease propagate source dispatch look forge reconcile review decrypt metrics interpret web controller printable"},
	{"cmd", "api credentials object ordered schedule interpret fleet render propagate source dispatch look change eventlog reconcile metrics decrypt controller install testenv examples forge web cmd printable"},
}

// homes are where each big library may be imported: one package owns it, and
// hides what is odd about it.
var homes = map[string]string{
	"github.com/go-git":              "source",
	"github.com/ProtonMail":          "source decrypt",
	"github.com/hiddeco/sshsig":      "source",
	"sigs.k8s.io/kustomize":          "render",
	"github.com/yuin/gopher-lua":     "interpret",
	"k8s.io/client-go":               "dispatch/push dispatch/embedded dispatch/dispatchtest testenv look/output install controller lease/hub",
	"sigs.k8s.io/controller-runtime": "testenv cmd install controller",
	"go.etcd.io/bbolt":               "reconcile/checkpoint",
	"github.com/spf13/cobra":         "cmd",
	"k8s.io/cli-runtime":             "look/output",
	"github.com/santhosh-tekuri":     "look/plan/plantest",
	"github.com/fluxcd/pkg/runtime":  "cmd controller",
	"github.com/prometheus":          "metrics cmd",
	"github.com/KimMachineGun":       "cmd",
	"github.com/evanphx/json-patch":  "propagate/override interpret source",
	"go.yaml.in/yaml/v3":             "change/yamledit render decrypt",
	"github.com/getsops/sops":        "decrypt",
	"filippo.io/age":                 "decrypt",
	"github.com/google/go-github":    "forge",
	"gitlab.com/gitlab-org/api":      "forge",
	"code.gitea.io/sdk":              "forge",
	"github.com/hashicorp":           "forge",
}

// pure packages take values and return values. They are written as in imports.
var pure = "object ordered schedule interpret fleet propagate change/yamledit look/report look/plan look/output web/draw lease="

// impure are what they must not reach for.
var impure = []string{
	"context", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "syscall", "time",
	"k8s.io/client-go", "k8s.io/klog", "sigs.k8s.io/controller-runtime",
}

// excused are what one of them needs all the same: the interpreter counts the
// instructions of a script through the context that the Lua engine asks before
// each of them, because a deadline would make the fold hang on the clock. A report
// is given the time, and writes durations. JSONPath stands with the client of the API,
// and reaches nothing. The machine of Leases is given the time, too.
var excused = map[string][]string{
	"interpret":   {"context"},
	"look/report": {"time"},
	"look/plan":   {"time"},
	"lease":       {"time"},
	"look/output": {"k8s.io/client-go/util/jsonpath"},
}

func TestImportRule(t *testing.T) {
	for _, p := range packages(t) {
		at := strings.TrimPrefix(p.ImportPath, module)
		if at+"/" == module {
			continue // these tests
		}
		row := slices.IndexFunc(imports, func(r struct{ pkg, ours string }) bool { return within(at, r.pkg) })
		if row < 0 {
			t.Errorf("%s has no row: say what it may import", at)
			continue
		}

		for _, imported := range p.Imports {
			if name, ours := strings.CutPrefix(imported, module); ours {
				if !allows(imports[row].ours, name) {
					t.Errorf("%s imports %s: imports point one way", at, name)
				}
				continue
			}
			for library, home := range homes {
				if within(imported, library) && !allows(home, at) {
					t.Errorf("%s imports %s, which is at home in %s", at, imported, home)
				}
			}
			if allows(pure, at) && isImpure(imported) && !slices.Contains(excused[at], imported) {
				t.Errorf("%s imports %s: it takes values and returns values", at, imported)
			}
		}
	}
}

// A member that is written to is made in one place for each door: of a controller that is
// package reconcile/sharing, which has the gate of the cluster's shard before it. So there is
// no way around the gate.
func TestOneWayToMembers(t *testing.T) {
	makers := map[string]string{
		module + "dispatch/push.New":            "reconcile/sharing lease/hub cmd dispatch/dispatchtest",
		module + "dispatch/pull.Branch":         "reconcile/sharing lease/hub cmd dispatch/dispatchtest",
		"k8s.io/client-go/rest.HTTPClientFor":   "dispatch/push",
		"k8s.io/client-go/dynamic.NewForConfig": "dispatch/push dispatch/dispatchtest",
	}
	for _, p := range packages(t) {
		at := strings.TrimPrefix(p.ImportPath, module)
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, used := range uses(file) {
				if may, ok := makers[used]; ok && !allows(may, at) && !within(at, "testenv") {
					t.Errorf("%s/%s uses %s: a member is made in %s", at, name, used, may)
				}
			}
		}
	}
}

// uses are what a file names of the packages that it imports: "path.Name".
func uses(file *ast.File) (all []string) {
	imported := map[string]string{}
	for _, i := range file.Imports {
		from := strings.Trim(i.Path.Value, `"`)
		as := path.Base(from)
		if i.Name != nil {
			as = i.Name.Name
		}
		imported[as] = from
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && imported[x.Name] != "" {
			all = append(all, imported[x.Name]+"."+s.Sel.Name)
		}
		return true
	})
	return all
}

// The fold alone must not be able to reach a member, nor dispatch the fold or a
// script, whatever is between them.
func TestWhatNeverMeets(t *testing.T) {
	for pkg, never := range map[string]string{
		"dispatch":      "propagate fleet interpret github.com/yuin/gopher-lua github.com/go-git sigs.k8s.io/kustomize",
		"dispatch/push": "propagate fleet interpret github.com/yuin/gopher-lua github.com/go-git sigs.k8s.io/kustomize",
		"dispatch/pull": "propagate fleet interpret github.com/yuin/gopher-lua github.com/go-git sigs.k8s.io/kustomize k8s.io/client-go",
		"propagate":     "dispatch source render k8s.io/client-go github.com/go-git sigs.k8s.io/kustomize",
	} {
		out, err := exec.Command("go", "list", "-deps", module+pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		for dep := range strings.FieldsSeq(string(out)) {
			for unwanted := range strings.FieldsSeq(never) {
				if within(dep, unwanted) || within(strings.TrimPrefix(dep, module), unwanted) {
					t.Errorf("%s links %s", pkg, dep)
				}
			}
		}
	}
}

func isImpure(imported string) bool {
	return slices.ContainsFunc(impure, func(i string) bool {
		return imported == i || strings.Contains(i, ".") && within(imported, i)
	})
}

// allows reports whether a list of packages has one, or one above it.
func allows(list, pkg string) bool {
	for allowed := range strings.FieldsSeq(list) {
		alone, only := strings.CutSuffix(allowed, "=")
		if only && pkg == alone || !only && within(pkg, allowed) {
			return true
		}
	}
	return false
}

func within(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

type goPackage struct {
	ImportPath, Dir  string
	Imports, GoFiles []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	lookAtSources(t)
	out, err := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Imports,GoFiles", module+"...").Output()
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
	if len(all) < 20 {
		t.Fatalf("go list found %d packages", len(all))
	}
	return all
}

// lookAtSources has the test cache see what go list reads in a process of its own:
// without it a result from before an import was added would be taken for today's.
func lookAtSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		_, err = os.Stat(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
