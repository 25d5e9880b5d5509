// SPDX-License-Identifier: Apache-2.0

package sharing

import (
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/dispatch/push"
	"github.com/fairlead/fairlead/fleet"
)

// Members makes the members that a process may write to. Whoever has one cannot write past
// the gate of a shard: nothing else in a controller makes a member.
type Members interface {
	// Push is the way to a cluster behind a Kubernetes API; each wrap goes around it.
	Push(cfg *push.Config, c *fleet.Cluster, wrap ...func(member.Member) member.Member) (member.Member, error)
	// Pull is the way to a cluster that pulls from a branch.
	Pull(in pull.Branches, branch string, c *fleet.Cluster) (member.Member, error)
}

// Alone is for a process that shares the clusters with nobody.
type Alone struct{}

// Push is push.New.
func (Alone) Push(cfg *push.Config, _ *fleet.Cluster, wrap ...func(member.Member) member.Member) (member.Member, error) {
	m, err := push.New(cfg, push.Options{})
	if err != nil {
		return nil, err
	}
	for _, w := range wrap {
		m = w(m)
	}
	return m, nil
}

// Pull is pull.Branch.
func (Alone) Pull(in pull.Branches, branch string, _ *fleet.Cluster) (member.Member, error) {
	return pull.Branch(in, branch), nil
}
