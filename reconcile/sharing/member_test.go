// SPDX-License-Identifier: Apache-2.0

package sharing_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/fairlead/fairlead/source/sourcetest"
)

// TestNewerIsLeft: what a member says is as of a commit that a replica has not fetched is
// left as it is, until it has. Somebody was faster, whom the Lease does not show any more.
func TestNewerIsLeft(t *testing.T) {
	w := newWorld(t, "eu-1")
	w.repo.Commit("100", w.files("100"))
	b := w.start("fairlead-0")
	b.waitOwns(0, 1, 2, 3, 4, 5, 6, 7)
	w.waitValue("eu-1", "100")

	b.away.Store(true)
	after := w.repo.Commit("105", w.files("105"))
	b.taken()
	object := dynamic.NewForConfigOrDie(w.members["eu-1"].Config()).Resource(configMaps).Namespace("default")
	patch := map[string]any{
		"data":     map[string]any{"v": "105"},
		"metadata": map[string]any{"annotations": map[string]any{"fairlead.dev/revision": after}},
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := object.Patch(context.Background(), "a", types.MergePatchType, raw, metav1.PatchOptions{FieldManager: "another"}); err != nil {
		t.Fatal(err)
	}
	before := b.asked.Load()
	w.eventually("it looks for the commit", func() string {
		if b.asked.Load() < before+4 {
			return "not yet"
		}
		return ""
	})
	if writes := b.taken(); len(writes) > 0 || w.value("eu-1") != "105" {
		t.Errorf("it wrote %v; eu-1 has %s", writes, w.value("eu-1"))
	}

	b.away.Store(false)
	w.repo.Commit("106", map[string]string{"t.yaml": strings.ReplaceAll(w.files("x")["t.yaml"], `"x"`, `"106"`)})
	w.waitValue("eu-1", "106")
}

// TestDeletesAreAsSeen: where replicas share the clusters a delete names the version that
// was looked at.
func TestDeletesAreAsSeen(t *testing.T) {
	w := newWorld(t, "eu-1")
	w.repo.Commit("100", w.files("100"))
	b := w.start("fairlead-0")
	b.waitOwns(0, 1, 2, 3, 4, 5, 6, 7)
	w.waitValue("eu-1", "100")
	stays := strings.ReplaceAll(w.files("100")["t.yaml"]+"---\n"+w.files("100")["p.yaml"], "name: a", "name: stays")
	w.repo.Commit("gone", map[string]string{"t.yaml": sourcetest.Delete, "stays.yaml": stays})
	w.waitValue("eu-1", "")
	if bodies := b.deletes(); len(bodies) != 1 || !strings.Contains(bodies[0], `"resourceVersion":"`) || !strings.Contains(bodies[0], `"uid":"`) {
		t.Errorf("deletes %v", bodies)
	}
}
