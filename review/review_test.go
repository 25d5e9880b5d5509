// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/forge"
	"github.com/fairlead/fairlead/look/history"
	"github.com/fairlead/fairlead/look/plan"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/review"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/testenv/fakeforge"
)

// token is that of the forge. No text may have it.
const token = "canary-5b21e9"

// A pull request is planned once, again after a push, again after its base has moved, and
// no more once it is closed; a comment of somebody else is left alone.
func TestLifeOfAPullRequest(t *testing.T) {
	for _, start := range []func(string) *fakeforge.Server{fakeforge.GitHub, fakeforge.GitLab, fakeforge.Gitea} {
		f := start(token)
		t.Run(f.Kind(), func(t *testing.T) {
			w := newWorld(t, f, nil)
			f.Say(7, fakeforge.User{ID: 5, Login: "mallory"}, "<!-- fairlead:plan:v1 -->\nI am the plan")
			w.open(7, fakeforge.Pull{}, "web", "2.0")
			w.look()
			w.has(7, "### Fleet plan: 2 now", "from what clusters reported")
			w.status(7, "success: 2 now")
			if got := f.Comments(7)[0].Body; got != "<!-- fairlead:plan:v1 -->\nI am the plan" || len(f.Comments(7)) != 2 {
				t.Errorf("the comment of somebody else is %q, of %d", got, len(f.Comments(7)))
			}

			f.Requests()
			w.look()
			if n := len(f.Requests()); n != 1 {
				t.Errorf("nothing has changed, and beside the list there were %d requests", n-1)
			}

			first := f.Pull(7).Head
			w.open(7, fakeforge.Pull{}, "web", "3.0")
			w.look()
			w.has(7, "Earlier plans of this pull request (1)", first[:7])

			// The same change lands on main by another way: what is left is nothing.
			w.release("3.0")
			w.look()
			w.has(7, "### Fleet plan: nothing changes")

			f.SetPull(7, fakeforge.Pull{Head: f.Pull(7).Head, Target: "main", Closed: true})
			w.release("4.0")
			f.Requests()
			w.look()
			if n := len(f.Requests()); n != 1 {
				t.Errorf("it is closed, and beside the list there were %d requests", n-1)
			}
			w.silent()
		})
	}
}

// A pull request from a fork is not fetched unless that is allowed; its status says so,
// and the mirror that the loop follows never has what it brought.
func TestForks(t *testing.T) {
	f := fakeforge.GitHub(token)
	w := newWorld(t, f, nil)
	w.open(7, fakeforge.Pull{Fork: true}, "web", "2.0")
	w.look()
	w.status(7, "failure: not planned: it comes from a fork")
	if n := len(f.Comments(7)); n > 0 {
		t.Errorf("it has %d comments", n)
	}
	w.writes()
	w.look()
	if n := w.writes(); n > 0 {
		t.Errorf("it is refused again with %d writes", n)
	}

	settings := w.settings
	settings.Forks = true
	w.reviewer.Set(settings)
	w.look()
	w.has(7, "### Fleet plan: 2 now")
	w.status(7, "success: 2 now")
	if err := w.mirror.Fetch(t.Context()); err != nil || w.mirror.Has(f.Pull(7).Head) {
		t.Errorf("the mirror has the commit of a fork: %v", err)
	}
	w.silent()
}

// While the forge is away nothing but a note is made of it, once; afterwards what was
// missed is made up for.
func TestForgeIsAway(t *testing.T) {
	f := fakeforge.Gitea(token)
	w := newWorld(t, f, nil)
	w.open(7, fakeforge.Pull{}, "web", "2.0")
	f.Fail(func(*http.Request) *fakeforge.Answer {
		return &fakeforge.Answer{Code: http.StatusForbidden, Body: `{"message": "` + token + ` may not"}`}
	})
	w.look()
	w.look()
	if len(w.notes) != 1 || w.notes[0].Err == nil || !strings.Contains(w.notes[0].Text, "403") {
		t.Errorf("the notes are %+v", w.notes)
	}

	f.Fail(nil)
	w.look()
	w.has(7, "### Fleet plan: 2 now")
	w.canary()
}

