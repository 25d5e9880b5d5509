// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"net/http"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead/fairlead/testenv/kubetest"
	"github.com/fairlead/fairlead/web/auth"
)

// A real API server lets in whom its roles let in, and nobody when it is away.
func TestRealAPIServer(t *testing.T) {
	server := kubetest.Start(t, 1)[0]
	client := kubernetes.NewForConfigOrDie(server.Config())
	// No API resource of that name has to be there for a role to be about it.
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "page"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"fairlead.dev"}, Resources: []string{"fleets/page"}, Verbs: []string{"get"}, ResourceNames: []string{"web"}}},
	}
	if _, err := client.RbacV1().Roles("default").Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "page"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "page"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "mara"}},
	}
	if _, err := client.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mara, tim := tokenOf(t, client, "mara"), tokenOf(t, client, "tim")

	guard := func(o auth.Options) *auth.Guard {
		o.Tokens, o.Access = client.AuthenticationV1().TokenReviews(), client.AuthorizationV1().SubjectAccessReviews()
		return auth.New(o)
	}
	page := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	everyTime := guard(auth.Options{Remember: time.Nanosecond})
	theirs := guard(auth.Options{Audiences: []string{"https://page.example.com"}})
	for name, at := range map[string]struct {
		page   http.Handler
		token  string
		status int
	}{
		"may":                   {everyTime.Handler("default", "web", page), mara, 200},
		"another Fleet":         {everyTime.Handler("default", "api", page), mara, 403},
		"every Fleet":           {everyTime.Handler("default", "", page), mara, 403},
		"another namespace":     {everyTime.Handler("kube-system", "web", page), mara, 403},
		"without the role":      {everyTime.Handler("default", "web", page), tim, 403},
		"made up":               {everyTime.Handler("default", "web", page), "eyJhbGciOiJub25lIn0.e30.", 401},
		"for another audience":  {theirs.Handler("default", "web", page), mara, 401},
		"with the audience":     {theirs.Handler("default", "web", page), tokenOf(t, client, "mara", "https://page.example.com"), 200},
		"audience of the other": {everyTime.Handler("default", "web", page), tokenOf(t, client, "mara", "https://page.example.com"), 401},
	} {
		t.Run(name, func(t *testing.T) {
			if w := get(at.page, "Bearer "+at.token); w.Code != at.status {
				t.Errorf("%d %s, want %d", w.Code, w.Body, at.status)
			}
		})
	}

	server.Stop(t)
	if w := get(everyTime.Handler("default", "web", page), "Bearer "+mara); w.Code != 503 {
		t.Errorf("while it is away: %d %s", w.Code, w.Body)
	}
}

// tokenOf makes a token of a service account, which is made if it is not there.
func tokenOf(t *testing.T, client kubernetes.Interface, name string, audiences ...string) string {
	t.Helper()
	accounts := client.CoreV1().ServiceAccounts("default")
	if _, err := accounts.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	made, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Status.Token
}
