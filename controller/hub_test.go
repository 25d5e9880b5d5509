// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/examples"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// namespace is where the Fleets of the tests are.
const namespace = "team"

// password is what the git server asks for.
const password = "sesame-1234"

// hub is a real API server with the CRD, a git server, and embedded members.
type hub struct {
	t       testing.TB
	server  *kubetest.Server
	client  client.WithWatch
	repo    *sourcetest.Repo
	git     *gitServer
	members map[string]*embedded.Server
	storage string
}

// newHub starts a hub with a fleet of the quickstart, and the Secrets of a Fleet.
func newHub(t testing.TB) *hub {
	t.Helper()
	h := &hub{t: t, server: kubetest.Start(t, 1)[0], repo: sourcetest.New(t), members: map[string]*embedded.Server{}, storage: t.TempDir()}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		h.must(add(scheme))
	}
	var err error
	h.client, err = client.NewWithWatch(h.server.Config(), client.Options{Scheme: scheme})
	h.must(err)
	h.installCRD("../config/crd/bases/fairlead.dev_fleets.yaml")
	h.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})

	for _, name := range []string{"ap-1", "eu-1", "us-1"} {
		s, err := embedded.Start(embedded.Options{Name: name})
		h.must(err)
		t.Cleanup(s.Close)
		h.members[name] = s
	}
	h.commit("begin", quickstart(t))
	h.git = serveGit(t, h.repo)
	h.secret("git", map[string]string{"username": "ada", "password": password})
	h.secret("members", map[string]string{"value": h.kubeconfig()})
	return h
}

// installCRD applies a CustomResourceDefinition and waits until it is served.
func (h *hub) installCRD(file string) {
	h.t.Helper()
	b, err := os.ReadFile(file)
	h.must(err)
	u := &unstructured.Unstructured{}
	h.must(yaml.Unmarshal(b, &u.Object))
	h.must(h.client.Patch(context.Background(), u, client.Apply, client.FieldOwner("test"), client.ForceOwnership)) //nolint:staticcheck // it is unstructured
	h.eventually("the CRD is served", func() string {
		var crd apiextensionsv1.CustomResourceDefinition
		h.must(h.client.Get(context.Background(), client.ObjectKeyFromObject(u), &crd))
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return ""
			}
		}
		return fmt.Sprint(crd.Status.Conditions)
	})
}

// run runs a controller until the test ends, or stop is called.
func (h *hub) run(change ...func(*controller.Options)) (stop func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := h.startWith(ctx, change...)
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Errorf("the controller ended: %v", err)
		}
	})
	h.t.Cleanup(stop)
	return stop
}

// start runs a controller until it ends by itself.
func (h *hub) start(change ...func(*controller.Options)) <-chan error {
	h.t.Helper()
	return h.startWith(context.Background(), change...)
}

func (h *hub) startWith(ctx context.Context, change ...func(*controller.Options)) <-chan error {
	opt := controllerOptions(testr.NewWithInterface(quiet{h.t}, testr.Options{}))
	opt.StoragePath = h.storage
	for _, c := range change {
		c(&opt)
	}
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, h.server.Config(), opt) }()
	return ended
}

// controllerOptions are those of every controller of the tests.
func controllerOptions(log logr.Logger) controller.Options {
	opt := controller.Options{Namespace: namespace, Concurrent: 4, Log: log}
	opt.Watch.AllNamespaces = true
	opt.Allow = push.Allow{TLS: true, Internal: true}
	opt.Client.QPS, opt.Client.Burst = 50, 300
	opt.RateLimiter.MinRetryDelay, opt.RateLimiter.MaxRetryDelay = 50*time.Millisecond, time.Second
	return opt
}

// quiet keeps the log of a controller for tests that fail.
type quiet struct{ testing.TB }

func (quiet) Helper() {}

// fleet is a Fleet of the repository.
func (h *hub) fleet(name string, change ...func(*v1alpha1.Fleet)) *v1alpha1.Fleet {
	f := &v1alpha1.Fleet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	f.Spec.Interval = &metav1.Duration{Duration: 200 * time.Millisecond}
	f.Spec.Git = &v1alpha1.GitSource{URL: h.git.url(), SecretRef: &meta.LocalObjectReference{Name: "git"}}
	f.Spec.Members.KubeConfig = &v1alpha1.KubeConfigSpec{SecretRef: meta.SecretKeyReference{Name: "members"}}
	for _, c := range change {
		c(f)
	}
	return f
}

func (h *hub) create(o client.Object) {
	h.t.Helper()
	h.must(h.client.Create(context.Background(), o))
}

