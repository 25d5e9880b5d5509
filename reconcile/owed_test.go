// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// smallFleet is web on three clusters.
func smallFleet() map[string]string {
	files := map[string]string{
		"web.yaml": configMap("web", "1"), "more.yaml": configMap("more", "1"),
		"policy.yaml": policyFor("ConfigMap", "web", "more"),
	}
	for _, name := range names {
		files["clusters/"+name+".yaml"] = failoverCluster(name, "")
	}
	return files
}

// silent has a world give up on a member soon.
func (w *world) silent(name string) {
	w.members[name].down()
	w.timeout = time.Second
}

func (w *world) back(name string) {
	w.members[name].up()
	w.timeout = time.Minute
}

// Fold rule 4: while the head is refused, members get what the last accepted
// commit still owes them, and nothing of the refused one.
func TestRefusedHeadStillOwes(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("one", smallFleet())
	w.settle()
	w.silent("us-1")
	w.repo.Commit("two", map[string]string{"web.yaml": configMap("web", "2")})
	if err := w.once(); !errors.Is(err, reconcile.ErrNotConverged) {
		t.Fatalf("a member that is away: %v", err)
	}
	w.back("us-1")
	w.repo.Commit("three, broken", map[string]string{"web.yaml": configMap("web", "3"), "broken.yaml": "broken: [\n"})
	if err := w.once(); !errors.Is(err, reconcile.ErrNotConverged) {
		t.Fatalf("a refused head: %v", err)
	}
	for _, name := range names {
		if v := value(w.get(name, configMaps, "default", "web"), "v"); v != "2" {
			t.Errorf("%s has %s, want 2", name, v)
		}
	}
}

// Fold rule 18: a delete and a create that reach a member together are an
// update there.
func TestWhatAMemberMissedIsNotReplayed(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("one", smallFleet())
	w.settle()
	uid := w.get("us-1", configMaps, "default", "web").GetUID()
	w.silent("us-1")
	for _, c := range []struct{ message, content string }{{"removed", sourcetest.Delete}, {"back", configMap("web", "2")}} {
		w.repo.Commit(c.message, map[string]string{"web.yaml": c.content})
		if err := w.once(); !errors.Is(err, reconcile.ErrNotConverged) {
			t.Fatalf("%s: %v", c.message, err)
		}
	}
	w.back("us-1")
	w.writes()
	w.settle()
	w.wantWrites("us-1 PATCH /api/v1/namespaces/default/configmaps/web")
	if o := w.get("us-1", configMaps, "default", "web"); o.GetUID() != uid || value(o, "v") != "2" {
		t.Errorf("us-1 has %s of %s, want the object of before with 2", value(o, "v"), o.GetUID())
	}
	if o := w.get("eu-1", configMaps, "default", "web"); o.GetUID() == w.get("us-1", configMaps, "default", "web").GetUID() || value(o, "v") != "2" {
		t.Errorf("eu-1 has %s", value(o, "v"))
	}
}

// Fold rule 19: an object bears the commit that changed its content last, and
// a commit that changes another one is no reason to write it.
func TestRevisionIsOfTheContent(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	first := w.repo.Commit("one", smallFleet())
	w.settle()
	w.writes()
	second := w.repo.Commit("more 2", map[string]string{"more.yaml": configMap("more", "2"), "README.md": "words"})
	w.settle()
	w.wantWrites("ap-1 PATCH /api/v1/namespaces/default/configmaps/more", "eu-1 PATCH /api/v1/namespaces/default/configmaps/more", "us-1 PATCH /api/v1/namespaces/default/configmaps/more")
	for name, want := range map[string]string{"web": first, "more": second} {
		if got := w.get("eu-1", configMaps, "default", name).GetAnnotations()[object.AnnotationRevision]; got != want {
			t.Errorf("%s bears %s, want %s", name, got, want)
		}
	}
}

