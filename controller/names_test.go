// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/dispatch/embedded"
	"github.com/fairlead/fairlead/lease"
	"github.com/fairlead/fairlead/source/sourcetest"
)

// T47: two names for one cluster, in shards of two replicas: the later one is refused, also
// after the replica that serves the first has been killed; and it is served when the first has
// left git.
func TestTwoNamesInTwoReplicas(t *testing.T) {
	h := newShardedHub(t, 0.1)
	pods := []string{"fairlead-0", "fairlead-1"}
	shard, err := lease.ShardOf("eu-1", "", 32)
	h.must(err)
	assigned := lease.Assign(32, pods)
	other := slices.IndexFunc(assigned, func(pod int) bool { return pod != assigned[shard] })

	for _, pod := range pods {
		h.start(pod)
	}
	h.create(h.fleet("acme"))
	h.waitHolders(32, pods...)
	h.waitImages("1.0")
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())

	first := h.members["eu-1"]
	h.members["aa-9"] = first
	h.secret("members", map[string]string{"value": h.hub.kubeconfig()})
	before := len(changes(first.Requests()))
	second := func(zone string) string {
		return fmt.Sprintf("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\n"+
			"metadata: {name: aa-9, labels: {env: production}, annotations: {fairlead.dev/shard: \"%02d\"}}\n"+
			"spec: {syncMode: Push, region: europe, zone: %s}\n", other, zone)
	}
	h.commit("a second name", map[string]string{"clusters/aa-9.yaml": second("a")})
	h.waitFor("acme", "it is the same cluster as eu-1")
	if n := len(changes(first.Requests())) - before; n > 0 {
		t.Errorf("%d writes for a second name", n)
	}

	one := h.replicas[pods[assigned[shard]]]
	one.end(t, 9)
	h.waitHolders(32, h.others(one)...)
	h.release("2.0")
	h.waitImages("2.0")
	h.waitFor("acme", "it is the same cluster as eu-1")
	sent := 0
	for _, r := range changes(first.Requests()) {
		if strings.HasSuffix(r, "/deployments/web") {
			sent++
		}
	}
	if sent != 2 {
		t.Errorf("web was sent %d times to a cluster of two names, want one for each of two commits", sent)
	}

	h.commit("the first name leaves", map[string]string{"clusters/eu-1.yaml": sourcetest.Delete, "clusters/aa-9.yaml": second("b")})
	h.waitFor("acme", "3/3 applied main@sha1:"+h.repo.Head())
	h.must(h.client.Delete(context.Background(), h.get("acme")))
	h.eventually("what was recorded is gone", func() string {
		var list corev1.ConfigMapList
		h.must(h.client.List(context.Background(), &list, client.HasLabels{"fairlead.dev/record"}))
		if n := len(list.Items); n > 0 {
			return fmt.Sprint(n)
		}
		return ""
	})
}

// changes are the requests that may have changed something.
func changes(requests []embedded.Request) (all []string) {
	for _, r := range requests {
		if r.Method != http.MethodGet {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	return all
}