// edit changes an object that is there.
func edit[T client.Object](h *hub, o T, change func(T)) {
	h.t.Helper()
	h.must(h.client.Get(context.Background(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	change(o)
	h.must(h.client.Patch(context.Background(), o, client.MergeFrom(before)))
}

// secret creates or replaces a Secret.
func (h *hub) secret(name string, data map[string]string) {
	h.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
	if err := h.client.Create(context.Background(), s); err != nil {
		s.ResourceVersion = ""
		h.must(h.client.Update(context.Background(), s))
	}
}

// kubeconfig has a context for each member.
func (h *hub) kubeconfig() string {
	h.t.Helper()
	all := api.NewConfig()
	for name, s := range h.members {
		all.Clusters[name] = &api.Cluster{Server: s.URL()}
		all.AuthInfos[name] = &api.AuthInfo{Token: "token-of-" + name}
		all.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	}
	b, err := clientcmd.Write(*all)
	h.must(err)
	return string(b)
}

func (h *hub) commit(message string, files map[string]string) string {
	return h.repo.Commit(message, files)
}

// release commits another tag of web.
func (h *hub) release(tag string) {
	file := "apps/web/kustomization.yaml"
	h.commit(tag, map[string]string{file: strings.ReplaceAll(quickstart(h.t)[file], `"1.0"`, `"`+tag+`"`)})
}

// get reads a Fleet.
func (h *hub) get(name string) *v1alpha1.Fleet {
	h.t.Helper()
	var f v1alpha1.Fleet
	h.must(h.client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, &f))
	return &f
}

// freeAddress is one that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// status reads the status of a Fleet as a text.
func (h *hub) status(name string) string {
	h.t.Helper()
	return statusText(h.get(name))
}

// waitFor waits until the status of a Fleet has a text.
func (h *hub) waitFor(name, text string) {
	h.t.Helper()
	h.eventually("Fleet "+name+" says "+text, func() string {
		if got := h.status(name); !strings.Contains(got, text) {
			return got + "."
		}
		return ""
	})
}

// eventually waits until check returns nothing.
func (h *hub) eventually(what string, check func() string) {
	h.t.Helper()
	got := ""
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got = check(); got == "" {
			return
		}
	}
	h.t.Fatalf("not within 30s: %s; it is:\n%s", what, got)
}

func (h *hub) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// image is the tag that web has on a member, "" without it.
func (h *hub) image(member string) string {
	h.t.Helper()
	objects, err := push.Live(context.Background(), h.members[member].Config(), schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "shop")
	h.must(err)
	for _, o := range objects {
		if o["metadata"].(map[string]any)["name"] != "web" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(o, "spec", "template", "spec", "containers")
		image, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image")
		return image[strings.LastIndex(image, ":")+1:]
	}
	return ""
}

// events lists the events of a Fleet, as "Reason: message".
func (h *hub) events(name string) string {
	h.t.Helper()
	var list corev1.EventList
	h.must(h.client.List(context.Background(), &list, client.InNamespace(namespace)))
	var lines []string
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "Fleet" && e.InvolvedObject.Name == name {
			lines = append(lines, fmt.Sprintf("%s %s: %s (%s)", e.Type, e.Reason, e.Message, e.Annotations["fairlead.dev/revision"]))
		}
	}
	return strings.Join(lines, "\n")
}

// quickstart is the example fleet, for a test to edit.
func quickstart(t testing.TB) map[string]string {
	t.Helper()
	return sourcetest.FilesOf(t, examples.Quickstart())
}

// gitServer serves a repository over HTTP to whoever has the password.
type gitServer struct {
	*httptest.Server

	mu       sync.Mutex
	password string
	away     bool
	asked    int
}

func serveGit(t testing.TB, repo *sourcetest.Repo) *gitServer {
	t.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(repo.Git("--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + repo.Dir, "GIT_HTTP_EXPORT_ALL=1"},
	}
	g := &gitServer{password: password}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		_, given, _ := r.BasicAuth()
		ok, away := given == g.password, g.away
		g.asked++
		g.mu.Unlock()
		switch {
		case away:
			http.Error(w, "maintenance", http.StatusServiceUnavailable)
		case !ok:
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you?", http.StatusUnauthorized)
		default:
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gitServer) url() string { return g.URL + "/.git" }

// set changes the password, and whether the server is away.
func (g *gitServer) set(password string, away bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.password, g.away = password, away
}

// looks returns how many requests there were.
func (g *gitServer) looks() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}
