// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/reconcile"
)

// A foreign object that somebody removes is ours to make, without a commit.
// What is acknowledged costs no request meanwhile.
func TestForeignObjectGoesAway(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	files := quickstart(t)
	w.repo.Commit("first release", files)
	w.settle()
	create(t, w, "eu-1", "motd", map[string]any{"text": "theirs"})
	files["apps/motd.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: motd, namespace: shop}\ndata: {text: ours}\n"
	files["policies/motd.yaml"] = `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: motd, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: motd}]
  placement: {clusterAffinity: {clusterNames: [eu-1]}}
`
	w.repo.Commit("a message", files)

	options := w.options()
	options.Reexamine = 200 * time.Millisecond
	loop, err := reconcile.Open(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- loop.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := loop.Close(); err != nil {
			t.Error(err)
		}
	}()

	said := ""
	eventually(t, "the foreign object is reported", func() bool {
		said += w.said()
		return strings.Contains(said, "eu-1") && strings.Contains(said, "is not ours")
	})
	w.writes()
	// A look at the foreign object, again and again; it stays as it is.
	looks := 0
	eventually(t, "it is looked at again", func() bool {
		for _, r := range w.members["eu-1"].taken() {
			if !strings.HasSuffix(r, "/namespaces/shop/configmaps/motd") {
				t.Errorf("eu-1 was sent %s", r)
			}
			looks++
		}
		return looks >= 2
	})
	if motd := w.get("eu-1", configMaps, "shop", "motd"); motd.GetLabels()[object.LabelManaged] != "" {
		t.Error("it was adopted")
	}
	for _, name := range []string{"ap-1", "us-1"} {
		if sent := w.members[name].taken(); len(sent) != 0 {
			t.Errorf("%s was sent %q", name, sent)
		}
	}
	if again := w.said(); strings.Contains(again, "is not ours") {
		t.Errorf("the same was reported again: %s", again)
	}

	if err := client(t, w, "eu-1").Resource(configMaps).Namespace("shop").Delete(context.Background(), "motd", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is made", func() bool {
		motd := w.get("eu-1", configMaps, "shop", "motd")
		return motd != nil && motd.GetLabels()[object.LabelManaged] == "true"
	})
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
