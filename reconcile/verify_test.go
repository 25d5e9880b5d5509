// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// signedWorld is a fleet whose commits are signed by ada.
type signedWorld struct {
	*world
	ada    *sourcetest.Key
	verify reconcile.Verify
	failed error // of the last round
}

func newSignedWorld(t *testing.T, mode reconcile.VerifyMode) *signedWorld {
	t.Helper()
	w := &signedWorld{world: newWorld(t, embeddedMembers(t)), ada: sourcetest.NewSSHKey(t, "git")}
	w.verify = reconcile.Verify{Mode: mode, Signers: signersOf(t, w.ada)}
	return w
}

func signersOf(t *testing.T, keys ...*sourcetest.Key) source.Signers {
	t.Helper()
	var file []byte
	for _, k := range keys {
		file = append(file, k.Public...)
	}
	signers, err := source.ParseSigners(map[string][]byte{"team.sshpub": file})
	if err != nil {
		t.Fatal(err)
	}
	return signers
}

// release commits one, signed by a key, or by nobody if that is nil.
func (w *signedWorld) release(release string, by *sourcetest.Key) string {
	w.t.Helper()
	head := w.repo.Commit("release "+release, map[string]string{"config.yaml": releaseConfig(release)})
	if by != nil {
		head = w.repo.Sign(by)
	}
	return head
}

func releaseConfig(release string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: default}\ndata: {release: '" + release + "'}\n"
}

