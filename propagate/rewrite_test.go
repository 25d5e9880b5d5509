// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/propagate"
)

const rewritten = `
-- c1/fairlead.yaml --
apiVersion: fairlead.dev/v1alpha1
kind: FleetConfig
spec: {onBroken: FreezeUnit}
-- c1/fleet.yaml --
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m1}
spec: {syncMode: Push}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  resourceSelectors:
  - {apiVersion: v1, kind: ConfigMap}
-- c1/api.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: api, namespace: default}
-- c1/web.yaml --
`

// On a rewritten branch a unit may be broken from its first commit on. What it
// rendered on the old one is held then, and not deleted: the guard counts the
// old state to the new one as one step (fold rules 5 and 21).
func TestRewriteHoldsWhatCannotBeRead(t *testing.T) {
	fold := func(web string) (s propagate.State) {
		for _, c := range history(txtar.Parse([]byte(rewritten + web))) {
			s = propagate.Step(s, c.Commit)
		}
		return s
	}
	old := fold("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: default}\n")
	line := fold("!broken YAML: it cannot be read\n")
	if old.Bindings.Len() != 2 || line.Bindings.Len() != 1 {
		t.Fatalf("%d and %d bindings", old.Bindings.Len(), line.Bindings.Len())
	}
	head := propagate.Commit{Hash: "head"}
	held := propagate.Rewrite(old, line, head)
	if held.Refusal == nil || held.Refusal.Guard == nil || !strings.Contains(held.Refusal.Problems[0].Message, "web.yaml rendered 1 object and now renders none") {
		t.Fatalf("not held:\n%s", print(&held, nil))
	}
	if held.Bindings.Len() != 2 || held.Tombstones.Len() != 0 {
		t.Errorf("held, and something is gone:\n%s", print(&held, nil))
	}
	key, value, _ := strings.Cut(held.Refusal.Guard.Trailer(), ": ")
	head.Trailers = []propagate.Trailer{{Key: key, Value: value}}
	if allowed := propagate.Rewrite(old, line, head); allowed.Refusal != nil || allowed.Tombstones.Len() != 1 {
		t.Errorf("not allowed:\n%s", print(&allowed, nil))
	}
}

const rewrittenFleet = `
-- c1/fleet.yaml --
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m1}
spec: {syncMode: Push}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: other, namespace: default}
spec:
  resourceSelectors:
  - {apiVersion: v1, kind: ConfigMap, name: other}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: default}
-- c1/policy.yaml --
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  resourceSelectors:
  - {apiVersion: v1, kind: ConfigMap, name: web}
-- c1/web.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: default}
`

// What becomes of an object is what the new line says, as if it had been folded
// alone (fold rule 5): one that it wants has not departed, and one that it
// removed with preserve is preserved, whatever the old one said.
func TestRewriteDepartsAsTheNewLineSays(t *testing.T) {
	const (
		there     = ""
		deleted   = "-- c2/-delete --\nweb.yaml\n"
		preserved = deleted + `-- c2/policy.yaml --
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  preserveResourcesOnDeletion: true
  resourceSelectors:
  - {apiVersion: v1, kind: ConfigMap, name: web}
`
		deletesNothing = `-- c3/fairlead.yaml --
apiVersion: fairlead.dev/v1alpha1
kind: FleetConfig
spec: {maxDelete: 0}
`
		cluster = `-- c2/fleet.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: default}
`
	)
	fold := func(steps string) (s propagate.State) {
		for _, c := range history(txtar.Parse([]byte(rewrittenFleet + steps))) {
			s = propagate.Step(s, c.Commit)
		}
		return s
	}
	web := object.ID{Kind: "ConfigMap", Namespace: "default", Name: "web"}
	for _, c := range []struct{ old, line, want string }{
		{there, there, "there"},
		{there, deleted, "deleted"},
		{there, preserved, "preserved"},
		{there, preserved + deletesNothing, "preserved"},
		{there, deleted + deletesNothing, "held"},
		{deleted, there, "there"},
		{deleted, deleted, "deleted"},
		{deleted, preserved, "preserved"},
		{preserved, there, "there"},
		{preserved, deleted, "deleted"},
		{preserved, preserved, "preserved"},
		{there, preserved + cluster, "left, preserved"},
		{there, deleted + cluster, "left, deleted"},
	} {
		s := propagate.Rewrite(fold(c.old), fold(c.line), propagate.Commit{Hash: "head"})
		got := "there"
		gone := s.Removal("m1", web)
		if left := s.Detached.At(web.Key()); left != nil {
			gone, got = &left.Clusters[0], "left, "
		}
		switch {
		case s.Refusal != nil:
			got = "held"
		case gone != nil && gone.Preserve:
			got = strings.TrimPrefix(got, "there") + "preserved"
		case gone != nil:
			got = strings.TrimPrefix(got, "there") + "deleted"
		}
		if got != c.want {
			t.Errorf("%s, want %s, from\n%s\nto\n%s", got, c.want, c.old, c.line)
		}
	}
}
