// SPDX-License-Identifier: Apache-2.0

package decrypting_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead/fairlead/decrypt"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/member/decrypting"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source/sourcetest"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

// On a real API server a Secret is decrypted, is sent once and not again, and is restored
// when somebody changes it; its mark is the digest of the ciphertext.
func TestRealServer(t *testing.T) {
	server := kubetest.Start(t, 1)[0]
	k := kubetest.NewKubectl(t, server.Kubeconfig())
	keys, err := decrypt.Load(map[string][]byte{"fleet.agekey": fixture(t, "fleet.agekey")})
	if err != nil {
		t.Fatal(err)
	}
	repo := sourcetest.New(t)
	repo.Commit("first", map[string]string{
		"clusters.yaml": "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\nspec: {syncMode: Push}\n",
		"policy.yaml":   "apiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: all}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: Secret}]\n",
		"db.yaml":       string(fixture(t, "age.yaml")),
	})
	once := func(state string) {
		t.Helper()
		loop, err := reconcile.Open(t.Context(), reconcile.Options{
			Repo: repo.Dir, StateDir: state, Look: true, Report: func(reconcile.Event) {},
			Members: func(*fleet.Cluster) (member.Member, error) {
				m, err := push.New(server.Config(), push.Options{})
				return decrypting.Wrap(m, keys.Manifest), err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := loop.Once(t.Context()); err != nil {
			t.Error(err)
		}
		if err := loop.Close(); err != nil {
			t.Error(err)
		}
	}
	wantPassword := func(want string) {
		t.Helper()
		if got := k.Run(t, "get secret db -n shop -o go-template={{.data.password|base64decode}}"); got != want {
			t.Errorf("the password is %q", got)
		}
	}

	state := t.TempDir()
	once(state)
	wantPassword("sops-canary-1")
	for _, dir := range []string{state, t.TempDir()} { // and with the state lost
		server.ResetRequests()
		once(dir)
		for _, r := range server.Requests() {
			if r.Method != "GET" {
				t.Errorf("sent again: %s %s", r.Method, r.Path)
			}
		}
	}

	k.Run(t, "patch secret db -n shop --type=merge -p {\"stringData\":{\"password\":\"hand\"}}")
	wantPassword("hand")
	once(state)
	wantPassword("sops-canary-1")
	server.ResetRequests()
	once(state)
	for _, r := range server.Requests() {
		if r.Method != "GET" {
			t.Errorf("sent again: %s %s", r.Method, r.Path)
		}
	}
}

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../../decrypt/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
