// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/examples"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// world is a fleet repository, its members, and a loop between them.
type world struct {
	t       *testing.T
	repo    *sourcetest.Repo
	members map[string]*testMember
	state   string // directory of the checkpoint
	timeout time.Duration

	mu    sync.Mutex
	lines []string
}

// testMember is a cluster that can be taken down and brought back.
type testMember struct {
	name     string
	config   *rest.Config
	down, up func()
	seen     func() []string // every request that an embedded member was sent, by anyone

	mu       sync.Mutex
	requests []string
}

var names = []string{"ap-1", "eu-1", "us-1"}

func newWorld(t *testing.T, members map[string]*testMember) *world {
	t.Helper()
	w := &world{t: t, repo: sourcetest.New(t), members: members, state: t.TempDir(), timeout: time.Minute}
	for _, m := range members {
		m.reset()
	}
	return w
}

func embeddedMembers(t testing.TB) map[string]*testMember {
	t.Helper()
	members := map[string]*testMember{}
	for _, name := range names {
		s, err := embedded.Start(embedded.Options{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		members[name] = &testMember{name: name, config: s.Config(), down: func() { s.Partition(true) }, up: func() { s.Partition(false) }, seen: func() []string {
			var all []string
			for _, r := range s.Requests() {
				all = append(all, r.Method+" "+r.Path)
			}
			return all
		}}
	}
	return members
}

func realMembers(t testing.TB) map[string]*testMember {
	t.Helper()
	members := map[string]*testMember{}
	for i, s := range kubetest.Start(t, len(names)) {
		members[names[i]] = &testMember{name: names[i], config: s.Config(), down: func() { s.Stop(t) }, up: func() { s.Restart(t) }}
	}
	return members
}

// quickstart is the example fleet, for a test to edit.
func quickstart(t testing.TB) map[string]string {
	t.Helper()
	return sourcetest.FilesOf(t, examples.Quickstart())
}

// open opens a loop on the world's checkpoint.
func (w *world) open() *reconcile.Loop {
	w.t.Helper()
	l, err := reconcile.Open(context.Background(), w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) options() reconcile.Options {
	return reconcile.Options{
		Repo: w.repo.Dir, Ref: "main", Path: ".", StateDir: w.state, Interval: 50 * time.Millisecond, Timeout: w.timeout,
		Members: func(c *fleet.Cluster) (member.Member, error) {
			m := w.members[c.Name]
			if m == nil {
				return nil, fmt.Errorf("no context %q", c.Name)
			}
			return push.New(m.counted(), push.Options{})
		},
		Report: func(e reconcile.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lines = append(w.lines, e.String())
		},
	}
}

// once is `run --once`: a process of its own, as it were.
func (w *world) once() error {
	w.t.Helper()
	l := w.open()
	err := l.Once(context.Background())
	if closeErr := l.Close(); closeErr != nil {
		w.t.Fatal(closeErr)
	}
	return err
}

// settle runs once and expects that nothing is left.
func (w *world) settle() {
	w.t.Helper()
	if err := w.once(); err != nil {
		w.t.Fatalf("%v\n%s", err, w.said())
	}
}

// said is what was reported since the last call.
func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.lines, "\n")
	w.lines = nil
	return text
}

// writes are the requests that changed something, on all members, since the
// last call.
func (w *world) writes() []string {
	var all []string
	for _, name := range names {
		for _, r := range w.members[name].taken() {
			if !strings.HasPrefix(r, "GET ") {
				all = append(all, name+" "+r)
			}
		}
	}
	slices.Sort(all)
	return all
}

func (m *testMember) counted() *rest.Config {
	config := rest.CopyConfig(m.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			m.mu.Lock()
			m.requests = append(m.requests, r.Method+" "+r.URL.Path)
			m.mu.Unlock()
			return next.RoundTrip(r)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (m *testMember) taken() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.requests
	m.requests = nil
	return taken
}

func (m *testMember) reset() { m.taken() }

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// get reads an object of a member, nil when it is not there.
func (w *world) get(cluster string, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	w.t.Helper()
	objects, err := push.Live(context.Background(), w.members[cluster].config, resource, namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range objects {
		if u := (&unstructured.Unstructured{Object: o}); u.GetName() == name {
			return u
		}
	}
	return nil
}

// image is the tag that a cluster's web runs, "" when there is none.
func (w *world) image(cluster string) string {
	w.t.Helper()
	web := w.get(cluster, deployments, "shop", "web")
	if web == nil {
		return ""
	}
	containers, _, _ := unstructured.NestedSlice(web.Object, "spec", "template", "spec", "containers")
	image, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image")
	return image[strings.LastIndex(image, ":")+1:]
}

// images is what all clusters run, "ap-1=1.0 eu-1=2.0 us-1=1.0".
func (w *world) images() string {
	w.t.Helper()
	var all []string
	for _, name := range names {
		all = append(all, name+"="+w.image(name))
	}
	return strings.Join(all, " ")
}

func (w *world) wantImages(want string) {
	w.t.Helper()
	if got := w.images(); got != want {
		w.t.Fatalf("members run %s, want %s\n%s", got, want, w.said())
	}
}

func (w *world) wantWrites(want ...string) {
	w.t.Helper()
	if got := w.writes(); !slices.Equal(got, want) {
		w.t.Errorf("writes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
