// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// deploy is a bare repository that is published to, and what goes there.
type deploy struct {
	git  *sourcetest.Repo
	t    *testing.T
	bare string
	*counting
}

// counting counts what is asked of a repository, and lets a test in between.
type counting struct {
	pull.Branches

	mu     sync.Mutex
	asked  map[string]int // by "head", "files", "commit"
	before func(what, branch string) error
}

func (c *counting) note(what, branch string) error {
	c.mu.Lock()
	c.asked[what]++
	before := c.before
	c.mu.Unlock()
	if before != nil {
		return before(what, branch)
	}
	return nil
}

// took is what was asked since the last time.
func (c *counting) took() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf("%d heads, %d commits", c.asked["head"], c.asked["commit"])
	clear(c.asked)
	return text
}

func (c *counting) interfere(before func(what, branch string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = before
}

func (c *counting) Head(ctx context.Context, branch string) (string, error) {
	if err := c.note("head", branch); err != nil {
		return "", err
	}
	return c.Branches.Head(ctx, branch)
}

func (c *counting) Commit(ctx context.Context, commit pull.BranchCommit) (string, error) {
	if err := c.note("commit", commit.Branch); err != nil {
		return "", err
	}
	return c.Branches.Commit(ctx, commit)
}

func newDeploy(t *testing.T) *deploy {
	t.Helper()
	d := &deploy{git: sourcetest.New(t), t: t, bare: filepath.Join(t.TempDir(), "deploy.git")}
	d.git.Git("init", "-q", "--bare", "-b", "main", d.bare)
	d.to("file://"+d.bare, source.Auth{})
	return d
}

func (d *deploy) to(address string, auth source.Auth) {
	d.t.Helper()
	to, err := source.OpenBranches(address, auth)
	if err != nil {
		d.t.Fatal(err)
	}
	d.counting = &counting{Branches: reconcile.Publish(to), asked: map[string]int{}}
}

func (d *deploy) in(args ...string) string {
	d.t.Helper()
	return d.git.GitIn(d.bare, "", args...)
}

func (d *deploy) member(cluster string) member.Member {
	return pull.Branch(d, "fairlead/"+cluster)
}

// show is a file of a cluster, "" when it is not there.
func (d *deploy) show(cluster, path string) string {
	cmd := exec.Command("git", "show", "fairlead/"+cluster+":"+path)
	cmd.Dir = d.bare
	out, _ := cmd.Output()
	return string(out)
}

func (d *deploy) files(cluster string) map[string]string {
	contents := map[string]string{}
	if d.in("for-each-ref", "refs/heads/fairlead/"+cluster) == "" {
		return contents
	}
	for _, path := range strings.Fields(d.in("ls-tree", "-r", "--name-only", "fairlead/"+cluster)) {
		contents[path] = d.show(cluster, path)
	}
	return contents
}

func (d *deploy) commits(cluster string) int {
	n, err := strconv.Atoi(d.in("rev-list", "--count", "fairlead/"+cluster))
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

// theirs is somebody else pushing to a branch.
func (d *deploy) theirs(cluster string, files map[string]string) {
	if d.in("for-each-ref", "refs/heads/fairlead/"+cluster) == "" {
		d.git.Git("checkout", "-q", "--orphan", "theirs-"+cluster)
	} else {
		d.git.Git("fetch", "-q", d.bare, "fairlead/"+cluster)
		d.git.Git("checkout", "-q", "--detach", "FETCH_HEAD")
	}
	d.git.Commit("theirs", files)
	d.git.Git("push", "-q", d.bare, "HEAD:refs/heads/fairlead/"+cluster)
}

// The stories of a member that is files, on the branch of a real repository.
func TestBranchFiles(t *testing.T) {
	dispatchtest.RunFiles(t, func(t *testing.T) dispatchtest.Files {
		d := newDeploy(t)
		return dispatchtest.Files{
			Open:   func() member.Member { return d.member("eu-1") },
			Read:   func() map[string]string { return d.files("eu-1") },
			Put:    func(path, content string) { d.theirs("eu-1", map[string]string{path: content}) },
			Writes: func() int { return len(strings.Fields(d.in("rev-list", "--all"))) },
		}
	})
}

// level is what some clusters should run, as of a commit.
type levelOf map[string][]dispatchtest.Work

func (w levelOf) of(commit, subject string) *dispatchtest.Level {
	fleet := dispatchtest.Fleet(dispatchtest.Works(w))
	fleet.Of = member.Source{Commit: strings.Repeat(commit, 40)[:40], Subject: subject, When: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	return fleet
}

func note(name, v string) dispatchtest.Work {
	return dispatchtest.Work{Verb: dispatch.Apply, Object: dispatchtest.Object("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: shop}, data: {v: " + v + "}}")}
}

// publishing is a dispatcher on the branches of a repository.
type publishing struct {
	*deploy
	d         *dispatch.Dispatcher
	inventory *dispatchtest.Inventory
	events    []dispatch.Event
	mu        sync.Mutex
}

func newPublishing(t *testing.T, clusters ...string) *publishing {
	t.Helper()
	p := &publishing{deploy: newDeploy(t), inventory: &dispatchtest.Inventory{}}
	p.begin(clusters...)
	return p
}

// begin is a process that begins.
func (p *publishing) begin(clusters ...string) {
	p.d = dispatch.New(p.inventory, dispatch.Options{
		Backoff: dispatch.Backoff{Base: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		Log: func(e dispatch.Event) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.events = append(p.events, e)
		},
	})
	for _, c := range clusters {
		p.d.SetMember(c, p.member(c))
	}
	d := p.d
	p.t.Cleanup(func() { _ = d.Close(context.Background()) })
}

func (p *publishing) sync(fleet *dispatchtest.Level, opt dispatch.SyncOptions) []dispatch.Outcome {
	p.t.Helper()
	if err := p.d.Sync(fleet, fleet.Changed(), opt); err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return p.d.Wait(ctx)
}

func (p *publishing) must(fleet *dispatchtest.Level) {
	p.t.Helper()
	for _, o := range p.sync(fleet, dispatch.SyncOptions{}) {
		p.t.Fatalf("left: %v", o.Err)
	}
}

func (p *publishing) told(op string) (notes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if string(e.Op) == op {
			notes = append(notes, e.Cluster+": "+e.Note)
		}
	}
	return notes
}

// What one Sync changes on a cluster is one commit, that says what it is of;
// the other cluster's branch is left alone, and so is who looks after it.
func TestOneCommitForEachStepAndCluster(t *testing.T) {
	p := newPublishing(t, "eu-1", "us-1")
	crd := dispatchtest.Work{Verb: dispatch.Apply, Object: dispatchtest.Object("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}}")}
	both := []dispatchtest.Work{note("a", "red"), note("b", "red"), note("c", "red"), crd}
	p.must(levelOf{"eu-1": both, "us-1": both}.of("1", "first release"))
	if got, want := p.took(), "2 heads, 2 commits"; got != want {
		t.Errorf("it took %s, want %s", got, want)
	}
	p.must(levelOf{"eu-1": {note("a", "blue"), note("b", "blue"), {Verb: dispatch.Delete, Object: note("c", "red").Object}, note("d", "blue"), crd}, "us-1": both}.of("2", "second"))
	if got, want := p.took(), "0 heads, 1 commits"; got != want {
		t.Errorf("it took %s, want %s", got, want)
	}
	if eu, us := p.commits("eu-1"), p.commits("us-1"); eu != 2 || us != 1 {
		t.Errorf("%d and %d commits", eu, us)
	}
	want := "fairlead <noreply@fairlead.dev> 2026-03-01 00:00:00 +0000\nfleet 2222222: second\n\nFairlead-Source: 2222222222222222222222222222222222222222"
	if got := p.in("log", "-1", "--format=%cn <%ce> %ci%n%B", "fairlead/eu-1"); got != want {
		t.Errorf("the commit is\n%s\nwant\n%s", got, want)
	}
	if got := p.in("diff", "--no-renames", "--name-status", "fairlead/eu-1~1", "fairlead/eu-1"); got != "M\tshop/configmap_a.yaml\nM\tshop/configmap_b.yaml\nD\tshop/configmap_c.yaml\nA\tshop/configmap_d.yaml" {
		t.Errorf("it changes\n%s", got)
	}
	if got := p.told("publish"); len(got) != 3 || !strings.HasPrefix(got[2], "eu-1: commit "+p.in("rev-parse", "--short=8", "fairlead/eu-1")+" on branch fairlead/eu-1 of file://") {
		t.Errorf("told %q", got)
	}
	p.in("fsck", "--strict")
}

// Nothing is acknowledged before it is pushed.
func TestAcknowledgedByThePush(t *testing.T) {
	p := newPublishing(t, "eu-1")
	pushing, go1 := make(chan struct{}), make(chan struct{})
	p.interfere(func(what, _ string) error {
		if what == "commit" {
			close(pushing)
			<-go1
		}
		return nil
	})
	fleet := levelOf{"eu-1": {note("a", "red")}}.of("1", "")
	if err := p.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	<-pushing
	id := dispatchtest.ID(note("a", "red").Object)
	if p.d.Acknowledged("eu-1", id) || p.inventory.Entries("eu-1")[id].UID != "" || len(p.told("apply")) != 0 {
		t.Error("it is acknowledged, and not pushed")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if left := p.d.Wait(ctx); len(left) != 1 || left[0].ID != id {
		t.Errorf("left: %v", left)
	}
	// A newer level does not wait for the push that is under way, and is the
	// next commit.
	p.interfere(nil)
	newer := levelOf{"eu-1": {note("a", "blue"), note("b", "blue")}}.of("2", "")
	if err := p.d.Sync(newer, newer.Changed(), dispatch.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	close(go1)
	if left := p.d.Wait(context.Background()); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
	if got := p.show("eu-1", "shop/configmap_a.yaml"); !strings.Contains(got, "v: blue") {
		t.Errorf("a is\n%s", got)
	}
	if p.inventory.Entries("eu-1")[id].Digest != dispatchtest.Digest(note("a", "blue").Object) || p.commits("eu-1") != 2 {
		t.Errorf("%d commits", p.commits("eu-1"))
	}
}

// Levels that follow each other fast are never mixed in one commit: each
// commit is what one of them wants, and the last is the last.
func TestLevelsAreNotMixed(t *testing.T) {
	p := newPublishing(t, "eu-1")
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for i := range 60 {
		var works []dispatchtest.Work
		for _, name := range names {
			works = append(works, note(name, fmt.Sprintf("v%d", i/2)))
		}
		fleet := levelOf{"eu-1": works}.of("1", strconv.Itoa(i/2))
		if err := p.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{All: i%7 == 0}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i%5) * time.Millisecond)
	}
	if left := p.d.Wait(context.Background()); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
	if got := p.show("eu-1", "shop/configmap_h.yaml"); !strings.Contains(got, "v: v29\n") {
		t.Errorf("it ends with\n%s", got)
	}
	for _, hash := range strings.Fields(p.in("rev-list", "fairlead/eu-1")) {
		subject := strings.TrimPrefix(p.in("show", "-s", "--format=%s", hash), "fleet 1111111: ")
		for _, name := range names {
			if got := p.in("show", hash+":shop/configmap_"+name+".yaml"); !strings.Contains(got, "v: v"+subject+"\n") {
				t.Errorf("commit %s of %s has\n%s", hash, subject, got)
			}
		}
	}
}

// Somebody else pushes just before we do: their files stay, ours are put on
// top, also the one that they have edited, and nothing is forced.
func TestPushRace(t *testing.T) {
	p := newPublishing(t, "eu-1")
	p.must(levelOf{"eu-1": {note("a", "red"), note("b", "red"), note("c", "red")}}.of("1", ""))
	races := 3
	p.interfere(func(what, _ string) error {
		if what == "commit" && races > 0 {
			races--
			p.theirs("eu-1", map[string]string{"README": strconv.Itoa(races), "shop/configmap_b.yaml": "mine", "shop/configmap_c.yaml": sourcetest.Delete})
		}
		return nil
	})
	p.took()
	p.must(levelOf{"eu-1": {note("a", "blue"), note("b", "red"), note("c", "red")}}.of("2", ""))
	if got, want := p.took(), "3 heads, 4 commits"; got != want {
		t.Errorf("it took %s, want %s", got, want)
	}
	files := p.files("eu-1")
	if files["README"] != "0" || !strings.Contains(files["shop/configmap_a.yaml"], "blue") || !strings.Contains(files["shop/configmap_b.yaml"], "red") || !strings.Contains(files["shop/configmap_c.yaml"], "red") {
		t.Errorf("files %q", files)
	}
	if got := p.commits("eu-1"); got != 5 {
		t.Errorf("%d commits", got)
	}

	// One who never stops is told of, and given up for a while.
	p.interfere(func(what, _ string) error {
		if what == "commit" {
			p.theirs("eu-1", map[string]string{"README": time.Now().String()})
		}
		return nil
	})
	fleet := levelOf{"eu-1": {note("a", "green"), note("b", "red"), note("c", "red")}}.of("3", "")
	if err := p.d.Sync(fleet, fleet.Changed(), dispatch.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	var said string
	for end := time.Now().Add(20 * time.Second); said == "" && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, o := range p.d.Outcomes() {
			said = o.Err.Error()
		}
	}
	if want := "publish on eu-1: branch fairlead/eu-1 of file://" + p.bare + ": somebody else keeps writing to it"; said != want {
		t.Errorf("said %q, want %q", said, want)
	}
	p.interfere(nil)
	if left := p.d.Wait(context.Background()); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
	if got := p.show("eu-1", "shop/configmap_a.yaml"); !strings.Contains(got, "green") {
		t.Errorf("a is\n%s", got)
	}
}

// What somebody edits in our files is brought back by the next sweep, and by a
// process that begins; what is held cannot be, and stays as it is.
func TestEditedByHand(t *testing.T) {
	p := newPublishing(t, "eu-1")
	fleet := levelOf{"eu-1": {note("a", "red"), note("b", "red"), note("c", "red")}}.of("1", "")
	p.must(fleet)
	edit := map[string]string{"README": "hi", "_cluster/namespace_shop.yaml": sourcetest.Delete, "shop/configmap_a.yaml": "half: [", "shop/configmap_b.yaml": sourcetest.Delete, "shop/configmap_c.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {v: mine}}"}
	for name, again := range map[string]func(*dispatchtest.Level) []dispatch.Outcome{
		"a sweep": func(f *dispatchtest.Level) []dispatch.Outcome { return p.sync(f, dispatch.SyncOptions{All: true}) },
		"a process that begins": func(f *dispatchtest.Level) []dispatch.Outcome {
			p.begin("eu-1")
			return p.sync(f, dispatch.SyncOptions{})
		},
	} {
		p.theirs("eu-1", edit)
		if left := again(fleet); len(left) != 0 {
			t.Fatalf("%s: left: %v", name, left)
		}
		files := p.files("eu-1")
		for _, n := range []string{"a", "b", "c"} {
			if !strings.Contains(files["shop/configmap_"+n+".yaml"], "v: red") {
				t.Errorf("%s: %s is %q", name, n, files["shop/configmap_"+n+".yaml"])
			}
		}
		if len(files) != 5 {
			t.Errorf("%s: files %q", name, files)
		}
		p.took()
		again(fleet)
		if got, want := p.took(), "1 heads, 0 commits"; got != want {
			t.Errorf("%s, again: it took %s, want %s", name, got, want)
		}
	}
	p.theirs("eu-1", edit)
	held := levelOf{"eu-1": {note("a", "red"), note("b", "red"), {Verb: dispatch.Hold, Object: note("c", "blue").Object}}}.of("2", "")
	if left := p.sync(held, dispatch.SyncOptions{All: true}); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
	if got := p.show("eu-1", "shop/configmap_c.yaml"); !strings.Contains(got, "mine") {
		t.Errorf("c is\n%s", got)
	}
	p.must(levelOf{"eu-1": {note("a", "red"), note("b", "red"), note("c", "blue")}}.of("3", ""))
	if got := p.show("eu-1", "shop/configmap_c.yaml"); !strings.Contains(got, "blue") {
		t.Errorf("c is\n%s", got)
	}
	// What was edited is still ours to remove, unless our marks were taken off.
	edit["shop/configmap_a.yaml"] = strings.Replace(p.show("eu-1", "shop/configmap_a.yaml"), "v: red", "v: mine", 1)
	p.theirs("eu-1", edit)
	remove := func(name, v string) dispatchtest.Work {
		return dispatchtest.Work{Verb: dispatch.Delete, Object: note(name, v).Object}
	}
	p.must(levelOf{"eu-1": {remove("a", "red"), remove("c", "blue")}}.of("4", ""))
	if got := p.show("eu-1", "shop/configmap_a.yaml"); got != "" {
		t.Errorf("a is\n%s", got)
	}
	if got := p.show("eu-1", "shop/configmap_c.yaml"); !strings.Contains(got, "mine") {
		t.Errorf("c is\n%s", got)
	}
	if told := strings.Join(p.told("warn"), "\n"); !strings.Contains(told, "ConfigMap shop/c stays in ") || !strings.Contains(told, ": our marks were removed from its file") {
		t.Errorf("told: %s", told)
	}
}

// A branch that is gone is not made again from what has changed. A commit
// there, the one that it was at or another, ends it.
func TestBranchGone(t *testing.T) {
	p := newPublishing(t, "eu-1")
	p.must(levelOf{"eu-1": {note("a", "red"), note("b", "red")}}.of("1", ""))
	was := p.in("rev-parse", "fairlead/eu-1")
	p.in("update-ref", "-d", "refs/heads/fairlead/eu-1")
	changed := levelOf{"eu-1": {note("a", "blue"), note("b", "red")}}.of("2", "")
	left := p.sync(changed, dispatch.SyncOptions{})
	if want := "publish on eu-1: branch fairlead/eu-1 of file://" + p.bare + " is gone: it was at " + was; len(left) != 1 || !left[0].Final || !strings.HasPrefix(left[0].Err.Error(), want) {
		t.Fatalf("left: %v", left)
	}
	p.begin("eu-1")
	if left := p.sync(changed, dispatch.SyncOptions{}); len(left) != 1 || !left[0].Final {
		t.Fatalf("left: %v", left)
	}
	if got := p.in("for-each-ref"); got != "" {
		t.Fatalf("there is %s", got)
	}
	p.theirs("eu-1", map[string]string{"README": "begin"})
	time.Sleep(300 * time.Millisecond) // it looks again by itself
	if left := p.d.Wait(context.Background()); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
	files := p.files("eu-1")
	if len(files) != 4 || !strings.Contains(files["shop/configmap_a.yaml"], "blue") || !strings.Contains(files["shop/configmap_b.yaml"], "red") {
		t.Errorf("files %q", files)
	}

	// A cluster that left the fleet has no branch to be missed.
	p.d.SetMember("eu-1", nil)
	p.in("update-ref", "-d", "refs/heads/fairlead/eu-1")
	p.d.SetMember("eu-1", p.member("eu-1"))
	p.must(changed)
	if got := len(p.files("eu-1")); got != 3 {
		t.Errorf("%d files", got)
	}
}

// Whoever was published to a directory, or pushed to, gets all of it when it
// gets a branch; and another repository gets all of it, too.
func TestPublishedElsewhere(t *testing.T) {
	p := newPublishing(t)
	fleet := levelOf{"eu-1": {note("a", "red"), note("b", "red")}}.of("1", "")
	p.d.SetMember("eu-1", pull.Directory(t.TempDir()))
	p.must(fleet)
	p.begin("eu-1")
	p.must(fleet)
	if got := len(p.files("eu-1")); got != 3 {
		t.Errorf("%d files", got)
	}

	// From the API of a cluster to a branch, and back.
	s, err := embedded.Start(embedded.Options{Name: "us-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	pushs := func() {
		p.begin()
		m, err := push.New(s.Config(), push.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p.d.SetMember("us-1", m)
	}
	us := func(v string) *dispatchtest.Level {
		return levelOf{"us-1": {note("a", v), note("b", "red")}}.of("1", v)
	}
	pushs()
	p.must(us("red"))
	p.begin("us-1")
	p.must(us("red"))
	if got := len(p.files("us-1")); got != 3 {
		t.Errorf("%d files", got)
	}
	p.theirs("us-1", map[string]string{"shop/configmap_b.yaml": sourcetest.Delete})
	p.must(levelOf{"us-1": {note("a", "blue"), {Verb: dispatch.Delete, Object: note("b", "red").Object}}}.of("2", ""))
	if got := p.files("us-1"); len(got) != 2 || !strings.Contains(got["shop/configmap_a.yaml"], "blue") {
		t.Errorf("files %q", got)
	}
	pushs()
	p.must(us("green"))
	for _, name := range []string{"a", "b"} {
		m, err := push.New(s.Config(), push.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"a": "green", "b": "red"}[name]
		found, err := m.Get(context.Background(), member.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "shop", Name: name})
		if err != nil || found == nil || found.Annotations[object.AnnotationDigest] != dispatchtest.Digest(note(name, want).Object).String() {
			t.Errorf("%s is %v, %v", name, found, err)
		}
	}

	if got := p.told("restore"); len(got) != 0 {
		t.Errorf("nobody took it away, and it is restored: %q", got)
	}
	other := newDeploy(t)
	p.deploy = other
	p.begin("eu-1")
	p.must(fleet)
	if got := len(other.files("eu-1")); got != 3 {
		t.Errorf("%d files", got)
	}
}

// What is refused is final and said in the server's words; the other clusters
// have theirs. When it is not refused any more it is pushed.
func TestRefusedPush(t *testing.T) {
	p := newPublishing(t, "eu-1", "us-1")
	p.interfere(func(what, branch string) error {
		if what == "commit" && branch == "fairlead/eu-1" {
			return &member.Error{Reason: member.Forbidden, Err: errors.New("fairlead/eu-1 is protected")}
		}
		return nil
	})
	fleet := levelOf{"eu-1": {note("a", "red")}, "us-1": {note("a", "red")}}.of("1", "")
	left := p.sync(fleet, dispatch.SyncOptions{})
	if len(left) != 1 || !left[0].Final || left[0].Err.Error() != "publish on eu-1: fairlead/eu-1 is protected" {
		t.Fatalf("left: %v", left)
	}
	if got := p.files("us-1"); len(got) != 2 {
		t.Errorf("us-1 has %q", got)
	}
	p.interfere(nil)
	if left := p.sync(fleet, dispatch.SyncOptions{All: true}); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
	if got := p.files("eu-1"); len(got) != 2 {
		t.Errorf("eu-1 has %q", got)
	}

	// A server that is away is asked less and less often.
	p.interfere(func(what, _ string) error {
		if what == "commit" {
			return &member.Error{Reason: member.Unreachable, Err: errors.New("no route")}
		}
		return nil
	})
	p.took()
	next := levelOf{"eu-1": {note("a", "blue")}, "us-1": {note("a", "red")}}.of("2", "")
	if err := p.d.Sync(next, next.Changed(), dispatch.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	var heads, commits int
	if _, err := fmt.Sscanf(p.took(), "%d heads, %d commits", &heads, &commits); err != nil || commits < 3 || commits > 20 {
		t.Errorf("%d heads, %d commits in half a second with pauses up to 100 ms (%v)", heads, commits, err)
	}
	p.interfere(nil)
	if left := p.d.Wait(context.Background()); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
}

// gitServer is a repository behind git http-backend, on this machine.
type gitServer struct {
	*httptest.Server
	heard func(*http.Request)
}

func serveDeploy(t *testing.T, d *deploy) *gitServer {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	git := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(d.bare), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"},
	}
	d.in("config", "http.receivepack", "true")
	s := &gitServer{heard: func(*http.Request) {}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.heard(r)
		git.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// Over the network: one push for each cluster and step that changes it, one
// look for a process that begins, whatever the number of clusters.
func TestPublishingCost(t *testing.T) {
	p := newPublishing(t)
	var mu sync.Mutex
	requests := map[string]int{}
	s := serveDeploy(t, p.deploy)
	s.heard = func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests[r.Method+" "+strings.TrimPrefix(filepath.Base(r.URL.Path)+"?"+r.URL.RawQuery, "refs?service=")]++
	}
	took := func(want map[string]int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		for what, n := range requests {
			if want[what] != n {
				t.Errorf("%s: %d times, want %d", what, n, want[what])
			}
		}
		for what, n := range want {
			if requests[what] == 0 {
				t.Errorf("%s: never, want %d", what, n)
			}
		}
		clear(requests)
	}
	clusters := []string{"c0", "c1", "c2", "c3", "c4"}
	p.to(s.URL+"/deploy.git", source.Auth{})
	p.begin(clusters...)
	level := func(v string, changed ...string) *dispatchtest.Level {
		works := levelOf{}
		for _, c := range clusters {
			colour := "red"
			if slices.Contains(changed, c) {
				colour = v
			}
			works[c] = []dispatchtest.Work{note("a", colour), note("b", colour), note("c", "red")}
		}
		return works.of("1", v)
	}
	p.must(level("red"))
	requests["GET git-upload-pack"] = min(requests["GET git-upload-pack"], 2) // how many share a look depends on the machine
	took(map[string]int{"GET git-upload-pack": requests["GET git-upload-pack"], "GET git-receive-pack": 5, "POST git-receive-pack?": 5})
	p.must(level("blue", "c1", "c3"))
	took(map[string]int{"GET git-receive-pack": 2, "POST git-receive-pack?": 2})
	p.must(level("blue", "c1", "c3"))
	took(map[string]int{})
	for _, c := range clusters {
		if got, want := p.commits(c), 1+strings.Count("c1 c3", c); got != want {
			t.Errorf("%s has %d commits, want %d", c, got, want)
		}
	}
	// Another process looks where the branches are, and fetches nothing.
	p.to(s.URL+"/deploy.git", source.Auth{})
	p.begin(clusters...)
	p.must(level("blue", "c1", "c3"))
	requests["GET git-upload-pack"] = min(requests["GET git-upload-pack"], 2)
	took(map[string]int{"GET git-upload-pack": requests["GET git-upload-pack"]})
}
