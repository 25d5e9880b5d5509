// SPDX-License-Identifier: Apache-2.0

package sharing_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/reconcile/sharing"
	"github.com/fairlead/fairlead/source/sourcetest"
)

const (
	shards    = 8
	fleetName = "team/acme"
)

// rules are the timings of the tests.
var rules = lease.DefaultRules().Scaled(0.1)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// world is a fleet, the API server of its Leases, and its members.
type world struct {
	t       *testing.T
	repo    *sourcetest.Repo
	hub     *embedded.Server
	members map[string]*embedded.Server
}

func newWorld(t *testing.T, clusters ...string) *world {
	t.Helper()
	w := &world{t: t, repo: sourcetest.New(t), hub: server(t), members: map[string]*embedded.Server{}}
	for _, name := range clusters {
		w.members[name] = server(t)
	}
	return w
}

func server(t *testing.T) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// files are a fleet whose clusters all have a ConfigMap of a value.
func (w *world) files(value string) map[string]string {
	files := map[string]string{
		"t.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {v: \"" + value + "\"}\n",
		"p.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: a, namespace: default}\n" +
			"spec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: a}]\n  placement: {}\n",
	}
	for name := range w.members {
		files["clusters/"+name+".yaml"] = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {syncMode: Push}\n"
	}
	return files
}

// value is what a cluster has; "" is nothing.
func (w *world) value(cluster string) string {
	w.t.Helper()
	objects, err := push.Live(context.Background(), w.members[cluster].Config(), configMaps, "default")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range objects {
		if u := (&unstructured.Unstructured{Object: o}); u.GetName() == "a" {
			v, _, _ := unstructured.NestedString(o, "data", "v")
			return v
		}
	}
	return ""
}

func (w *world) waitValue(cluster, want string) {
	w.t.Helper()
	w.eventually(cluster+" has "+want, func() string {
		if got := w.value(cluster); got != want {
			return fmt.Sprintf("it has %q", got)
		}
		return ""
	})
}

func (w *world) eventually(what string, wrong func() string) {
	w.t.Helper()
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if got = wrong(); got == "" {
			return
		}
	}
	w.t.Fatalf("not in a minute: %s: %s", what, got)
}

// process is a replica that can be killed, and kept from the repository.
type process struct {
	w       *world
	pod     string
	replica *sharing.Replica
	loop    *reconcile.Loop

	away  atomic.Bool  // the repository, for this replica
	asked atomic.Int64 // how often the repository was
	dead  atomic.Bool  // nothing of it arrives anywhere
	blind atomic.Bool  // what was observed of the members cannot be read
	until atomic.Value // a commit: it is blind once it has read that all may fold it

	kill func()
	stop func()

	mu      sync.Mutex
	said    []string
	writes  []string
	deleted []string // the bodies
}

func (w *world) start(pod string, change ...func(*sharing.Options)) *process {
	w.t.Helper()
	p := &process{w: w, pod: pod}
	leases, err := coordinationv1.NewForConfig(p.hubConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	core, err := corev1.NewForConfig(p.hubConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	wake := make(chan struct{}, 1)
	options := sharing.Options{
		Leases: leases.Leases("default"), ConfigMaps: core.ConfigMaps("default"), Fleet: fleetName, Pod: pod, Shards: shards, Rules: rules,
		Changed: func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		},
		Failed: func(err error) { p.say(err.Error()) },
	}
	for _, c := range change {
		c(&options)
	}
	p.replica = sharing.New(options)
	p.loop, err = reconcile.Open(context.Background(), reconcile.Options{
		Repo: p.git() + "/.git", Ref: "main", Path: ".", StateDir: w.t.TempDir(), Interval: 50 * time.Millisecond, Watch: true, Wake: wake,
		Steady: 300 * time.Millisecond, Shares: p.replica,
		Members: func(c *fleet.Cluster) (member.Member, error) {
			return p.replica.Push(p.config(w.members[c.Name].Config()), c)
		},
		Report: func(e reconcile.Event) { p.say(e.String()) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	p.replica.Attach(p.loop)
	p.run()
	return p
}

func (p *process) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { _ = p.loop.Run(ctx) })
	leasing, end := context.WithCancel(context.Background())
	var leased sync.WaitGroup
	leased.Go(func() { _ = p.replica.Run(leasing) })
	p.kill = sync.OnceFunc(func() {
		p.dead.Store(true)
		end()
		cancel()
		leased.Wait()
		ended.Wait()
		_ = p.loop.Close()
	})
	p.stop = sync.OnceFunc(func() {
		cancel()
		ended.Wait()
		if err := errors.Join(p.loop.Close(), p.replica.Stop(context.Background())); err != nil {
			p.w.t.Error(err)
		}
		leased.Wait()
		end()
	})
	p.w.t.Cleanup(func() {
		p.kill()
		if p.w.t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.w.t.Logf("%s said:\n%s", p.pod, strings.Join(p.said[max(0, len(p.said)-30):], "\n"))
		}
	})
}

func (p *process) say(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, line)
}

