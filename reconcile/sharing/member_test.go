// SPDX-License-Identifier: Apache-2.0

package sharing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/fairlead/fairlead/lease"
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

// TestMoveBetweenReplicas: what moves from a cluster to one of another replica stays until
// that one has it.
func TestMoveBetweenReplicas(t *testing.T) {
	pods := []string{"fairlead-0", "fairlead-1"}
	from, to := "", "" // clusters of the one and of the other
	for i := 0; from == "" || to == ""; i++ {
		name := "m" + strconv.Itoa(i)
		shard, _ := lease.ShardOf(name, "", shards)
		if lease.Assign(shards, pods)[shard] == 0 {
			from = name
		} else {
			to = name
		}
	}
	w := newWorld(t, from, to)
	files := w.files("1")
	on := func(cluster string) map[string]string {
		return map[string]string{"p.yaml": strings.ReplaceAll(w.files("1")["p.yaml"], "placement: {}", "placement: {clusterAffinity: {clusterNames: ["+cluster+"]}}")}
	}
	files["p.yaml"] = on(from)["p.yaml"]
	w.repo.Commit("begin", files)
	a, b := w.start(pods[0]), w.start(pods[1])
	shares := assigned(pods...)
	a.waitOwns(shares[pods[0]]...)
	b.waitOwns(shares[pods[1]]...)
	w.waitValue(from, "1")

	w.members[to].Partition(true)
	w.repo.Commit("move", on(to))
	w.eventually("it waits for "+to, func() string {
		for _, line := range a.lines() {
			if strings.Contains(line, "waits for "+to) {
				return ""
			}
		}
		return fmt.Sprintf("%+v", a.loop.Status())
	})
	if got := w.value(from); got != "1" {
		t.Errorf("%s has %q, before %s has it", from, got, to)
	}
	w.members[to].Partition(false)
	w.waitValue(to, "1")
	w.waitValue(from, "")
}

// TestResize: with another number of shards all of the former ones are given up before one
// of the new is taken, and a cluster keeps what it has. An annotation puts a cluster into a
// shard; one that names none is an error of the cluster.
func TestResize(t *testing.T) {
	w := newWorld(t, "eu-1", "us-1")
	w.repo.Commit("begin", w.files("1"))
	a := w.start("fairlead-0")
	a.waitOwns(0, 1, 2, 3, 4, 5, 6, 7)
	w.waitValue("eu-1", "1")
	w.waitValue("us-1", "1")
	a.taken()
	a.replica.Resize(3)
	a.waitOwns(0, 1, 2)
	if writes := a.taken(); len(writes) > 0 {
		t.Errorf("writes %v", writes)
	}

	cluster := func(shard string) map[string]string {
		text := w.files("2")["clusters/eu-1.yaml"]
		return map[string]string{"clusters/eu-1.yaml": strings.ReplaceAll(text, "{name: eu-1}", `{name: eu-1, annotations: {fairlead.dev/shard: "`+shard+`"}}`), "t.yaml": w.files("2")["t.yaml"]}
	}
	w.repo.Commit("a shard of its own", cluster("2"))
	w.waitValue("eu-1", "2")
	w.repo.Commit("no such shard", cluster("07"))
	w.eventually("the error is that of the cluster", func() string {
		for _, s := range a.loop.Status() {
			if s.Cluster == "eu-1" && s.Err != nil && strings.Contains(s.Err.Error(), `annotation fairlead.dev/shard: "07" is not a shard: use a number from 0 to 2 (clusters/eu-1.yaml:`) {
				return ""
			}
		}
		return fmt.Sprint(a.loop.Status())
	})
}
