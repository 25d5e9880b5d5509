// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/fairlead/fairlead/testenv/kubetest"
)

// onBoth runs a test on the fake and on a real API server.
func onBoth(t *testing.T, test func(t *testing.T, maps ConfigMaps)) {
	t.Run("fake", func(t *testing.T) { test(t, newFake()) })
	t.Run("real", func(t *testing.T) {
		server := kubetest.Start(t, 1)[0]
		api, err := client.NewForConfig(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		test(t, api.ConfigMaps("default"))
	})
}

// What a registry relies on: a write of another version than the present one conflicts, and
// one that changes nothing makes none.
func TestConfigMaps(t *testing.T) {
	onBoth(t, func(t *testing.T, maps ConfigMaps) {
		ctx := t.Context()
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"of": "us"}}, Data: map[string]string{"eu-1": "u1"}}
		first, err := maps.Create(ctx, m, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Create(ctx, m, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("created twice: %v", err)
		}
		same, err := maps.Update(ctx, first, metav1.UpdateOptions{})
		if err != nil || same.ResourceVersion != first.ResourceVersion {
			t.Errorf("nothing was changed: version %s, then %s, %v", first.ResourceVersion, same.ResourceVersion, err)
		}
		other := first.DeepCopy()
		other.Annotations = map[string]string{"by": "b"}
		second, err := maps.Update(ctx, other, metav1.UpdateOptions{})
		if err != nil || second.ResourceVersion == first.ResourceVersion {
			t.Errorf("it was changed: version %s, then %s, %v", first.ResourceVersion, second.ResourceVersion, err)
		}
		if _, err := maps.Update(ctx, first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("an update of an older version: %v", err)
		}

		for selector, want := range map[string]int{"of=us": 1, "of=them": 0} {
			list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil || len(list.Items) != want {
				t.Errorf("%s: %d ConfigMaps, %v", selector, len(list.Items), err)
			}
		}
		old := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &first.ResourceVersion}}
		if err := maps.Delete(ctx, "a", old); !apierrors.IsConflict(err) {
			t.Errorf("a deletion of an older version: %v", err)
		}
		if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := maps.Update(ctx, second, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("an update of what is gone: %v", err)
		}
	})
}

// A later name is refused in whichever replica, until the earlier one has left git. What is
// recorded outlives its holder, and another number of shards.
func TestNameIsKept(t *testing.T) {
	onBoth(t, func(t *testing.T, maps ConfigMaps) {
		w := newWorld(t, maps)
		a, b := w.start("a", 4, 1), w.start("b", 4, 2)
		w.keep(docs{"eu-1": {shard: 1}, "eu-2": {shard: 2}})
		a.granted("eu-1", "u1")
		b.refused("eu-2", "u1", "eu-1")
		a.granted("eu-1", "u1")
		b.granted("eu-2", "u2")
		if text := w.text("fairlead-acme-members-01-of-4"); text != "eu-1=u1" {
			t.Error(text)
		}

		a.stop()
		b.refused("eu-2", "u1", "") // it was u2: dispatch says so
		c := w.start("c", 4, 1)
		w.keep(docs{"eu-1": {shard: 1}, "eu-2": {shard: 2, id: "u1"}, "aa-1": {shard: 2}})
		b.refused("aa-1", "u1", "eu-1")
		b.refused("eu-2", "u1", "eu-1")
		c.granted("eu-1", "u1")

		b.stop()
		c.stop()
		d := w.start("d", 2, 0, 1)
		w.keep(docs{"eu-1": {shard: 1}, "eu-2": {shard: 0}, "aa-1": {shard: 0}})
		d.refused("aa-1", "u1", "eu-1")
		d.granted("eu-1", "u1")
		w.keep(docs{"eu-2": {shard: 0}})
		d.granted("eu-2", "u1")
		w.eventually("claims of four shards are gone", func() bool { return !strings.Contains(w.names(), "of-4") })
		if text := w.text("fairlead-acme-members-00-of-2"); text != "eu-2=u1" {
			t.Error(text)
		}
	})
}
