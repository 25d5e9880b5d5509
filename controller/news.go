// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/reconcile"
)

// Reasons of events about what has happened.
const (
	ReasonApplied       = "Applied"
	ReasonHeld          = "Held"
	ReasonReleased      = "Released"
	ReasonLeftRunning   = "LeftRunning"
	ReasonDeleted       = "Deleted"
	ReasonDriftRestored = "DriftRestored"
)

// news is what has happened since it was announced last: how many objects, by commit,
// reason and cluster.
type news struct {
	of map[happening]map[string]int
}

type happening struct{ commit, reason string }

// reasonsOf are the acts that are announced.
var reasonsOf = map[dispatch.Op]string{
	dispatch.OpApply:   ReasonApplied,
	dispatch.OpAdopt:   ReasonApplied,
	dispatch.OpRestore: ReasonDriftRestored,
	dispatch.OpDelete:  ReasonDeleted,
	dispatch.OpOrphan:  ReasonLeftRunning,
}

// add takes in a Result, and reports whether it has news. Whoever does something announces
// it; what the fold has decided is announced by the one replica that leads.
func (n *news) add(r *reconcile.Result, leads bool) (has bool) {
	for _, a := range r.Acts {
		if reason := reasonsOf[a.Verb]; reason != "" && a.Err == nil {
			n.count(a.Commit, reason, a.Cluster)
			has = true
		}
	}
	if !leads {
		return has
	}
	for _, c := range r.Changes {
		switch c.Type {
		case propagate.ChangeHeld:
			n.count(r.Accepted, ReasonHeld, c.Cluster)
			has = true
		case propagate.ChangeReleased:
			n.count(r.Accepted, ReasonReleased, c.Cluster)
			has = true
		}
	}
	return has
}

func (n *news) count(commit, reason, cluster string) {
	if n.of == nil {
		n.of = map[happening]map[string]int{}
	}
	key := happening{commit, reason}
	if n.of[key] == nil {
		n.of[key] = map[string]int{}
	}
	n.of[key][cluster]++
}

// announcement is one event.
type announcement struct{ commit, kind, reason, message string }

// announce makes an event of each commit and reason: of a commit that changes a hundred
// clusters, a hundred events would be dropped by the server.
func (n *news) announce() (all []announcement) {
	for h, clusters := range n.of {
		objects := 0
		for _, times := range clusters {
			objects += times
		}
		names := slices.Sorted(maps.Keys(clusters))
		where := strings.Join(names[:min(len(names), mostNamed)], ", ")
		if more := len(names) - mostNamed; more > 0 {
			where += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, announcement{h.commit, corev1.EventTypeNormal, h.reason, fmt.Sprintf("%s on %s", verbs[h.reason](count(objects, "object")), where)})
	}

	slices.SortFunc(all, func(a, b announcement) int { return strings.Compare(a.reason+a.commit, b.reason+b.commit) })
	return all
}

// verbs say what was done to some objects.
var verbs = map[string]func(objects string) string{
	ReasonApplied:       func(o string) string { return o + " applied" },
	ReasonHeld:          func(o string) string { return o + " held back" },
	ReasonReleased:      func(o string) string { return o + " released that had been held or deferred" },
	ReasonLeftRunning:   func(o string) string { return o + " left running, without our marks" },
	ReasonDeleted:       func(o string) string { return o + " deleted" },
	ReasonDriftRestored: func(o string) string { return o + " restored that had been changed by hand" },
}