const everywhere = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {clusterNames: [eu-1]}}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {syncMode: Push}
`

// round is one look of a process of its own. It returns what eu-1 has after it, and the
// commit that is not verified.
func (w *signedWorld) round() (release, unverified string) {
	w.t.Helper()
	opt := w.options()
	opt.Verify, opt.Look = w.verify, true
	l, err := reconcile.Open(context.Background(), opt)
	if err != nil {
		w.t.Fatal(err)
	}
	err = l.Once(context.Background())
	if closeErr := l.Close(); closeErr != nil {
		w.t.Fatal(closeErr)
	}

	w.failed = err
	var failed *source.VerificationError
	switch {
	case errors.As(err, &failed):
		unverified = failed.Commit
	case err != nil:
		w.t.Fatalf("%v\n%s", err, w.said())
	}
	found := w.get("eu-1", configMaps, "default", "config")
	if found == nil {
		return "none", unverified
	}
	data, _ := found.Object["data"].(map[string]any)
	release, _ = data["release"].(string)
	return release, unverified
}

func (w *signedWorld) want(when, release, unverified string) {
	w.t.Helper()
	if got, failed := w.round(); got != release || failed != unverified {
		w.t.Errorf("%s: eu-1 has %s and %.8s is not verified; want %s and %.8s\n%s", when, got, failed, release, unverified, w.said())
	}
}

// drift deletes what eu-1 has.
func (w *signedWorld) drift() {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.members["eu-1"].config)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := client.Resource(configMaps).Namespace("default").Delete(w.t.Context(), "config", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// forget loses the state of the loop.
func (w *signedWorld) forget() {
	w.t.Helper()
	w.state = w.t.TempDir()
}

// T09: nothing is folded past a head that no known key has signed, and what came before
// it stays, drift included; a signed head brings all before it along.
func TestT09VerifyHead(t *testing.T) {
	w := newSignedWorld(t, reconcile.VerifyHead)
	w.repo.Commit("begin", map[string]string{"fleet.yaml": everywhere})
	w.release("1", w.ada)
	w.want("signed", "1", "")

	unsigned := w.release("2", nil)
	w.want("unsigned", "1", unsigned)

	w.drift()
	w.want("after drift", "1", unsigned)

	strange := w.release("3", sourcetest.NewSSHKey(t, "git"))
	w.want("signed by a stranger", "1", strange)

	w.release("4", w.ada)
	w.want("signed again", "4", "")
}

// T09: the fold ends before the first commit of the line that no known key has signed,
// whoever signs what comes after it.
func TestT09VerifyEachCommit(t *testing.T) {
	w := newSignedWorld(t, reconcile.VerifyEachCommit)
	w.repo.Commit("begin", map[string]string{"fleet.yaml": everywhere})
	w.repo.Sign(w.ada)
	w.release("1", w.ada)
	w.want("signed", "1", "")

	two := w.release("2", w.ada)
	unsigned := w.release("3", nil)
	w.want("up to an unsigned one", "2", unsigned)
	w.release("4", w.ada)
	w.want("with a signed one after it", "2", unsigned)

	w.forget()
	w.drift()
	w.verify.Accepted = two
	w.want("without its state, which somebody remembers", "2", unsigned)

	// A merge by the forge, whose key nobody has added, brings signed commits.
	w = newSignedWorld(t, reconcile.VerifyEachCommit)
	w.repo.Commit("begin", map[string]string{"fleet.yaml": everywhere})
	w.repo.Sign(w.ada)
	w.repo.Branch("topic")
	w.release("1", w.ada)
	w.repo.Checkout("main")
	w.repo.Merge("topic", "Merge topic")
	host := sourcetest.NewSSHKey(t, "git")
	merge := w.repo.Sign(host)
	w.want("merged by the forge", "none", merge)

	w.verify.Signers = signersOf(t, w.ada, host)
	w.want("once its key is known", "1", "")
}

// What is not signed has no say either: a trailer that begins the fold anew, or skips a
// commit, does not count.
func TestTrailersOfUnverifiedCommits(t *testing.T) {
	w := newSignedWorld(t, reconcile.VerifyEachCommit)
	w.repo.Commit("begin", map[string]string{"fleet.yaml": everywhere})
	w.repo.Sign(w.ada)
	signed := w.release("1", w.ada)
	w.want("signed", "1", "")

	unsigned := w.repo.Commit("Begin here\n\nFairlead-Begin: true\nFairlead-Skip: "+signed, map[string]string{"config.yaml": releaseConfig("evil")})
	w.want("a trailer", "1", unsigned)
	w.forget()
	w.want("a fresh state", "1", unsigned)
	w.verify.Accepted = signed
	w.want("one that is remembered", "1", unsigned)
}

// A state that is lost brings no cluster back to an older release, whatever has become of
// the keys: what is not signed by one that is known leaves everything as it is.
func TestKeysThatAreGone(t *testing.T) {
	w := newSignedWorld(t, reconcile.VerifyEachCommit)
	bob := sourcetest.NewSSHKey(t, "git")
	w.verify.Signers = signersOf(t, w.ada, bob)
	w.repo.Commit("begin", map[string]string{"fleet.yaml": everywhere})
	w.repo.Sign(w.ada)
	w.release("1", w.ada)
	bobs := w.release("2", bob)
	w.want("both are known", "2", "")

	w.verify.Signers = signersOf(t, w.ada)
	w.want("without bob, from the state", "2", "")
	w.forget()
	w.want("without bob and state", "2", bobs)
	if !strings.Contains(w.failed.Error(), "the key is not known; nothing was folded before, so nothing is") {
		t.Errorf("it reads %v", w.failed)
	}
	w.release("3", w.ada)
	w.want("with a commit that ada has signed", "2", bobs)

	w.verify.Accepted = bobs
	w.want("with what is remembered", "3", "")
	w.forget()
	w.verify.Accepted = strings.Repeat("0", 40)
	w.want("with what nobody has heard of", "3", bobs)

	w.repo.Commit("Begin here\n\nFairlead-Begin: true", map[string]string{"config.yaml": releaseConfig("4")})
	w.repo.Sign(w.ada)
	w.want("begun at a signed commit", "4", "")
}

// A head that was folded before is not asked again when the state is lost, and one that
// was not is folded no further than that.
func TestHeadIsRemembered(t *testing.T) {
	w := newSignedWorld(t, reconcile.VerifyHead)
	w.repo.Commit("begin", map[string]string{"fleet.yaml": everywhere})
	w.verify.Accepted = w.release("1", nil)
	w.want("at what is remembered", "1", "")

	w.forget()
	w.drift()
	unsigned := w.release("2", nil)
	w.want("after it", "1", unsigned)

	w.forget()
	w.verify.Accepted = ""
	w.drift()
	w.want("with nothing remembered", "none", unsigned)
}

// A signature that was made for another line of history does not count for a rewritten
// one, whose commits are all asked.
func TestRewrittenBranchIsVerified(t *testing.T) {
	w := newSignedWorld(t, reconcile.VerifyEachCommit)
	w.repo.Commit("begin", map[string]string{"fleet.yaml": everywhere})
	begin := w.repo.Sign(w.ada)
	folded := w.release("1", w.ada)
	w.want("signed", "1", "")

	w.repo.Git("reset", "-q", "--hard", begin)
	unsigned := w.repo.Commit("rewritten\n\nFairlead-Allow-Rewrite: "+folded, map[string]string{"config.yaml": releaseConfig("evil")})
	if got, failed := w.round(); got != "1" || failed != unsigned {
		t.Errorf("eu-1 has %s, %.8s is not verified", got, failed)
	}
	w.repo.Sign(w.ada)
	w.want("signed by ada", "evil", "")
}

// The signers of a running loop can change.
func TestSetVerify(t *testing.T) {
	w := newSignedWorld(t, reconcile.VerifyHead)
	w.repo.Commit("begin", map[string]string{"fleet.yaml": everywhere})
	bob := sourcetest.NewSSHKey(t, "git")
	w.release("1", bob)
	opt := w.options()
	opt.Verify = w.verify
	l, err := reconcile.Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	var failed *source.VerificationError
	if r, err := l.Round(context.Background()); !errors.As(err, &failed) || r.Accepted != "" {
		t.Errorf("accepted %s, %v", r.Accepted, err)
	}
	l.SetVerify(reconcile.Verify{Mode: reconcile.VerifyHead, Signers: signersOf(t, bob)})
	if r, err := l.Round(context.Background()); err != nil || r.Accepted != w.repo.Head() {
		t.Errorf("accepted %s, %v", r.Accepted, err)
	}
	l.SetVerify(reconcile.Verify{Mode: "TAG"})
	w.release("2", bob)
	if _, err := l.Round(context.Background()); err == nil || !strings.Contains(err.Error(), `verification mode "TAG"`) {
		t.Errorf("an unknown mode: %v", err)
	}
}
