// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
)

// The main job through a Fleet: a first release, a push, a refusal, a hold, and the end.
func TestFleet(t *testing.T) {
	h := newHub(t)
	h.run()
	f := h.fleet("acme")
	h.create(f)

	h.waitFor("acme", "Ready=True ReconciliationSucceeded: Applied revision: main@sha1:"+h.repo.Head()+" on 3 of 3 clusters")
	if got := h.image("eu-1"); got != "1.0" {
		t.Fatalf("eu-1 runs %q", got)
	}

	// A push.
	h.release("2.0")
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
	if got := h.image("us-1"); got != "2.0" {
		t.Fatalf("us-1 runs %q", got)
	}
	h.eventually("the release is announced", func() string {
		if got := h.events("acme"); !strings.Contains(got, "Normal Applied: ") || !strings.Contains(got, "(main@sha1:"+h.repo.Head()+")") {
			return got + "."
		}
		return ""
	})

	// A commit that is broken.
	good := h.repo.Head()
	h.commit("broken", map[string]string{"policies/broken.yaml": "kind: ["})
	h.waitFor("acme", "Ready=False CommitRefused: commit "+h.repo.Head()[:7]+": policies/broken.yaml:1")
	h.waitFor("acme", "applied main@sha1:"+good)
	h.repo.Git("revert", "--no-edit", "HEAD")
	h.waitFor("acme", "Ready=True")

	// A deletion that awaits confirmation, as everything goes at once.
	h.repo.Git("rm", "-q", "-r", "apps")
	h.repo.Git("commit", "-q", "-m", "all gone")
	h.waitFor("acme", "Ready=False ConfirmationRequired: ")
	if got := h.status("acme"); !strings.Contains(got, "Fairlead-Allow-Delete: ") {
		t.Errorf("the trailer that confirms it is not told:\n%s", got)
	}
	h.repo.Git("revert", "--no-edit", "HEAD")
	h.waitFor("acme", "Ready=True")

	// The Fleet is deleted: nothing on any member is.
	h.must(h.client.Delete(context.Background(), f))
	h.eventually("the Fleet is gone", func() string {
		err := h.client.Get(context.Background(), client.ObjectKeyFromObject(f), f)
		if errors.IsNotFound(err) {
			return ""
		}
		return "it is there"
	})
	if got := h.image("eu-1"); got != "2.0" {
		t.Errorf("eu-1 runs %q after the Fleet was deleted", got)
	}
}

// Every reason of the condition Ready that a Secret, a spec or the repository leads to
// is reached, and left when that is mended.
func TestReasons(t *testing.T) {
	h := newHub(t)
	h.run()
	f := h.fleet("acme")
	h.create(f)
	h.waitFor("acme", "Ready=True")

	// The password is rotated: first on the server, then in the Secret, and nothing else
	// has to be touched.
	h.git.set("another", false)
	h.waitFor("acme", "Ready=False AuthenticationFailed")
	h.secret("git", map[string]string{"username": "ada", "password": "another"})
	h.waitFor("acme", "Ready=True")

	h.git.set("another", true)
	h.waitFor("acme", "Ready=False GitOperationFailed")
	h.git.set("another", false)
	h.waitFor("acme", "Ready=True")

	h.members["us-1"].Partition(true)
	h.release("3.0")
	h.waitFor("acme", "Ready=False ClustersNotReady: 1 of 3 clusters not ready: us-1")
	h.members["us-1"].Partition(false)
	h.waitFor("acme", "Ready=True")

	// The Secret of the members goes: they are served as before, until the controller
	// has to connect anew.
	h.must(h.client.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "git"}}))
	h.waitFor("acme", "Ready=False AuthenticationFailed: Secret team/git: not found")
	h.secret("git", map[string]string{"username": "ada", "password": "another"})
	h.waitFor("acme", "Ready=True")

	// A part of the fleet is broken, and stays as it was.
	file := "apps/web/kustomization.yaml"
	whole := quickstart(t)[file]
	h.commit("broken", map[string]string{file: "resources: [missing.yaml]\n", "fairlead.yaml": quickstart(t)["fairlead.yaml"] + "  onBroken: FreezeUnit\n"})
	h.waitFor("acme", "Ready=False BuildFailed: ")
	h.commit("mended", map[string]string{file: whole})
	h.waitFor("acme", "Ready=True")

	edit(h, f, func(f *v1alpha1.Fleet) { f.Spec.Git.URL = "http://git.example.com/acme" })
	h.waitFor("acme", "Stalled=True InvalidURL")
	edit(h, f, func(f *v1alpha1.Fleet) { f.Spec.Git.URL = h.git.url() })
	h.waitFor("acme", "Ready=True")
	if got := h.status("acme"); strings.Contains(got, "Stalled") {
		t.Errorf("it is stalled no more, and still says so:\n%s", got)
	}
}

// A Fleet that is there before its Secret begins when that comes, and does not wait until
// it would be tried again.
func TestSecretComesLater(t *testing.T) {
	h := newHub(t)
	h.run(func(o *controller.Options) {
		o.RateLimiter.MinRetryDelay, o.RateLimiter.MaxRetryDelay = time.Hour, time.Hour
	})
	h.must(h.client.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "git"}}))
	h.create(h.fleet("acme"))
	h.waitFor("acme", "Ready=False AuthenticationFailed: Secret team/git: not found")
	h.secret("git", map[string]string{"username": "ada", "password": password})
	h.waitFor("acme", "Ready=True")
}

