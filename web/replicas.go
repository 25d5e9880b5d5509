// SPDX-License-Identifier: Apache-2.0

package web

import (
	"github.com/fairlead/fairlead/look/report"
	"github.com/fairlead/fairlead/web/draw"
)

// drawReplicas draws what each cluster runs of the replicas that it is asked for. One
// cluster is told in the table.
func (b *templateBody) drawReplicas(clusters []report.WhyCluster, cells map[string]cell) {
	r := draw.Replicas{Name: b.Title, Live: b.Seen}
	for i := range clusters {
		c := &clusters[i]
		if at, there := cells[c.Cluster]; there && c.Replicas != nil {
			r.Shares = append(r.Shares, share(c, at, b.Cluster(c.Cluster)))
		}
	}
	if len(r.Shares) > 1 {
		b.Wide, b.Narrow = picture(r.SVG(wideWidth)), picture(r.SVG(narrowWidth))
	}
}

// share is one cluster. What is held is the part of the change that is not released.
func share(c *report.WhyCluster, at cell, address string) draw.Share {
	s := draw.Share{Cluster: c.Cluster, Href: address, Asked: c.Replicas.Asked, Running: c.Replicas.After}
	if at.held {
		s.Held = max(c.Replicas.Asked-c.Replicas.After, c.Replicas.After-c.Replicas.Asked)
	}
	if at.available >= 0 {
		s.Running = at.available
	}
	return s
}
