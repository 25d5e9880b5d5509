// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead/fairlead/lease"
)

// LabelRecord of a ConfigMap says what replicas have written there; its value is Members
// for claims.
const (
	LabelRecord = "fairlead.dev/record"
	Members     = "members"
)

// annotationHolder is who has written last, and how often it had: each write is another one,
// so that one that comes late conflicts.
const annotationHolder = "fairlead.dev/holder"

// claim is what a ConfigMap says of a cluster.
type claim struct {
	uid types.UID
	// pending claims are no record yet. named is one that spec.id names.
	pending, named bool
}

// String reads "UID", "UID pending" or "UID pending spec.id".
func (c claim) String() string {
	switch {
	case !c.pending:
		return string(c.uid)
	case c.named:
		return string(c.uid) + " pending spec.id"
	}
	return string(c.uid) + " pending"
}

func parseClaim(text string) (claim, error) {
	uid, rest, more := strings.Cut(text, " ")
	c := claim{types.UID(uid), more, rest == "pending spec.id"}
	if uid == "" || c.String() != text {
		return claim{}, fmt.Errorf("%q is not a UID, or one with \"pending\"", text)
	}
	return c, nil
}

// record is a ConfigMap.
type record struct {
	stored *corev1.ConfigMap // nil before there is one
	claims map[string]claim
	// since is the shard as it was held when this was read. written is whether it was
	// written since: before, a former holder may still write it.
	since   *holding
	written bool
}

// read is what a ConfigMap says. One that cannot be read is an error, and not empty.
func read(m *corev1.ConfigMap) (*record, error) {
	r := &record{stored: m, claims: make(map[string]claim, len(m.Data))}
	for cluster, text := range m.Data {
		c, err := parseClaim(text)
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %s: %w; delete the entry", m.Namespace, m.Name, cluster, err)
		}
		r.claims[cluster] = c
	}
	return r, nil
}

// configMap is a ConfigMap that says so. What others wrote beside it stays.
func configMap(name, fleet, holder string, stored *corev1.ConfigMap, claims map[string]claim) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if stored != nil {
		m = stored.DeepCopy()
	}
	m.ManagedFields = nil
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Labels[lease.LabelFleet], m.Labels[LabelRecord] = lease.FleetLabel(fleet), Members
	m.Annotations[annotationHolder] = holder
	m.Data = make(map[string]string, len(claims))
	for cluster, c := range claims {
		m.Data[cluster] = c.String()
	}
	return m
}