// kubectl annotate … reconcile.fluxcd.io/requestedAt looks now, and says when that is
// done; suspend sends nothing, and keeps the conditions.
func TestRequestAndSuspend(t *testing.T) {
	h := newHub(t)
	h.run()
	f := h.fleet("acme", func(f *v1alpha1.Fleet) { f.Spec.Interval = &metav1.Duration{Duration: time.Hour} })
	h.create(f)
	h.waitFor("acme", "Ready=True")

	h.commit("notice", map[string]string{"apps/web/extra.txt": "x"})
	edit(h, f, func(f *v1alpha1.Fleet) {
		f.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": "now"}
	})
	h.eventually("the request is handled", func() string {
		h.must(h.client.Get(context.Background(), client.ObjectKeyFromObject(f), f))
		if f.Status.LastHandledReconcileAt != "now" {
			return "handled: " + f.Status.LastHandledReconcileAt
		}
		return ""
	})
	if f.Status.LastAttemptedRevision != "main@sha1:"+h.repo.Head() {
		t.Errorf("it was handled without the last commit: %s", f.Status.LastAttemptedRevision)
	}

	edit(h, f, func(f *v1alpha1.Fleet) { f.Spec.Suspend = true })
	looks := h.git.looks()
	h.release("2.0")
	edit(h, f, func(f *v1alpha1.Fleet) { f.Annotations["reconcile.fluxcd.io/requestedAt"] = "later" })
	edit(h, f, func(f *v1alpha1.Fleet) { f.Spec.Suspend = false })
	h.waitFor("acme", "applied main@sha1:"+h.repo.Head())
	if h.git.looks() == looks {
		t.Error("nothing was looked at after the suspension")
	}

	// Another interval does not wait for the end of the hour.
	edit(h, f, func(f *v1alpha1.Fleet) { f.Spec.Interval.Duration = 200 * time.Millisecond })
	h.eventually("it looks every 200ms", func() string {
		if n := h.git.looks(); n < looks+20 {
			return fmt.Sprint(n - looks)
		}
		return ""
	})
}

// A controller that is stopped and started again, with or without its state, does nothing
// anew, and says nothing anew.
func TestRestart(t *testing.T) {
	h := newHub(t)
	stop := h.run()
	h.create(h.fleet("acme"))
	h.waitFor("acme", "3/3 applied ") // conditions are written before the rest of a status
	was := h.status("acme")
	stop()

	for _, lose := range []bool{false, true} {
		if lose {
			h.storage = t.TempDir()
		}
		before := map[string]int{}
		for name, m := range h.members {
			before[name] = len(m.Requests())
		}
		stop := h.run()
		looks := h.git.looks()
		h.eventually("it has looked twice", func() string {
			if h.git.looks() < looks+4 {
				return "not yet"
			}
			return ""
		})
		for name, m := range h.members {
			for _, r := range m.Requests()[before[name]:] {
				if r.Method != "GET" {
					t.Errorf("after a restart %s got %s %s", name, r.Method, r.Path)
				}
			}
		}
		h.eventually("the status is as before:\n"+was+"\n", func() string {
			if got := h.status("acme"); got != was {
				return got
			}
			return ""
		})
		stop()
	}
}

// A push that a forge reports is looked at immediately; what is not signed, and a replay,
// do nothing.
func TestWebhook(t *testing.T) {
	h := newHub(t)
	addr := freeAddress(t)
	h.run(func(o *controller.Options) { o.WebhookAddr = addr })
	h.secret("hook", map[string]string{"token": "t0ken"})
	h.create(h.fleet("acme", func(f *v1alpha1.Fleet) {
		f.Spec.Interval = &metav1.Duration{Duration: time.Hour}
		f.Spec.Webhook = &v1alpha1.WebhookSpec{Type: "github", SecretRef: meta.LocalObjectReference{Name: "hook"}}
	}))
	h.waitFor("acme", "Ready=True")

	h.release("2.0")
	path := h.get("acme").Status.WebhookPath
	if got := deliver(t, "http://"+addr+path, "another"); got != http.StatusUnauthorized {
		t.Fatalf("a delivery that is not signed is answered with %d", got)
	}
	if got := h.status("acme"); strings.Contains(got, h.repo.Head()) {
		t.Fatal("it has looked without a signature")
	}
	if got := deliver(t, "http://"+addr+path, "t0ken"); got != http.StatusOK {
		t.Fatalf("a delivery is answered with %d", got)
	}
	h.waitFor("acme", "applied main@sha1:"+h.repo.Head())
}

func deliver(t testing.TB, url, token string) int {
	t.Helper()
	body := `{"ref":"refs/heads/main"}`
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(body))
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-GitHub-Event", "push")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// A head that no known key has signed is not folded; the fleet stays as it was.
func TestVerify(t *testing.T) {
	h := newHub(t)
	h.run()
	f := h.fleet("acme")
	h.create(f)
	h.waitFor("acme", "Ready=True")

	entity, err := openpgp.NewEntity("Ada", "", "ada@example.com", nil)
	h.must(err)
	var public strings.Builder
	w, err := armor.Encode(&public, openpgp.PublicKeyType, nil)
	h.must(err)
	h.must(entity.Serialize(w))
	h.must(w.Close())
	h.secret("signers", map[string]string{"ada.asc": public.String()})
	edit(h, f, func(f *v1alpha1.Fleet) {
		f.Spec.Git.Verify = &v1alpha1.VerifySpec{Mode: v1alpha1.VerifyHead, SecretRef: meta.LocalObjectReference{Name: "signers"}}
	})
	h.release("2.0")
	h.waitFor("acme", "Ready=False VerificationFailed: commit "+h.repo.Head()[:8]+" is not verified: it is not signed")
	if got := h.image("eu-1"); got != "1.0" {
		t.Errorf("eu-1 runs %s", got)
	}

	edit(h, f, func(f *v1alpha1.Fleet) { f.Spec.Git.Verify = nil })
	h.waitFor("acme", "applied main@sha1:"+h.repo.Head())
}
