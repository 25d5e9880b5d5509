// SPDX-License-Identifier: Apache-2.0

package sharing_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/fairlead/fairlead/lease"
)

// failover are the files of a fleet whose clusters of two in three have a ConfigMap, under
// the gate Failover. A cluster that is broken has a taint.
func (w *world) failover(value string, broken ...string) map[string]string {
	files := w.files(value)
	files["fairlead.yaml"] = "apiVersion: fairlead.dev/v1alpha1\nkind: FleetConfig\nspec: {featureGates: {Failover: true}}\n"
	files["p.yaml"] = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: a, namespace: default}\n" +
		"spec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: a}]\n  placement: {spreadConstraints: [{maxGroups: 2, minGroups: 2}]}\n"
	for _, name := range broken {
		file := "clusters/" + name + ".yaml"
		files[file] = strings.Replace(files[file], "syncMode: Push", "syncMode: Push, taints: [{key: broken, effect: NoExecute}]", 1)
	}
	return files
}

// has are the clusters that have the ConfigMap, with its value.
func (w *world) has() string {
	var has []string
	for _, name := range []string{"ap-1", "eu-1", "us-1"} {
		if v := w.value(name); v != "" {
			has = append(has, name+"="+v)
		}
	}
	return strings.Join(has, " ")
}

func (w *world) waitHas(want string) {
	w.t.Helper()
	w.eventually("they have "+want, func() string {
		if got := w.has(); got != want {
			return "they have " + got
		}
		return ""
	})
}

// log is the ConfigMap with what was observed.
func (w *world) log() map[string]string {
	w.t.Helper()
	core, err := corev1.NewForConfig(w.hub.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := core.ConfigMaps("default").Get(context.Background(), lease.ObservedName(fleetName), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return m.Data
}

// Without the gate Failover nothing is observed, and no log is asked for.
func TestNothingIsObservedWithoutTheGate(t *testing.T) {
	w := newWorld(t, "ap-1", "eu-1", "us-1")
	w.repo.Commit("1", w.files("1"))
	a, b := w.start("fairlead-0"), w.start("fairlead-1")
	w.waitHas("ap-1=1 eu-1=1 us-1=1")
	a.stop()
	b.stop()
	for _, r := range w.hub.Requests() {
		if strings.Contains(r.Path, "-observed") || strings.Contains(r.Path, "-seen") {
			t.Errorf("%s %s", r.Method, r.Path)
		}
	}
}

// A copy is moved from a cluster of one replica to a cluster of another: it goes when the
// new one is seen to be healthy, by whoever has that cluster. Then the replica dies that
// has done it, and another goes on from where it was, without a checkpoint.
func TestFailoverBetweenReplicas(t *testing.T) {
	w := newWorld(t, "ap-1", "eu-1", "us-1")
	w.repo.Commit("1", w.failover("1"))
	pods := []string{"fairlead-0", "fairlead-1"}
	shares := assigned(pods...)
	a, b := w.start(pods[0]), w.start(pods[1])
	a.waitOwns(shares[pods[0]]...)
	b.waitOwns(shares[pods[1]]...)
	w.waitHas("ap-1=1 eu-1=1")

	w.repo.Commit("2", w.failover("2", "ap-1"))
	w.waitHas("eu-1=2 us-1=2")

	w.repo.Commit("3", w.failover("3"))
	w.waitHas("eu-1=3 us-1=3") // it stays where it has been moved to

	leader, follower := a, b
	if b.replica.Leads() {
		leader, follower = b, a
	}
	leader.kill()
	follower.waitOwns(0, 1, 2, 3, 4, 5, 6, 7)
	c := w.start("fairlead-2")
	w.repo.Commit("4", w.failover("4", "us-1"))
	w.waitHas("ap-1=4 eu-1=4")

	w.eventually("both have folded the same", func() string {
		if log := w.log(); log["head"] != w.repo.Head() {
			return fmt.Sprintf("the log is at %s", log["head"])
		}
		return ""
	})
	follower.stop()
	c.waitOwns(0, 1, 2, 3, 4, 5, 6, 7)
	w.repo.Commit("5", w.failover("5"))
	w.waitHas("ap-1=5 eu-1=5") // who began later has folded that it was moved back
}

// TestLaggardOfObservations: B has folded the commit that A has sent, and not what was
// observed after it, by which A has removed a copy. A dies, and B takes its clusters when it
// knows that: before, it would put the copy back.
func TestLaggardOfObservations(t *testing.T) {
	w := newWorld(t, "ap-1", "eu-1", "us-1")
	w.repo.Commit("0", map[string]string{"fairlead.yaml": w.failover("")["fairlead.yaml"]})
	pods := []string{"fairlead-0", "fairlead-1"}
	shares := assigned(pods...)
	a, b := w.start(pods[0]), w.start(pods[1])
	a.waitOwns(shares[pods[0]]...)
	b.waitOwns(shares[pods[1]]...)
	leader, other := a, b
	if b.replica.Leads() {
		leader, other = b, a
	}
	shard := shares[leader.pod][0]
	fleet := func(value string, broken ...string) map[string]string {
		files := w.failover(value, broken...)
		for name, text := range files {
			if strings.HasPrefix(name, "clusters/") {
				files[name] = strings.Replace(text, "metadata: {", fmt.Sprintf("metadata: {annotations: {fairlead.dev/shard: \"%02d\"}, ", shard), 1)
			}
		}
		return files
	}
	w.repo.Commit("1", fleet("1"))
	w.waitHas("ap-1=1 eu-1=1")

	other.until.Store(w.repo.Commit("2", fleet("2", "ap-1")))
	w.waitHas("eu-1=2 us-1=2")
	w.eventually("B has folded the commit", func() string {
		if !other.blind.Load() {
			return "not yet"
		}
		return ""
	})
	leader.kill()
	other.taken()
	other.waitOwns(allBut(shard)...)
	if writes := other.taken(); len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}

	other.until.Store("")
	other.blind.Store(false)
	other.waitOwns(0, 1, 2, 3, 4, 5, 6, 7)
	w.repo.Commit("3", fleet("3"))
	w.waitHas("eu-1=3 us-1=3")
}