// Each fleet of a repository has a comment and a status of its own.
func TestTwoFleets(t *testing.T) {
	f := fakeforge.GitLab(token)
	one := newWorld(t, f, func(o *review.Options) { o.Scope = "one" })
	one.open(7, fakeforge.Pull{}, "web", "2.0")
	one.look()
	two := one.beside(func(o *review.Options) { o.Scope = "two" })
	two.look()
	one.writes()
	one.look()
	two.look()
	if n := one.writes(); n > 0 {
		t.Errorf("two fleets write %d times what has not changed", n)
	}

	var markers []string
	for _, c := range f.Comments(7) {
		first, _, _ := strings.Cut(c.Body, "\n")
		markers = append(markers, first)
	}
	if got := strings.Join(markers, " "); got != "<!-- fairlead:plan:v1 scope=one --> <!-- fairlead:plan:v1 scope=two -->" {
		t.Errorf("the comments are %s", got)
	}
	var names []string
	for _, s := range f.Statuses(f.Pull(7).Head) {
		names = append(names, s.Context)
	}
	if got := strings.Join(names, " "); got != "fairlead/plan/one fairlead/plan/two" {
		t.Errorf("the statuses are %s", got)
	}
}

// What cannot be planned has the reason in its status, holds up no other, and is not tried
// again before something changes: a conflict of histories, a defect, and a plan that
// takes too long.
func TestCannotBePlanned(t *testing.T) {
	f := fakeforge.GitHub(token)
	w := newWorld(t, f, func(o *review.Options) { o.Deadline = time.Minute })
	w.open(7, fakeforge.Pull{}, "web", "2.0")
	w.open(8, fakeforge.Pull{}, "web", "3.0")
	bad := f.Pull(7).Head
	undo := review.SetMake(func(s *history.States, q plan.Request) (*plan.Plan, error) {
		if q.Head == bad {
			panic("quotes the Secret " + token)
		}
		return plan.Make(s, q)
	})
	defer undo()
	w.look()
	w.status(7, "failure: cannot be planned: it has made fairlead fail: this is a defect")
	w.has(8, "### Fleet plan: 2 now")
	w.writes()
	w.look()
	if n := w.writes(); n > 0 {
		t.Errorf("nothing has changed, and there were %d writes", n)
	}
	w.canary()

	// Unrelated histories have no merge base.
	w.repo.Git("checkout", "-q", "--orphan", "stranger")
	head := w.repo.Commit("unrelated", nil)
	w.repo.Git("update-ref", "refs/pull/9/head", head)
	w.repo.Checkout("main")
	f.SetPull(9, fakeforge.Pull{Head: head, Target: "main"})
	w.look()
	w.status(9, "failure: cannot be planned: ")
}

// A pull request that is too large to be fetched holds up no other.
func TestTooLarge(t *testing.T) {
	f := fakeforge.Gitea(token)
	w := newWorld(t, f, nil)
	w.reviewer.SetMostBytes(4_000)
	noise := make([]byte, 8_000)
	rand.NewChaCha8([32]byte{}).Read(noise)
	w.repo.Git("checkout", "-q", "--detach", "main")
	head := w.repo.Commit("large", map[string]string{"large.bin": hex.EncodeToString(noise)})
	w.repo.Git("update-ref", "refs/pull/8/head", head)
	w.repo.Checkout("main")
	f.SetPull(8, fakeforge.Pull{Head: head, Target: "main"})
	w.open(7, fakeforge.Pull{}, "web", "2.0")
	w.look()
	w.has(7, "### Fleet plan: 2 now")
	w.status(8, "failure: cannot be planned: it brings more than 4000 bytes")
	w.silent()
}

// After a release a plan waits a while for what clusters are about to acknowledge.
func TestSettle(t *testing.T) {
	f := fakeforge.GitHub(token)
	w := newWorld(t, f, nil)
	w.open(7, fakeforge.Pull{}, "web", "2.0")
	s := w.state()
	observe := func(pending int) time.Duration {
		members := []reconcile.MemberStatus{{Cluster: "eu-1", Contacted: true, Pending: pending}}
		w.reviewer.Observe(&reconcile.Result{State: s, Head: s.Commit, Accepted: s.Accepted, Members: members}, review.Rollout{})
		return w.reviewer.Work(t.Context())
	}
	if wait := observe(1); wait > 10*time.Second || len(f.Comments(7)) > 0 {
		t.Errorf("it waits %s, with %d comments", wait, len(f.Comments(7)))
	}
	observe(0)
	w.has(7, "### Fleet plan: 2 now")
}

