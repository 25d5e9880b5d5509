// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/examples"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/look/plan/plantest"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/testenv/kube"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"fairlead": func() {
			history.WorthKeeping = 0 // so that every look stands on what others kept
			inspectInterval = 50 * time.Millisecond
			if d, err := time.ParseDuration(os.Getenv("MAY_END_IN")); err == nil {
				mayEndIn = d
			}
			plan.Forms = checked(plan.Forms)
			os.Exit(program(os.Args[1:]))
		},
	})
}

// checked holds every plan that is printed in one of the forms to the schema.
func checked(forms []plan.Form) (all []plan.Form) {
	for _, form := range forms {
		write := form.Write
		form.Write = func(r *plan.Plan, out io.Writer, view plan.View) error {
			if err := plantest.Check(r); err != nil {
				return fmt.Errorf("the plan is not valid: %w", err)
			}
			return write(r, out, view)
		}
		all = append(all, form)
	}
	return all
}

// The program driven as its user drives it: real git, the real binary, and
// members inside the test process.
//
//	members NAME...    starts members and writes members.yaml with a context for each;
//	                   with a number instead so many, m001 and so on
//	partition NAME     takes a member off the network; heal NAME brings it back
//	slow DURATION NAME...  delays every answer of members; 0 ends it
//	refuse NAME METHOD TEXT  answers requests of a member whose path has TEXT with 403; without METHOD no more
//	hand NAME METHOD PATH [BODY]  does something to a member by hand; a PATCH is a merge patch
//	settle NAME...     reports on the Deployments of members as their controllers would
//	requests           prints what every member was sent since the last time, reads left out
//	runs               prints what every member runs in namespaces other than its own
//	eventually REGEXP  waits until runs prints a match
//	answers REGEXP URL  waits until a GET of URL has a match; $FREE1 and $FREE2 are addresses
//	                   that nobody listens on
//	quickstart DIR     copies the example fleet
//	code N CMD...      runs CMD and expects exit code N
//	commit MESSAGE     commits everything in the current directory
//	terminal WIDTH CMD...  runs CMD on a terminal that is so wide, and prints what it got; on Linux
//	damage DIR         writes over the middle of every file below $WORK/DIR
//	hub                starts an empty API server, real, for kubectl; $KUBECONFIG leads to it
//	forge KIND         starts a forge and sets $FORGE to its URL and $FAIRLEAD_FORGE_TOKEN;
//	                   the kind real is a Gitea, and git pushes to its repository at $REMOTE
//	pull N HEAD BASE   opens pull request N of these branches of the current directory
//	mergepull N        merges one
//	fork               gives mallory a fork of a real forge's repository, at $FORK
//	report ADDRESS TOKEN  has a real forge report pushes to ADDRESS, at the path in stdout
//	workflow FILE NAME=VALUE...  runs the job of a file below examples/ci as a runner would
//	pipeline FILE      runs the script of a GitLab template there
//	comments N REV     prints the comments on one, and the statuses of a commit
//	status N REV TEXT  waits until these have TEXT
//
// The condition real says that there are real API servers to start.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *updateScripts,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, ".home")
			env.Setenv("HOME", home)
			env.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
			env.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, "gitconfig"))
			env.Setenv("NO_COLOR", "1")
			if err := freeAddresses(env, "FREE1", "FREE2"); err != nil {
				return err
			}
			ci, err := filepath.Abs("../../examples/ci")
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", ci)
			if realServers() {
				binaries, err := kube.Binaries()
				if err != nil {
					return err
				}
				env.Setenv("KUBEBUILDER_ASSETS", binaries)
			}
			// Hashes are the same in every run.
			env.Setenv("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
			env.Setenv("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
			env.Values["members"] = map[string]*embedded.Server{}
			env.Values["away"] = map[string]bool{}
			env.Values["forge"] = new(scriptForge)
			if err := os.MkdirAll(home, 0o755); err != nil {
				return err
			}
			if err := firstFleet(filepath.Join(env.WorkDir, "first-fleet.sh")); err != nil {
				return err
			}
			config := "[user]\n\tname = ann\n\temail = ann@example.com\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n"
			return os.WriteFile(filepath.Join(home, "gitconfig"), []byte(config), 0o644)
		},
		Condition: func(name string) (bool, error) {
			if name != "real" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			return realServers(), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"members": startScriptMembers, "partition": partition(true), "heal": partition(false),
			"slow": slow, "refuse": refuse, "hand": hand, "settle": settle, "requests": requests, "runs": runs, "eventually": eventually, "answers": answers, "quickstart": copyQuickstart, "code": exitCode, "commit": commit, "damage": damage, "terminal": onTerminal,
			"hub": startHub, "forge": startForge, "pull": openPull, "mergepull": mergePull, "fork": forkRepo, "report": reportPushes, "workflow": runWorkflow, "pipeline": runPipeline, "comments": printComments, "status": awaitStatus,
		},
	})
}

func realServers() bool { return os.Getenv("FAIRLEAD_REAL") == "1" }

func servers(ts *testscript.TestScript) map[string]*embedded.Server {
	return ts.Value("members").(map[string]*embedded.Server)
}

func startScriptMembers(ts *testscript.TestScript, _ bool, args []string) {
	if n, err := strconv.Atoi(args[0]); err == nil {
		args = nil
		for i := range n {
			args = append(args, fmt.Sprintf("m%03d", i+1))
		}
	}
	configs := map[string]*rest.Config{}
	for _, name := range args {
		s, err := embedded.Start(embedded.Options{Name: name})
		ts.Check(err)
		ts.Defer(s.Close)
		servers(ts)[name], configs[name] = s, s.Config()
	}
	ts.Check(push.WriteContexts(ts.MkAbs("members.yaml"), configs))
}

