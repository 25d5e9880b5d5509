// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"maps"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/lease"
)

func stored(fleet string) *coordinationv1.Lease {
	holder, seconds, transitions := "fairlead-1_b", int32(40), int32(3)
	at := metav1.NewMicroTime(time.Unix(1, 0))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "fairlead-acme-shard-07-of-32", ResourceVersion: "12",
			Labels:      map[string]string{"fairlead.dev/fleet": fleet, "fairlead.dev/lease": "shard", "team": "web"},
			Annotations: map[string]string{"fairlead.dev/sent": "c1", "fairlead.dev/next": "fairlead-0", "note": "ours"},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, LeaseTransitions: &transitions, AcquireTime: &at},
	}
}

// What others wrote into a Lease stays there.
func TestLeaseKeepsTheRest(t *testing.T) {
	r := New(nil, Options{Fleet: "acme", Pod: "fairlead-0", Shards: 32})
	rec, err := r.record(stored("acme"))
	if err != nil {
		t.Fatal(err)
	}
	want := lease.Record{
		Name: "fairlead-acme-shard-07-of-32", Kind: lease.Shard, Version: 12, Holder: "fairlead-1_b", Transitions: 3,
		Duration: 40 * time.Second, Sent: "c1", Next: "fairlead-0",
	}
	if rec != want {
		t.Errorf("%+v, not %+v", rec, want)
	}

	rec.Next, rec.Engine = "", "1.0"
	l := r.lease(rec)
	if !maps.Equal(l.Annotations, map[string]string{"fairlead.dev/sent": "c1", "fairlead.dev/engine": "1.0", "note": "ours"}) || l.Labels["team"] != "web" {
		t.Errorf("labels %v, annotations %v", l.Labels, l.Annotations)
	}
	if !l.Spec.AcquireTime.Time.Equal(time.Unix(1, 0)) || l.Spec.RenewTime == nil || l.ResourceVersion != "12" {
		t.Errorf("a renewal: %+v", l.Spec)
	}

	rec.Holder = ""
	if l := r.lease(rec); l.Spec.HolderIdentity != nil {
		t.Errorf("given back: %+v", l.Spec)
	}
}

func TestLeaseOfSomebodyElse(t *testing.T) {
	r := New(nil, Options{Fleet: "acme", Pod: "fairlead-0", Shards: 32})
	if _, err := r.record(stored("other")); err == nil || !strings.Contains(err.Error(), `default/fairlead-acme-shard-07-of-32: label fairlead.dev/fleet is "other"`) {
		t.Error(err)
	}
	l := stored("acme")
	l.ResourceVersion = "x"
	if _, err := r.record(l); err == nil {
		t.Error("a version that is no number")
	}
}