// A plan that outlives its deadline gives its turn back; until it has ended no other one is
// begun, and then they are.
func TestDeadline(t *testing.T) {
	f := fakeforge.GitHub(token)
	turns := 0
	w := newWorld(t, f, func(o *review.Options) {
		o.Deadline = time.Millisecond
		o.Turn = func(context.Context) (func(), error) {
			turns++
			return func() { turns-- }, nil
		}
	})
	release, begun := make(chan struct{}), make(chan struct{})
	undo := review.SetMake(func(*history.States, plan.Request) (*plan.Plan, error) {
		close(begun)
		<-release
		return &plan.Plan{}, nil
	})
	if _, err := w.reviewer.Plan(t.Context()); err == nil || err.Error() != "it takes longer than 1ms" {
		t.Fatalf("a plan that takes long: %v", err)
	}
	<-begun
	if turns != 0 {
		t.Errorf("%d turns are not given back", turns)
	}
	if _, err := w.reviewer.Plan(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "an earlier plan is not at its end") {
		t.Errorf("a plan beside one that has not ended: %v", err)
	}

	undo()
	close(release)
	w.reviewer.Await()
	defer review.SetMake(func(*history.States, plan.Request) (*plan.Plan, error) { return nil, errors.New("made") })()
	if _, err := w.reviewer.Plan(t.Context()); err == nil || strings.HasPrefix(err.Error(), "an earlier") {
		t.Errorf("a plan afterwards: %v", err)
	}
}

// A commit of the branch is shown from its beginning to its end: one write for each text,
// and none for one that was applied before; one that another commit has overtaken is
// superseded.
func TestRollout(t *testing.T) {
	f := fakeforge.GitHub(token)
	w := newWorld(t, f, nil)
	first := w.repo.Head()
	is := func(commit, want string) {
		t.Helper()
		var all []string
		for _, s := range f.Statuses(commit) {
			all = append(all, s.Context+" "+s.State+": "+s.Description)
		}
		if got := strings.Join(all, "\n"); got != want {
			t.Errorf("the statuses of %s are\n%s\nwant\n%s", commit[:7], got, want)
		}
	}

	w.rollout = review.Rollout{Commit: first, State: forge.StatePending, Text: "applying: on 0 of 2 clusters"}
	w.look()
	w.look()
	second := w.release("2.0")
	w.rollout = review.Rollout{Commit: second, State: forge.StatePending, Text: "applying: on 1 of 2 clusters"}
	w.look()
	is(first, "fairlead/acme pending: applying: on 0 of 2 clusters\nfairlead/acme success: superseded by "+second[:7])
	w.rollout = review.Rollout{Commit: second, State: forge.StateSuccess, Text: "applied on 2 of 2 clusters"}
	w.look()
	w.rollout = review.Rollout{Commit: second, State: forge.StatePending, Text: "applying: on 1 of 2 clusters"}
	w.look() // drift is no news of the commit
	is(second, "fairlead/acme pending: applying: on 1 of 2 clusters\nfairlead/acme success: applied on 2 of 2 clusters")

	third := w.release("3.0")
	w.rollout = review.Rollout{Commit: third, State: forge.StateFailure, Text: "refused: policies/web.yaml:12: " + strings.Repeat("long ", 100)}
	w.look()
	if all := f.Statuses(third); len(all) != 1 || len(all[0].Description) > 140 || all[0].State != "failure" {
		t.Errorf("the refusal is shown as %+v", all)
	}

	// Another process begins: what has succeeded stays so.
	w.rollout = review.Rollout{Commit: second, State: forge.StatePending, Text: "applying: on 0 of 2 clusters"}
	again := w.beside(nil)
	again.rollout = w.rollout
	again.look()
	if n := len(f.Statuses(second)); n != 2 {
		t.Errorf("an applied commit has %d statuses after a restart", n)
	}
	w.silent()
}

// A cluster that has not acknowledged what was released to it is planned from what it runs.
func TestPositions(t *testing.T) {
	f := fakeforge.GitHub(token)
	w := newWorld(t, f, nil)
	w.acknowledge()
	w.look()
	w.release("2.0")
	w.acknowledge("us-1") // eu-1 stays behind
	w.open(7, fakeforge.Pull{}, "web", "3.0")
	w.look()
	w.has(7, "position-differs", "eu-1")

	w.acknowledge()
	w.look()
	if body := w.body(7); strings.Contains(body, "position-differs") {
		t.Errorf("it runs what was released, and the plan says\n%s", body)
	}
}

