// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/fairlead/fairlead/eventlog"
	"github.com/fairlead/fairlead/reconcile"
)

// F41, and T44: what is edited or deleted by hand in a member is brought back
// within a second or so, and told; what is held is not. While nothing happens,
// nothing is asked.
func TestDriftIsRestoredExceptWhereItIsHeld(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	files := map[string]string{
		"web.yaml": configMap("web", "1"), "held.yaml": configMap("held", "1"),
		"policy.yaml":      policyFor("ConfigMap", "web"),
		"held-policy.yaml": policyFor("ConfigMap", "held"),
	}
	for _, name := range names {
		files["clusters/"+name+".yaml"] = failoverCluster(name, "")
	}
	w.repo.Commit("release", files)
	w.settle()
	w.repo.Commit("hold", map[string]string{"held-policy.yaml": files["held-policy.yaml"] + "  suspension: {dispatching: true}\n"})
	opt := w.options()
	opt.Watch = true
	l, err := reconcile.Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()
	defer func() {
		stop()
		<-ended
		l.Close()
	}()
	w.eventually("the loop watches", func() bool { return strings.Contains(strings.Join(w.members["eu-1"].seen(), "\n"), "configmaps") })
	time.Sleep(200 * time.Millisecond)
	for _, m := range w.members {
		m.reset()
	}
	time.Sleep(300 * time.Millisecond)
	for _, name := range names {
		if requests := w.members[name].taken(); len(requests) > 0 {
			t.Errorf("%s is asked while nothing happens: %v", name, requests)
		}
	}

	client := dynamic.NewForConfigOrDie(w.members["eu-1"].config).Resource(configMaps).Namespace("default")
	for _, name := range []string{"web", "held"} {
		if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("web is back", func() bool { return w.get("eu-1", configMaps, "default", "web") != nil })
	time.Sleep(200 * time.Millisecond)
	if w.get("eu-1", configMaps, "default", "held") != nil {
		t.Error("what is held was made again")
	}
	if said := w.said(); !strings.Contains(said, "eu-1: restore ConfigMap default/web: it was deleted") {
		t.Errorf("it was not told:\n%s", said)
	}
	w.eventually("it is recorded", func() bool {
		record := eventlog.NewReader(w.state)
		defer record.Close()
		found, err := record.Next()
		return err == nil && slices.ContainsFunc(found, func(e eventlog.Event) bool { return e.Type == eventlog.Restored && e.Text == "it was deleted" })
	})
}

func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not in time: %s\n%s", what, w.said())
		}
	}
}