// hubConfig reaches the API server of the Leases for as long as the process lives.
func (p *process) hubConfig() *rest.Config {
	config := p.w.hub.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			log := strings.Contains(r.URL.Path, "-observed")
			if p.dead.Load() || p.blind.Load() && log {
				return nil, errors.New("not reachable")
			}
			response, err := next.RoundTrip(r)
			if commit, _ := p.until.Load().(string); err == nil && log && commit != "" {
				body, _ := io.ReadAll(response.Body)
				p.blind.Store(strings.Contains(string(body), `"head":"`+commit))
				response.Body = io.NopCloser(bytes.NewReader(body))
			}
			return response, err
		})
	})
	return config
}

// config reaches a member for as long as the process lives, and counts what it writes.
func (p *process) config(to *rest.Config) *rest.Config {
	return p.reaches(to, func(r *http.Request) {
		if r.Method == http.MethodGet {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.writes = append(p.writes, r.Method+" "+r.URL.Path)
		if r.Method == http.MethodDelete && r.GetBody != nil {
			body, _ := r.GetBody()
			raw, _ := io.ReadAll(body)
			p.deleted = append(p.deleted, string(raw))
		}
	})
}

// reaches reaches a server for as long as the process lives.
func (p *process) reaches(to *rest.Config, sent func(*http.Request)) *rest.Config {
	config := rest.CopyConfig(to)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if p.dead.Load() {
				return nil, errors.New("killed")
			}
			sent(r)
			return next.RoundTrip(r)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// taken are the writes to members since the last call.
func (p *process) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.writes
	p.writes = nil
	return taken
}

// git serves the repository to this replica alone.
func (p *process) git() string {
	backend := &cgi.Handler{
		Path: filepath.Join(p.w.repo.Git("--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + p.w.repo.Dir, "GIT_HTTP_EXPORT_ALL=1"},
	}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if p.away.Load() {
			http.Error(rw, "maintenance", http.StatusServiceUnavailable)
			return
		}
		backend.ServeHTTP(rw, r)
	}))
	p.w.t.Cleanup(s.Close)
	return s.URL
}

// owns reports whether exactly these shards are a replica's own.
func (p *process) waitOwns(want ...int) {
	p.w.t.Helper()
	p.w.eventually(fmt.Sprintf("%s has the shards %v", p.pod, want), func() string {
		if _, owned := p.replica.Shards(); !slices.Equal(owned, want) {
			return fmt.Sprintf("it has %v", owned)
		}
		return ""
	})
}

// assigned are the shards that each pod should have.
func assigned(pods ...string) map[string][]int {
	shares := map[string][]int{}
	for shard, pod := range lease.Assign(shards, pods) {
		shares[pods[pod]] = append(shares[pods[pod]], shard)
	}
	return shares
}

// allBut are all shards without one.
func allBut(shard int) (all []int) {
	for s := range shards {
		if s != shard {
			all = append(all, s)
		}
	}
	return all
}

