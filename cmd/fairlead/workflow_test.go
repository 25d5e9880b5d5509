// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"
)

// workflow is a file of examples/ci: a workflow with one job, or a composite action.
type workflow struct {
	Jobs   map[string]job
	Runs   job
	Inputs map[string]struct{ Default string }
}

type job struct {
	If    string
	Env   map[string]string
	Steps []step
}

type step struct {
	Uses, If, Run string
	With          map[string]any
	Env           map[string]string
}

// runner plays the runner of a forge: it runs what stands in run, and moves artifacts.
type runner struct {
	ts     *testscript.TestScript
	values map[string]string // of expressions
}

// runWorkflow runs the only job of a file below examples/ci in the current directory.
// Arguments of the form github.base_ref=main are values of expressions; those that begin
// with github.event stand in $GITHUB_EVENT_PATH.
func runWorkflow(ts *testscript.TestScript, _ bool, args []string) {
	r := runner{ts, map[string]string{}}
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		r.values[name] = value
	}
	for _, j := range readWorkflow(ts, args[0]).Jobs {
		if !r.applies(j.If) {
			ts.Fatalf("the job does not run: %s", j.If)
		}
		r.steps(j)
	}
}

func readWorkflow(ts *testscript.TestScript, name string) workflow {
	text, err := os.ReadFile(filepath.Join(ts.Getenv("EXAMPLES"), name))
	ts.Check(err)
	var w workflow
	ts.Check(yaml.Unmarshal(text, &w))
	return w
}

func (r runner) steps(j job) {
	for _, s := range j.Steps {
		if !r.applies(s.If) {
			continue
		}
		if s.Uses != "" {
			r.use(s)
			continue
		}
		if strings.Contains(s.Run, "${{") {
			r.ts.Fatalf("an expression in a script can be made a command by what it stands for:\n%s", s.Run)
		}
		args := []string{}
		for _, env := range []map[string]string{j.Env, s.Env} {
			for name, value := range env {
				args = append(args, name+"="+r.expand(value))
			}
		}
		r.ts.Check(r.ts.Exec("env", append(args, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)...))
	}
}

func (r runner) use(s step) {
	action, _, _ := strings.Cut(s.Uses, "@")
	artifact := filepath.Join(r.ts.Getenv("WORK"), "artifacts", r.with(s, "name"))
	switch action {
	case "actions/checkout":
		if r.with(s, "persist-credentials") != "false" || r.with(s, "fetch-depth") != "0" {
			r.ts.Fatalf("checkout keeps a token, or not the history: %v", s.With)
		}
	case "actions/upload-artifact":
		r.copy(r.ts.MkAbs(r.with(s, "path")), filepath.Join(artifact, r.with(s, "path")))
	case "actions/download-artifact":
		r.copy(filepath.Join(artifact, "plan.json"), filepath.Join(r.ts.MkAbs(r.with(s, "path")), "plan.json"))
	case "fairlead/fairlead/examples/ci/github":
		w := readWorkflow(r.ts, "github/action.yml")
		in := runner{r.ts, map[string]string{}}
		for name, value := range r.values {
			in.values[name] = value
		}
		for name, input := range w.Inputs {
			in.values["inputs."+name] = r.expand(input.Default)
		}
		for name := range s.With {
			in.values["inputs."+name] = r.with(s, name)
		}
		in.steps(w.Runs)
	default:
		r.ts.Fatalf("nobody knows %s", s.Uses)
	}
}

func (r runner) with(s step, name string) string {
	if s.With[name] == nil {
		return ""
	}
	return r.expand(fmt.Sprint(s.With[name]))
}

func (r runner) copy(from, to string) {
	text, err := os.ReadFile(from)
	r.ts.Check(err)
	r.ts.Check(os.MkdirAll(filepath.Dir(to), 0o755))
	r.ts.Check(os.WriteFile(to, text, 0o644))
}

var (
	expression = regexp.MustCompile(`\$\{\{ *([^ }]+) *\}\}`)
	equals     = regexp.MustCompile(`^([\w.]+) == '([^']*)'$`)
)

func (r runner) expand(text string) string {
	return expression.ReplaceAllStringFunc(text, func(found string) string {
		return r.value(expression.FindStringSubmatch(found)[1])
	})
}

// applies reports whether all of a condition's comparisons are true.
func (r runner) applies(condition string) bool {
	if condition == "" {
		return true
	}
	for part := range strings.SplitSeq(condition, " && ") {
		m := equals.FindStringSubmatch(part)
		if m == nil {
			r.ts.Fatalf("nobody knows the condition %s", part)
		}
		if r.value(m[1]) != m[2] {
			return false
		}
	}
	return true
}

func (r runner) value(name string) string {
	if value, ok := r.values[name]; ok {
		return value
	}
	path, ok := strings.CutPrefix(name, "github.event.")
	if !ok {
		r.ts.Fatalf("nobody knows the value of %s", name)
	}

	text, err := os.ReadFile(r.ts.Getenv("GITHUB_EVENT_PATH"))
	r.ts.Check(err)
	var at any
	r.ts.Check(json.Unmarshal(text, &at))
	for field := range strings.SplitSeq(path, ".") {
		in, ok := at.(map[string]any)
		if !ok || in[field] == nil {
			r.ts.Fatalf("the event has no %s", path)
		}
		at = in[field]
	}
	return fmt.Sprint(at)
}

// runPipeline runs the script of the only job of a GitLab template.
func runPipeline(ts *testscript.TestScript, _ bool, args []string) {
	text, err := os.ReadFile(filepath.Join(ts.Getenv("EXAMPLES"), args[0]))
	ts.Check(err)
	var jobs map[string]struct {
		Variables map[string]string
		Script    []string
	}
	ts.Check(yaml.Unmarshal(text, &jobs))
	for _, j := range jobs {
		env := []string{}
		for name, value := range j.Variables {
			env = append(env, name+"="+value)
		}
		ts.Check(ts.Exec("env", append(env, "bash", "-eo", "pipefail", "-c", strings.Join(j.Script, "\n"))...))
	}
}