// A branch that moves all the time has what was pushed to planned at once, and the others
// now and then: a forge limits the requests of an hour.
func TestBusyBranch(t *testing.T) {
	f := fakeforge.GitHub(token)
	w := newWorld(t, f, nil)
	defer review.SetApart(time.Minute)()
	w.open(7, fakeforge.Pull{}, "web", "3.0")
	w.open(8, fakeforge.Pull{}, "web", "3.0")
	w.look()
	second := w.release("2.0")
	w.look()
	w.has(7, second[:7])
	third := w.release("2.1")
	w.open(8, fakeforge.Pull{}, "web", "4.0")
	w.writes()
	w.look()
	w.has(8, third[:7])
	if body := w.body(7); strings.Contains(body, third[:7]) {
		t.Errorf("it is planned again at once:\n%s", body)
	}
	if wait := w.reviewer.Work(t.Context()); wait > 2*time.Minute || wait < time.Minute {
		t.Errorf("it is planned again in %s", wait)
	}
}

// Of very many pull requests those that were updated last are planned.
func TestManyPullRequests(t *testing.T) {
	f := fakeforge.GitHub(token)
	w := newWorld(t, f, nil)
	w.reviewer.SetMost(2)
	for n := range int64(3) {
		w.open(n+1, fakeforge.Pull{Updated: time.Unix(1_700_000_000+n, 0)}, "web", "2.0")
	}
	w.look()
	if len(f.Comments(1)) != 0 || len(f.Comments(2)) != 1 || len(f.Comments(3)) != 1 {
		t.Errorf("comments: %d, %d, %d", len(f.Comments(1)), len(f.Comments(2)), len(f.Comments(3)))
	}
	if len(w.notes) == 0 || !strings.Contains(w.notes[0].Text, "more than 2 pull requests are open") {
		t.Errorf("the notes are %+v", w.notes)
	}
}

// world is a repository on a git server, a mirror of it, and a loop that has folded it.
type world struct {
	t        *testing.T
	repo     *sourcetest.Repo
	mirror   *source.Repo
	states   *history.States
	forge    *fakeforge.Server
	settings review.Settings
	reviewer *review.Reviewer
	rollout  review.Rollout
	digests  map[string]map[object.ID]object.Digest
	notes    []review.Note
}

const fleet = `-- clusters/eu-1.yaml --
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {syncMode: Push}
-- clusters/us-1.yaml --
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: us-1}
spec: {syncMode: Push}
-- policy.yaml --
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {clusterNames: [eu-1, us-1]}}
`

func template(name, version string) map[string]string {
	return map[string]string{name + ".yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata: {version: \"" + version + "\"}\n"}
}

func newWorld(t *testing.T, f *fakeforge.Server, change func(*review.Options)) *world {
	t.Helper()
	t.Cleanup(f.Close)
	t.Cleanup(review.SetApart(0))
	w := &world{t: t, repo: sourcetest.Txtar(t, fleet), forge: f, digests: map[string]map[object.ID]object.Digest{}}
	w.repo.Commit("web", template("web", "1.0"))
	f.SetBranch("main", w.repo.Head())
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(w.repo.Git("--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + w.repo.Dir, "GIT_HTTP_EXPORT_ALL=1"},
	})
	t.Cleanup(server.Close)
	var err error
	w.mirror, err = source.Clone(t.Context(), filepath.Join(t.TempDir(), "mirror"), server.URL+"/.git", source.Auth{})
	must(t, err)
	w.states = &history.States{Repo: w.mirror, History: history.New(w.mirror, ".")}
	w.settings = review.Settings{Target: forge.Target{Kind: f.Kind(), URL: f.URL, Repo: fakeforge.Repo}, Token: token, Interval: time.Hour}
	w.reviewer = w.start(change)
	return w
}

func (w *world) start(change func(*review.Options)) *review.Reviewer {
	opt := review.Options{
		Settings: w.settings, Fleet: "acme", Branch: "main", Path: ".", Dir: filepath.Join(w.t.TempDir(), "pulls"), Loop: w,
		Turn: func(context.Context) (func(), error) { return func() {}, nil }, Report: func(n review.Note) { w.notes = append(w.notes, n) },
	}
	if change != nil {
		change(&opt)
	}
	return review.New(opt)
}

// beside is another reviewer of the same repository.
func (w *world) beside(change func(*review.Options)) *world {
	other := *w
	other.reviewer = other.start(change)
	return &other
}

// Repo and Acknowledged are what a loop is asked.
func (w *world) Repo() *source.Repo { return w.mirror }

