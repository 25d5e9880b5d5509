// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/reconcile"
)

// The test binary is also the process that is killed: it goes round once and
// ends itself at the step that the environment names.
const (
	envChild = "FAIRLEAD_TEST_CHILD" // the options of the child, as JSON
	envKill  = "FAIRLEAD_TEST_KILL"  // the number of the step to be killed at
)

func TestMain(m *testing.M) {
	if text := os.Getenv(envChild); text != "" {
		os.Exit(child(text))
	}
	if text := os.Getenv(envMeasured); text != "" {
		os.Exit(measuredChild(text))
	}
	os.Exit(m.Run())
}

type childOptions struct {
	Repo, State, Kubeconfig string
	Publish                 string // a repository for pull clusters
}

// steps counts what happens, and ends the process at one of them.
type steps struct {
	n    atomic.Int64
	kill int64
}

func (s *steps) step(name string) {
	if s.n.Add(1) != s.kill {
		return
	}
	fmt.Println("killed", name)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

func child(text string) int {
	var opt childOptions
	if err := json.Unmarshal([]byte(text), &opt); err != nil {
		fmt.Println(err)
		return 2
	}
	kill, _ := strconv.ParseInt(os.Getenv(envKill), 10, 64)
	s := &steps{kill: kill}
	l, err := reconcile.Open(context.Background(), reconcile.Options{
		Repo: opt.Repo, Ref: "main", Path: ".", StateDir: opt.State, At: s.step,
		Report: func(e reconcile.Event) { fmt.Println(e.String()) },
		Members: func(c *fleet.Cluster) (member.Member, error) {
			if opt.Publish != "" {
				return s.branch(opt.Publish, c.Name)
			}
			return s.push(opt.Kubeconfig, c.Name)
		},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	err = l.Once(context.Background())
	s.step("waited")
	if closeErr := l.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// push is a member whose every request is two steps.
func (s *steps) push(kubeconfig, cluster string) (member.Member, error) {
	contexts, err := push.LoadContexts(kubeconfig)
	if err != nil {
		return nil, err
	}
	config, err := contexts.For(cluster)
	if err != nil {
		return nil, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			s.step("before " + r.Method + " " + r.URL.Path)
			response, err := next.RoundTrip(r)
			s.step("after " + r.Method + " " + r.URL.Path)
			return response, err
		})
	})
	return push.New(config, push.Options{})
}

// F01-F10: killed between any two steps of the loop, the next run ends in the
// same fleet, and deletes nothing that was not planned.
func TestKilledAnywhereEndsInTheSameFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("a process for every step")
	}
	want, _, _ := killedAt(t, 0)
	for n := int64(1); ; n++ {
		got, deletes, killed := killedAt(t, n)
		if killed == "" {
			if n < 20 {
				t.Errorf("only %d steps were seen", n)
			}
			return
		}
		if got != want {
			t.Errorf("killed %s (step %d): the fleet ends as\n%s\nwant\n%s", killed, n, got, want)
		}
		if len(deletes) > 3 {
			t.Errorf("killed %s (step %d): deletions %q", killed, n, deletes)
		}
		for _, d := range deletes {
			if !strings.HasSuffix(d, "/configmaps/old") {
				t.Errorf("killed %s (step %d): %s was not planned", killed, n, d)
			}
		}
	}
}

// killedAt runs the history with a kill at step n of its second commit, and
// once more. It returns the fleet in the end, all deletions and where it was
// killed.
func killedAt(t *testing.T, n int64) (fleet string, deletes []string, killed string) {
	w := newWorld(t, embeddedMembers(t))
	opt := childOptions{Repo: w.repo.Dir, State: w.state, Kubeconfig: filepath.Join(t.TempDir(), "members.yaml")}
	configs := map[string]*rest.Config{}
	for name, m := range w.members {
		configs[name] = m.config
	}
	if err := push.WriteContexts(opt.Kubeconfig, configs); err != nil {
		t.Fatal(err)
	}
	w.repo.Commit("before", toBeKilled("Push"))
	if _, err := spawn(opt, 0); err != nil {
		t.Fatal(err)
	}
	w.repo.Commit("after", killedIn)
	killed = spawnTwice(t, opt, n)
	return dump(w), w.deletions(), killed
}

// toBeKilled is a fleet, killedIn what changes in the step that is killed.
func toBeKilled(mode string) map[string]string {
	files := map[string]string{"p.yaml": policyFor("ConfigMap", "new", "web", "old") + "---\n" + strings.Replace(policyFor("ConfigMap", "kept"), "spec:", "spec:\n  preserveResourcesOnDeletion: true", 1)}
	for _, name := range names {
		files["clusters/"+name+".yaml"] = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {syncMode: " + mode + "}\n"
	}
	for _, name := range []string{"web", "old", "kept"} {
		files[name+".yaml"] = configMap(name, "1")
	}
	return files
}

var killedIn = map[string]string{"web.yaml": configMap("web", "2"), "new.yaml": configMap("new", "1"), "old.yaml": "\x00delete", "kept.yaml": "\x00delete"}

// spawnTwice is a run that is killed at step n, and one that is not.
func spawnTwice(t *testing.T, opt childOptions, n int64) (killed string) {
	t.Helper()
	out, err := spawn(opt, n)
	if _, at, ok := strings.Cut(out, "killed "); ok {
		killed, _, _ = strings.Cut(at, "\n")
	} else if err != nil {
		t.Fatalf("step %d: %v\n%s", n, err, out)
	}
	if out, err := spawn(opt, 0); err != nil {
		t.Fatalf("killed %s: the next run: %v\n%s", killed, err, out)
	}
	return killed
}

func spawn(opt childOptions, kill int64) (string, error) {
	cmd := exec.Command(os.Args[0])
	text, err := json.Marshal(opt)
	if err != nil {
		return "", err
	}
	cmd.Env = append(os.Environ(), envChild+"="+string(text), envKill+"="+strconv.FormatInt(kill, 10))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == -1 {
		err = nil // killed, as it was told
	}
	return string(out), err
}

// dump is what all members hold, without what differs from run to run.
func dump(w *world) string {
	var b strings.Builder
	for _, name := range names {
		for _, cm := range []string{"kept", "new", "old", "web"} {
			o := w.get(name, configMaps, "default", cm)
			if o == nil {
				continue
			}
			fmt.Fprintf(&b, "%s %s v=%s labels=%v managers=%d\n", name, cm, value(o, "v"), o.GetLabels(), len(o.GetManagedFields()))
		}
	}
	return b.String()
}

// deletions are those that the members were asked for.
func (w *world) deletions() []string {
	var all []string
	for _, m := range w.members {
		for _, r := range m.seen() {
			if strings.HasPrefix(r, http.MethodDelete) {
				all = append(all, m.name+" "+r)
			}
		}
	}
	slices.Sort(all)
	return all
}

func policyFor(kind string, objects ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: %s, namespace: default}\nspec:\n  resourceSelectors:\n", objects[0])
	for _, name := range objects {
		fmt.Fprintf(&b, "  - {apiVersion: v1, kind: %s, name: %s}\n", kind, name)
	}
	return b.String()
}

func configMap(name, v string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\ndata: {v: %q}\n", name, v)
}
