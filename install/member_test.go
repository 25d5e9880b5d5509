// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// memberMay is what the account of the controller may do on a member with the smaller of
// the two variants, by itself and as the account that it impersonates.
var memberMay = map[string]map[string]string{
	"system:serviceaccount:fairlead-system:fairlead": {
		"impersonate serviceaccounts/fleet -n fairlead-system": "yes", "impersonate serviceaccounts/fairlead -n fairlead-system": "no",
		"impersonate serviceaccounts/fleet -n kube-system": "no", "impersonate users": "no", "impersonate groups": "no",
		"get configmaps -A": "no", "create namespaces": "no",
	},
	"system:serviceaccount:fairlead-system:fleet": {
		"get namespaces": "yes", "create namespaces": "yes", "delete namespaces": "no",
		"watch deployments.apps -A": "yes", "patch secrets -n shop": "yes", "delete configmaps -n shop": "yes",
		"get pods -n shop": "no", "create pods -n shop": "no", "update deployments.apps -n shop": "no",
		"create clusterroles": "no", "create rolebindings -n shop": "no", "impersonate serviceaccounts -n fairlead-system": "no",
	},
}

// The variants of config/member-rbac are applied as they are. With the smaller one a fleet
// is created, changed, watched, repaired and removed.
func TestMemberRBAC(t *testing.T) {
	server := kubetest.Start(t, 1)[0]
	k := kubetest.NewKubectl(t, server.Kubeconfig())
	k.Run(t, "apply -k ../config/member-rbac/least")
	for account, may := range memberMay {
		canI(t, k, may, account)
	}
	t.Run("a fleet as the impersonated account", func(t *testing.T) { runFleet(t, server, k) })

	k.Run(t, "apply -k ../config/member-rbac/cluster-admin")
	canI(t, k, map[string]string{"delete namespaces": "yes", "create clusterroles": "yes"}, "system:serviceaccount:fairlead-system:fairlead")
	if out := k.Run(t, "get secret fairlead-token -n fairlead-system -o jsonpath={.type}"); !strings.HasPrefix(out, "kubernetes.io/service-account-token") {
		t.Error(out)
	}
}

// runFleet reconciles as the controller does: with the token of the account, and as the
// one that it impersonates.
func runFleet(t *testing.T, server *kubetest.Server, k *kubetest.Kubectl) {
	config := server.Config()
	config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData = nil, nil
	config.BearerToken = strings.TrimSpace(k.Run(t, "create token fairlead -n fairlead-system"))
	config.Impersonate.UserName = "system:serviceaccount:fairlead-system:fleet"

	repo := sourcetest.New(t)
	repo.Commit("first", map[string]string{
		"clusters.yaml": "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\nspec: {syncMode: Push}\n",
		"policy.yaml":   "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: shop}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}]\n",
		"web.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {release: \"1\"}\n",
		"db.yaml":       "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {password: a}\n",
		"fairlead.yaml": "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {maxDelete: 100%}\n",
	})

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	acts := make(chan string, 100)
	loop, err := reconcile.Open(ctx, reconcile.Options{
		Repo: repo.Dir, StateDir: t.TempDir(), Interval: 100 * time.Millisecond, Watch: true,
		Members: func(*fleet.Cluster) (member.Member, error) { return push.New(config, push.Options{}) },
		Report: func(e reconcile.Event) {
			if e.Err != nil && ctx.Err() == nil {
				t.Errorf("%v", e.Err)
			}
			if e.Act != nil {
				acts <- string(e.Act.Verb) + " " + e.Act.Object.String()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = loop.Run(ctx) })
	await := func(want ...string) {
		for len(want) > 0 {
			select {
			case act := <-acts:
				want = slices.DeleteFunc(want, func(w string) bool { return w == act })
			case <-ctx.Done():
				t.Errorf("%v did not happen", want)
				return
			}
		}
	}

	await("apply ConfigMap shop/web", "apply Secret shop/db")
	k.Run(t, "patch configmap web -n shop --type=merge -p {\"data\":{\"release\":\"2\"}}")
	await("restore ConfigMap shop/web")
	repo.Commit("change", map[string]string{"web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {release: \"3\"}\n", "db.yaml": sourcetest.Delete})
	await("apply ConfigMap shop/web", "delete Secret shop/db")

	cancel()
	running.Wait()
	if err := loop.Close(); err != nil {
		t.Error(err)
	}
}
