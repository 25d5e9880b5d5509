// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/testenv/fakeforge"
)

// canaries are the secrets of the Fleet; none of them may be told. What SOPS has encrypted
// is sops-canary-1.
var canaries = []string{
	password, "token-of-eu-1", "hook-t0ken-5678", "canary-of-the-template", "forge-t0ken-9012", "proxy-passw0rd", "1BROKEN", "sops-canary-1", "c29wcy1jYW5hcnktMQ",
}

// No Secret's value is in any log, event, condition, metric, status or file, whatever goes
// well or wrong: with all the Secrets that a Fleet can name.
func TestSecretsAreNotTold(t *testing.T) {
	h := newHub(t)
	addr, metrics := freeAddress(t), freeAddress(t)
	var log lockedBuilder
	h.run(func(o *controller.Options) {
		o.WebhookAddr, o.MetricsAddr = addr, metrics
		o.Log = funcr.New(func(prefix, args string) { log.add(prefix + " " + args + "\n") }, funcr.Options{Verbosity: 2})
	})
	forge := fakeforge.GitHub("forge-t0ken-9012")
	t.Cleanup(forge.Close)
	h.secret("hook", map[string]string{"token": "hook-t0ken-5678"})
	h.secret("forge", map[string]string{"token": "forge-t0ken-9012"})
	h.secret("sops", map[string]string{"fleet.agekey": h.key("fleet.agekey")})
	h.create(h.fleet("acme", func(f *v1alpha1.Fleet) {
		f.Spec.Webhook = &v1alpha1.WebhookSpec{Type: "github", SecretRef: meta.LocalObjectReference{Name: "hook"}}
		f.Spec.PullRequests = &v1alpha1.PullRequestsSpec{Provider: "github", URL: forge.URL, Repository: fakeforge.Repo, SecretRef: meta.LocalObjectReference{Name: "forge"}}
		f.Spec.Decryption = &v1alpha1.DecryptionSpec{Provider: "sops", SecretRef: meta.LocalObjectReference{Name: "sops"}}
	}))
	h.commit("Secrets", map[string]string{"apps/db/db.yaml": h.key("age.yaml"), "apps/web/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: web, namespace: shop}\nstringData: {key: canary-of-the-template}\n",
		"policies/secret.yaml": "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: secret, namespace: shop}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: Secret}]\n"})
	h.waitFor("acme", "applied main@sha1:"+h.repo.Head())

	h.members["us-1"].Fail(func(r *http.Request) (int, bool) {
		return http.StatusForbidden, r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/secrets/")
	})
	h.commit("another", map[string]string{"apps/db/db.yaml": strings.Replace(h.key("age.yaml"), "metadata:", "immutable: false\nmetadata:", 1)})
	h.waitFor("acme", "ClustersNotReady")
	h.members["us-1"].Fail(nil)
	forge.Fail(func(*http.Request) *fakeforge.Answer {
		return &fakeforge.Answer{Code: http.StatusForbidden, Body: `{"message": "no entry for forge-t0ken-9012"}`}
	})
	edit(h, h.get("acme"), func(f *v1alpha1.Fleet) {
		f.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": "now"}
	})
	h.eventually("it is told that the forge is away", func() string {
		if got := h.events("acme"); !strings.Contains(got, "PullRequestsFailed") {
			return got + "."
		}
		return ""
	})
	h.secret("sops", map[string]string{"fleet.agekey": "AGE-SECRET-KEY-1BROKEN"})
	h.git.set("another", false)
	h.waitFor("acme", "AuthenticationFailed")
	h.git.set(password, false)
	h.members["eu-1"].Fail(func(*http.Request) (int, bool) { return http.StatusUnauthorized, true })
	h.release("2.0")
	h.waitFor("acme", "ClustersNotReady")
	h.members["eu-1"].Fail(nil)
	h.secret("members", map[string]string{"value": "token-of-eu-1: ["})
	h.waitFor("acme", "ClustersNotReady")
	h.secret("proxy", map[string]string{"address": "http://ada:proxy-passw0rd@127.0.0.1:1"})
	edit(h, h.get("acme"), func(f *v1alpha1.Fleet) {
		f.Spec.Git.ProxySecretRef = &meta.LocalObjectReference{Name: "proxy"}
	})
	h.waitFor("acme", "GitOperationFailed")

	told := map[string]string{"log": log.String(), "metrics": scrape(t, "http://"+metrics+"/metrics"), "status": asJSON(t, h.get("acme"))}
	var events corev1.EventList
	h.must(h.client.List(context.Background(), &events))
	told["events"] = asJSON(t, events)
	h.must(filepath.WalkDir(h.storage, func(path string, e fs.DirEntry, err error) error {
		// What the repository has anybody can read who reads it.
		if err != nil || e.IsDir() || strings.Contains(path, string(filepath.Separator)+"objects"+string(filepath.Separator)) {
			return err
		}
		b, err := os.ReadFile(path)
		told[path] = string(b)
		return err
	}))
	for where, text := range told {
		if text == "" && !strings.Contains(where, h.storage) {
			t.Errorf("%s is empty", where)
		}
		for _, canary := range append(canaries, ageKey(h.key("fleet.agekey"))) {
			if strings.Contains(text, canary) {
				t.Errorf("%s has %q", where, canary)
			}
		}
	}
	if !strings.Contains(told["metrics"], `fairlead_cluster_state{cluster="eu-1",fleet="acme",namespace="team",state="failed"} 1`) {
		t.Error("the metrics do not tell that eu-1 has failed")
	}
}

// ageKey returns the key in a file of age.
func ageKey(file string) string {
	at := strings.Index(file, "AGE-SECRET-KEY-1")
	return strings.TrimSpace(file[at:])
}

func scrape(t testing.TB, url string) string {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// lockedBuilder is a log of many goroutines.
type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.WriteString(line)
}

// String returns what was logged.
func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