func (w *world) Acknowledged(cluster string) map[object.ID]object.Digest { return w.digests[cluster] }

// state is what the loop has folded after a fetch.
func (w *world) state() propagate.State {
	w.t.Helper()
	must(w.t, w.mirror.Fetch(w.t.Context()))
	head, err := w.mirror.Resolve("main")
	must(w.t, err)
	s, err := w.states.At(head)
	must(w.t, err)
	return s
}

// look has the reviewer told what the loop has, and do what is due after a webhook.
func (w *world) look() {
	w.t.Helper()
	s := w.state()
	w.reviewer.Observe(&reconcile.Result{State: s, Head: s.Commit, Accepted: s.Accepted}, w.rollout)
	w.reviewer.LookNow()
	w.reviewer.Work(w.t.Context())
}

// acknowledge has clusters acknowledge what was released to them: some, or without a name all.
func (w *world) acknowledge(some ...string) {
	s := w.state()
	for b := range s.Bindings.Values() {
		for _, work := range b.Works {
			if len(some) > 0 && !strings.Contains(strings.Join(some, " "), work.Cluster) {
				continue
			}
			if w.digests[work.Cluster] == nil {
				w.digests[work.Cluster] = map[object.ID]object.Digest{}
			}
			w.digests[work.Cluster][b.ID] = work.Released.Digest
		}
	}
}

// release commits another version of web to main.
func (w *world) release(version string) string {
	head := w.repo.Commit("release "+version, template("web", version))
	w.forge.SetBranch("main", head)
	return head
}

// open opens a pull request with another version of something, or pushes to it.
func (w *world) open(number int64, p fakeforge.Pull, name, version string) {
	ref := map[string]string{"gitlab": "refs/merge-requests/%/head"}[w.forge.Kind()]
	if ref == "" {
		ref = "refs/pull/%/head"
	}
	w.repo.Git("checkout", "-q", "--detach", "main")
	p.Head = w.repo.Commit("change "+version, template(name, version))
	w.repo.Git("update-ref", strings.ReplaceAll(ref, "%", string('0'+rune(number))), p.Head)
	w.repo.Checkout("main")
	p.Target = "main"
	w.forge.SetPull(number, p)
}

// body is our comment on a pull request.
func (w *world) body(number int64) string {
	w.t.Helper()
	for _, c := range w.forge.Comments(number) {
		if c.Author == fakeforge.Bot {
			return c.Body
		}
	}
	w.t.Fatalf("there is no comment on %d; the notes are %+v", number, w.notes)
	return ""
}

func (w *world) has(number int64, parts ...string) {
	w.t.Helper()
	for _, part := range parts {
		if body := w.body(number); !strings.Contains(body, part) {
			w.t.Fatalf("there is no %q in\n%s\nthe notes are %+v", part, body, w.notes)
		}
	}
}

// status is that of a pull request's head.
func (w *world) status(number int64, prefix string) {
	w.t.Helper()
	all := w.forge.Statuses(w.forge.Pull(number).Head)
	if len(all) == 0 {
		w.t.Fatalf("%d has no status; the notes are %+v", number, w.notes)
	}
	last := all[len(all)-1]
	if got := last.State + ": " + last.Description; !strings.HasPrefix(got, prefix) {
		w.t.Errorf("the status of %d is %q, want %q", number, got, prefix)
	}
}

// writes counts the requests that wrote since the last call.
func (w *world) writes() (n int) {
	for _, r := range w.forge.Requests() {
		if r.Method != http.MethodGet && r.Path != "/api/graphql" {
			n++
		}
	}
	return n
}

// silent says that nothing has failed.
func (w *world) silent() {
	w.t.Helper()
	for _, n := range w.notes {
		if n.Err != nil {
			w.t.Errorf("it has failed: %v", n.Err)
		}
	}
	w.canary()
}

// canary says that no text has the token.
func (w *world) canary() {
	w.t.Helper()
	var all []string
	for _, n := range w.notes {
		all = append(all, n.Text)
	}
	for number := range int64(10) {
		for _, c := range w.forge.Comments(number) {
			all = append(all, c.Body)
		}
		for _, s := range w.forge.Statuses(w.forge.Pull(number).Head) {
			all = append(all, s.Description)
		}
	}
	if text := strings.Join(all, "\n"); strings.Contains(text, token) {
		w.t.Errorf("the token is in\n%s", text)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
