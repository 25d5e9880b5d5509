// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"
)

// decision is what becomes of a claim.
type decision int

const (
	granted decision = iota
	// refused: another name has the cluster.
	refused
	// awaits: the other name's claim is pending, and about to be withdrawn.
	awaits
	// yields: git does not let the other name have it, whose claim is about to be dropped.
	yields
)

// standing is how well a name stands with a cluster.
type standing struct {
	name            string
	recorded, named bool
}

// compare is decision 49: a record comes first, then what spec.id names, then the first by
// name.
func (s standing) compare(o standing) int {
	return cmp.Or(first(s.recorded, o.recorded), first(s.named, o.named), cmp.Compare(s.name, o.name))
}

func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// standings are the names that a list has for a cluster. One name may be there twice, in a
// shard that it has left.
func standings(list map[string]*record, uid types.UID) map[string]standing {
	all := map[string]standing{}
	for _, r := range list {
		for name, c := range r.claims {
			if c.uid != uid {
				continue
			}
			s := all[name]
			all[name] = standing{name, s.recorded || !c.pending, s.named || c.named}
		}
	}
	return all
}

// decide says what becomes of the claim of a name that is written as pending, and which
// other name is the reason. keeps reports whether git, as it is folded here, lets another
// name have the cluster.
func decide(name string, all map[string]standing, keeps func(name string) bool) (decision, string) {
	own := all[name]
	var best standing
	for other, s := range all {
		if other != name && (best.name == "" || s.compare(best) < 0) {
			best = s
		}
	}
	switch {
	case best.name == "":
		return granted, ""
	case own.compare(best) < 0:
		return awaits, best.name
	case !keeps(best.name):
		return yields, best.name
	}
	return refused, best.name
}