// F17: when no member answers, the loop goes on folding, asks seldom, says one
// line for each and deletes nothing. When they are back they get the newest
// state, and only the deletes that git has.
func TestNoMemberAnswers(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("one", smallFleet())
	w.settle()
	for _, name := range names {
		w.members[name].down()
		w.members[name].reset()
	}
	w.said()
	opt := w.options()
	opt.Backoff = dispatch.Backoff{Base: 50 * time.Millisecond, Max: 200 * time.Millisecond}
	end := w.running(opt)
	defer end()
	for v := range 5 {
		w.repo.Commit("next", map[string]string{"web.yaml": configMap("web", string(rune('2'+v)))})
		time.Sleep(200 * time.Millisecond)
	}
	w.repo.Commit("less", map[string]string{"more.yaml": sourcetest.Delete})
	time.Sleep(300 * time.Millisecond)
	for _, name := range names {
		asked := w.members[name].taken()
		if len(asked) == 0 || len(asked) > 30 {
			t.Errorf("%s was asked %d times in a second and a half", name, len(asked))
		}
		for _, r := range asked {
			if strings.HasPrefix(r, http.MethodDelete) {
				t.Errorf("%s was sent %s while it did not answer", name, r)
			}
		}
	}
	said := w.said()
	for _, name := range names {
		if n := strings.Count(said, name+" does not answer: "); n == 0 || n > 8 {
			t.Errorf("%d lines about %s:\n%s", n, name, said)
		}
		w.members[name].up()
	}
	for _, name := range names {
		w.eventually(name+" has the newest", func() bool {
			return value(w.get(name, configMaps, "default", "web"), "v") == "6" && w.get(name, configMaps, "default", "more") == nil
		})
		for _, r := range w.members[name].taken() {
			if strings.HasPrefix(r, http.MethodDelete) && !strings.HasSuffix(r, "/more") {
				t.Errorf("%s was sent %s", name, r)
			}
		}
	}
}

// running runs a loop until end is called.
func (w *world) running(opt reconcile.Options) (end func()) {
	w.t.Helper()
	l, err := reconcile.Open(context.Background(), opt)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()
	return func() {
		stop()
		<-ended
		l.Close()
	}
}

// F44, T50: credentials that are rotated are taken up without a restart. Until
// then a member that refuses the old ones is asked seldom, and keeps no other
// waiting.
func TestRotatedCredentials(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("one", smallFleet())
	w.settle()
	var token, accepted atomic.Value
	token.Store("old")
	accepted.Store("old")
	opt := w.options()
	opt.Backoff = dispatch.Backoff{Base: 10 * time.Millisecond, Max: 300 * time.Millisecond}
	opt.Members = func(c *fleet.Cluster) (member.Member, error) {
		config := w.members[c.Name].counted()
		if c.Name == "us-1" {
			config = guarded(config, token.Load().(string), &accepted)
		}
		return push.New(config, push.Options{})
	}
	end := w.running(opt)
	defer end()
	accepted.Store("new")
	w.repo.Commit("two", map[string]string{"web.yaml": configMap("web", "2")})
	w.eventually("the others have it", func() bool {
		return value(w.get("ap-1", configMaps, "default", "web"), "v") == "2" && value(w.get("eu-1", configMaps, "default", "web"), "v") == "2"
	})
	time.Sleep(time.Second)
	if said := w.said(); strings.Count(said, "reach on us-1: injected; 1 object waits") != 1 {
		t.Errorf("it should be told once:\n%s", said)
	}
	token.Store("new")
	w.eventually("us-1 has it", func() bool { return value(w.get("us-1", configMaps, "default", "web"), "v") == "2" })
}

// guarded refuses every other token than the one that is accepted.
func guarded(config *rest.Config, token string, accepted *atomic.Value) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if token != accepted.Load() {
				return faultAnswer(r, "401"), nil
			}
			return next.RoundTrip(r)
		})
	})
	return config
}
