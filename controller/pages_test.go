// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/lease"
)

var links = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)

// With --page-addr each Fleet has a page, for those whom Kubernetes lets get fleets/page.
func TestPages(t *testing.T) {
	h := newHub(t)
	addr := freeAddress(t)
	h.run(func(o *controller.Options) { o.PageAddr, o.PageAuth = addr, controller.PageAuthKubernetes })
	h.create(h.fleet("acme"))
	h.waitFor("acme", "Ready=True")
	viewer, stranger := h.token("viewer", "acme"), h.token("stranger", "another")
	ask := func(path, token string) (int, string) {
		t.Helper()
		return get(t, "http://"+addr+path, token)
	}

	for _, test := range []struct {
		path, token string
		code        int
	}{
		{"/healthz", "", http.StatusOK},
		{"/", "", http.StatusUnauthorized},
		{"/", viewer, http.StatusForbidden}, // the list has the names of all Fleets
		{"/fleets/team/acme/", "", http.StatusUnauthorized},
		{"/fleets/team/acme/", "nonsense", http.StatusUnauthorized},
		{"/fleets/team/acme/", stranger, http.StatusForbidden},
		{"/fleets/team/acme/api/v1/status", stranger, http.StatusForbidden},
		{"/fleets/team/another/", stranger, http.StatusNotFound},
	} {
		if code, text := ask(test.path, test.token); code != test.code || code != http.StatusOK && strings.Contains(text, "web") {
			t.Errorf("%s: %d %s", test.path, code, text)
		}
	}

	shows := func(path string, texts ...string) {
		t.Helper()
		h.eventually(path+" shows "+strings.Join(texts, ", "), func() string {
			code, page := ask(path, viewer)
			for _, text := range texts {
				if code != http.StatusOK || !strings.Contains(page, text) {
					return http.StatusText(code) + ": " + page
				}
			}
			return ""
		})
	}
	shows("/fleets/team/acme/", "quickstart", "eu-1", "as the clusters answered")
	shows("/fleets/team/acme/templates/Deployment/shop/web", "eu-1", "current")

	// Every link of every page stays below the Fleet, and leads somewhere.
	todo, asked := []string{"/fleets/team/acme/"}, map[string]bool{}
	for len(todo) > 0 && len(asked) < 200 {
		path := todo[0]
		todo = todo[1:]
		if asked[path] {
			continue
		}
		asked[path] = true
		code, page := ask(path, viewer)
		if code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
		for _, link := range links.FindAllStringSubmatch(page, -1) {
			to, _, _ := strings.Cut(html.UnescapeString(link[1]), "#")
			switch {
			case strings.HasPrefix(to, "/fleets/team/acme/"):
				todo = append(todo, to)
			case to != "":
				t.Errorf("%s leads to %s", path, to)
			}
		}
	}
	if len(asked) < 40 {
		t.Errorf("only %d pages were found", len(asked))
	}

	h.members["us-1"].Partition(true)
	h.release("2.0")
	h.waitFor("acme", "ClustersNotReady")
	shows("/fleets/team/acme/templates/Deployment/shop/web", h.repo.Head()[:7], "unknown")
	shows("/fleets/team/acme/clusters/us-1", "EOF")
	h.members["us-1"].Partition(false)
	h.waitFor("acme", "Ready=True")

	h.must(h.client.Delete(context.Background(), h.get("acme")))
	h.eventually("its page is gone", func() string {
		if code, page := ask("/fleets/team/acme/", viewer); code != http.StatusNotFound {
			return page
		}
		return ""
	})
}

// Where replicas share the clusters, the page of one does not show those of another as
// what was decided for them.
func TestPagesOfAReplica(t *testing.T) {
	h := newHub(t)
	addr := freeAddress(t)
	h.run(func(o *controller.Options) {
		o.PageAddr, o.PageAuth, o.Sharding, o.Pod = addr, controller.PageAuthNone, true, "fairlead-0"
		controller.SetRules(o, lease.DefaultRules().Scaled(0.1))
	})
	h.create(h.fleet("acme"))
	h.waitFor("acme", "Ready=True")
	shows := func(cluster, want string) {
		t.Helper()
		h.eventually("the page shows "+cluster+" as "+want, func() string {
			_, page := get(t, "http://"+addr+"/fleets/team/acme/clusters/"+cluster, "")
			if !strings.Contains(page, want) {
				return page
			}
			return ""
		})
	}
	shows("eu-1", "current <b>")

	shard, err := lease.ShardOf("eu-1", "", v1alpha1.DefaultShards)
	h.must(err)
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lease.ShardName("team/acme", shard, v1alpha1.DefaultShards)}}
	edit(h, l, func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = ptr("fairlead-1_b"), ptr[int32](3600)
	})
	shows("eu-1", "another replica reconciles it")
	shows("us-1", "current <b>")
}

// Without users there is a list for everybody.
func TestPagesList(t *testing.T) {
	h := newHub(t)
	addr := freeAddress(t)
	h.run(func(o *controller.Options) { o.PageAddr, o.PageAuth = addr, controller.PageAuthNone })
	h.create(h.fleet("acme"))
	h.create(h.fleet("broken", func(f *v1alpha1.Fleet) { f.Spec.Git.URL = "http://<b>.example.com/x" }))
	h.waitFor("acme", "Ready=True")
	h.waitFor("broken", "Ready=False")
	_, page := get(t, "http://"+addr+"/", "")
	for _, want := range []string{`href="/fleets/team/acme/"`, "Applied revision: main@sha1:", "team/broken", "False"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	if strings.Contains(page, "<b>") {
		t.Errorf("what others wrote is not escaped:\n%s", page)
	}
}

// token is that of a service account that may see the page of one Fleet.
func (h *hub) token(account, fleet string) string {
	h.t.Helper()
	ctx := context.Background()
	h.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}})
	h.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"fairlead.dev"}, Resources: []string{"fleets/page"}, Verbs: []string{"get"}, ResourceNames: []string{fleet}},
	}})
	h.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account}},
	})
	token, err := kubernetes.NewForConfigOrDie(h.server.Config()).CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	h.must(err)
	return token.Status.Token
}

// get asks for a page.
func get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}