// TestLaggardTakesNothing: B cannot fetch what A has sent. A dies, and B takes the shards of
// which it has folded all that was sent, but not that one; until it can fetch. What the
// cluster has is not sent again.
func TestLaggardTakesNothing(t *testing.T) {
	for _, test := range []struct {
		name      string
		rewritten bool
	}{{"newer commit", false}, {"rewritten branch", true}} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "eu-1")
			shard, _ := lease.ShardOf("eu-1", "", shards)
			pods := []string{"fairlead-0", "fairlead-1"}
			first := pods[lease.Assign(shards, pods)[shard]]
			second := pods[1-slices.Index(pods, first)]
			shares := assigned(pods...)

			before := w.repo.Commit("100", w.files("100"))
			a, b := w.start(first), w.start(second)
			a.waitOwns(shares[first]...)
			b.waitOwns(shares[second]...)
			w.waitValue("eu-1", "100")

			b.away.Store(true)
			after := w.repo.Commit("105", w.files("105"))
			w.waitValue("eu-1", "105")
			a.kill()
			b.taken()
			b.waitOwns(allBut(shard)...)
			if test.rewritten {
				w.repo.Git("reset", "--hard", "-q", before)
				w.repo.Commit("106", w.files("106"))
				b.away.Store(false)
				head := w.repo.Head()
				w.eventually("it has folded the branch", func() string {
					if !slices.ContainsFunc(b.lines(), func(s string) bool { return strings.Contains(s, head[:7]) }) {
						return "not yet"
					}
					return ""
				})
				if _, owned := b.replica.Shards(); slices.Contains(owned, shard) {
					t.Error("it took the cluster over though nothing allows that the branch was rewritten")
				}
				w.repo.Commit("107\n\nFairlead-Allow-Rewrite: "+after, w.files("107"))
			}
			if got := w.value("eu-1"); got != "105" {
				t.Errorf("eu-1 was brought to %s", got)
			}
			if writes := b.taken(); len(writes) > 0 {
				t.Errorf("B wrote %v", writes)
			}

			b.away.Store(false)
			b.waitOwns(0, 1, 2, 3, 4, 5, 6, 7)
			if !test.rewritten {
				w.eventually("B has met eu-1", func() string {
					if s := b.loop.Status(); len(s) == 1 && s[0].Contacted && s[0].Pending == 0 {
						return ""
					}
					return fmt.Sprint(b.loop.Status())
				})
				if writes := b.taken(); len(writes) > 0 {
					t.Errorf("B wrote %v, which eu-1 had", writes)
				}
				w.repo.Commit("107", w.files("107"))
			}
			w.waitValue("eu-1", "107")
		})
	}
}

// TestClusterChangesShard: a commit takes eu-1 out of the shard of A, who cannot fetch, into that
// of B. B sends nothing before A has folded the commit, or whoever has the shard after A.
func TestClusterChangesShard(t *testing.T) {
	for _, test := range []struct {
		name    string
		removed bool // and added again with another annotation
		change  func(a *process)
	}{
		{"the former holder folds it", false, func(a *process) { a.away.Store(false) }},
		{"the former holder dies", false, func(a *process) { a.kill() }},
		{"its document is removed, and added again", true, func(a *process) { a.away.Store(false) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "eu-1")
			pods := []string{"fairlead-0", "fairlead-1"}
			shares := assigned(pods...)
			from, to := shares[pods[0]][0], shares[pods[1]][0]
			in := func(value string, shard int) map[string]string {
				files := w.files(value)
				files["clusters/eu-1.yaml"] = fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\n"+
					"metadata: {name: eu-1, annotations: {fairlead.dev/shard: \"%02d\"}}\nspec: {syncMode: Push}\n", shard)
				return files
			}
			w.repo.Commit("100", in("100", from))
			a, b := w.start(pods[0]), w.start(pods[1])
			a.waitOwns(shares[pods[0]]...)
			b.waitOwns(shares[pods[1]]...)
			w.waitValue("eu-1", "100")

			a.away.Store(true)
			moving := ""
			if test.removed {
				moving = w.repo.Commit("104", map[string]string{"clusters/eu-1.yaml": sourcetest.Delete})
			}
			moving = cmp.Or(moving, w.repo.Commit("105", in("105", to)))
			w.eventually("B waits for A", func() string {
				for _, line := range b.lines() {
					if strings.Contains(line, fmt.Sprintf("commit %.7s took it out of shard %02d", moving, from)) {
						return ""
					}
				}
				return "not yet"
			})
			w.repo.Commit("106", in("106", to))
			w.eventually("B has folded that, too", func() string {
				if !slices.ContainsFunc(b.lines(), func(s string) bool { return strings.Contains(s, w.repo.Head()[:7]) }) {
					return "not yet"
				}
				return ""
			})
			if writes := b.taken(); len(writes) > 0 {
				t.Errorf("B wrote %v", writes)
			}

			test.change(a)
			w.waitValue("eu-1", "106")
			w.repo.Commit("107", in("107", from))
			w.waitValue("eu-1", "107")
		})
	}
}

func (p *process) deletes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.deleted)
}

func (p *process) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.said)
}