func partition(on bool) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		for _, name := range args {
			servers(ts)[name].Partition(on)
			ts.Value("away").(map[string]bool)[name] = on
		}
	}
}

func slow(ts *testscript.TestScript, _ bool, args []string) {
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	for _, name := range args[1:] {
		servers(ts)[name].SetLatency(d)
	}
}

func refuse(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 1 {
		servers(ts)[args[0]].Fail(nil)
		return
	}
	servers(ts)[args[0]].Fail(func(r *http.Request) (int, bool) {
		return http.StatusForbidden, r.Method == args[1] && strings.Contains(r.URL.Path, args[2])
	})
}

func hand(ts *testscript.TestScript, _ bool, args []string) {
	body := ""
	if len(args) > 3 {
		body = args[3]
	}
	byHand(ts, args[0], args[1], args[2], body)
}

func settle(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		objects, err := push.Live(context.Background(), servers(ts)[name].Config(), schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "")
		ts.Check(err)
		for _, o := range objects {
			u := &unstructured.Unstructured{Object: o}
			n, _, err := unstructured.NestedInt64(o, "spec", "replicas")
			ts.Check(err)
			byHand(ts, name, http.MethodPatch, fmt.Sprintf("/apis/apps/v1/namespaces/%s/deployments/%s/status", u.GetNamespace(), u.GetName()),
				fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%d,"readyReplicas":%d,"availableReplicas":%d}}`, u.GetGeneration(), n, n, n, n))
		}
	}
}

func byHand(ts *testscript.TestScript, name, method, path, body string) {
	req, err := http.NewRequest(method, servers(ts)[name].URL()+path, strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if resp.StatusCode >= 300 {
		ts.Fatalf("%s: %s", resp.Status, answer)
	}
}

func sortedServers(ts *testscript.TestScript) []string {
	var names []string
	for name := range servers(ts) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func requests(ts *testscript.TestScript, _ bool, _ []string) {
	for _, name := range sortedServers(ts) {
		var sent []string
		for _, r := range servers(ts)[name].Requests() {
			if r.Method != "GET" {
				sent = append(sent, fmt.Sprintf("%s %s %s\n", name, r.Method, r.Path))
			}
		}
		servers(ts)[name].ResetRequests()
		slices.Sort(sent)
		fmt.Fprint(ts.Stdout(), strings.Join(sent, ""))
	}
}

func runs(ts *testscript.TestScript, _ bool, _ []string) {
	fmt.Fprint(ts.Stdout(), running(ts))
}

func eventually(ts *testscript.TestScript, _ bool, args []string) {
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got := running(ts)
		if want.MatchString(got) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the members run\n%s", got)
		}
	}
}

// freeAddresses sets variables to addresses that nobody listens on.
func freeAddresses(env *testscript.Env, names ...string) error {
	for _, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		env.Setenv(name, l.Addr().String())
	}
	return nil
}

func answers(ts *testscript.TestScript, _ bool, args []string) {
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	got := ""
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get(args[1])
		if err != nil {
			got = err.Error()
			continue
		}
		b, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got = answer.Status + "\n" + string(b); want.MatchString(got) {
			return
		}
	}
	ts.Fatalf("%s answers\n%s", args[1], got)
}

// running is what every member holds in these kinds.
func running(ts *testscript.TestScript) string {
	var b strings.Builder
	for _, name := range sortedServers(ts) {
		if ts.Value("away").(map[string]bool)[name] {
			// client-go would ask ten times before it believes it.
			fmt.Fprintf(&b, "%s does not answer\n", name)
			continue
		}
		for _, resource := range []schema.GroupVersionResource{
			{Group: "apps", Version: "v1", Resource: "deployments"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "configmaps"},
		} {
			objects, err := push.Live(context.Background(), servers(ts)[name].Config(), resource, "")
			if err != nil {
				fmt.Fprintf(&b, "%s does not answer\n", name)
				break
			}
			for _, o := range objects {
				u := &unstructured.Unstructured{Object: o}
				fmt.Fprintf(&b, "%s %s %s/%s%s\n", name, u.GetKind(), u.GetNamespace(), u.GetName(), details(u))
			}
		}
	}
	return b.String()
}

func details(u *unstructured.Unstructured) string {
	text := ""
	if v, ok, _ := unstructured.NestedString(u.Object, "data", "v"); ok {
		text = " v=" + v
	}
	if containers, ok, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers"); ok {
		image, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image")
		replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		text = fmt.Sprintf(" %s x%d", image[strings.LastIndex(image, "/")+1:], replicas)
	}
	if u.GetLabels()[object.LabelManaged] != "true" {
		text += " (not ours)"
	}
	return text
}

func copyQuickstart(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.CopyFS(ts.MkAbs(args[0]), examples.Quickstart()))
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chmod(path, 0o644)
	}))
}

func exitCode(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := err.(interface{ ExitCode() int }); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if want := args[0]; fmt.Sprint(got) != want {
		ts.Fatalf("exit code %d, want %s", got, want)
	}
}

func commit(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("git", "add", "-A"))
	ts.Check(ts.Exec("git", "commit", "-q", "--allow-empty", "-m", strings.Join(args, "\n")))
}

func damage(ts *testscript.TestScript, _ bool, args []string) {
	n := 0
	ts.Check(filepath.WalkDir(filepath.Join(ts.Getenv("WORK"), args[0]), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b[len(b)/2] ^= 0x55
		n++
		return os.WriteFile(path, b, 0o600)
	}))
	if n == 0 {
		ts.Fatalf("there is no file below %s", args[0])
	}
}
