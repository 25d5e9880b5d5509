// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"

	"github.com/fairlead/fairlead/printable"
)

// column is a count that a table of clusters has.
type column struct {
	name  string
	count func(*Cluster) int
}

// text is the count, or the name of the wave; "" for none.
func (c column) text(of *Cluster) string {
	n := c.count(of)
	switch {
	case n == 0:
		return ""
	case c.name == "wave" && of.WaveName != "":
		return printable.Line(of.WaveName)
	}
	return strconv.Itoa(n)
}

// alarming marks the column that a reader has to see.
func (c column) alarming() bool { return c.name == "deleted" }

var columns = []column{
	{"wave", func(c *Cluster) int { return c.Wave }},
	{"now", func(c *Cluster) int { return c.Now }},
	{"released", func(c *Cluster) int { return c.Released }},
	{"held", func(c *Cluster) int { return c.Newly().Held }},
	{"deferred", func(c *Cluster) int { return c.Newly().Deferred }},
	{"blocked", func(c *Cluster) int { return c.Newly().Blocked }},
	{"deleted", func(c *Cluster) int { return c.Gone() }},
	{"left running", func(c *Cluster) int { return c.Preserved }},
	{"as before", func(c *Cluster) int { return c.Already.all() }},
}

// busy are the clusters on which something happens or newly waits, the columns in which
// one of them has something, and how many more clusters there are.
func (r *Plan) busy() (clusters []*Cluster, used []column, quiet int) {
	for i := range r.Clusters {
		if c := &r.Clusters[i]; c.quiet() {
			quiet++
		} else {
			clusters = append(clusters, c)
		}
	}
	for _, column := range columns {
		if slices.ContainsFunc(clusters, func(c *Cluster) bool { return column.count(c) > 0 }) {
			used = append(used, column)
		}
	}
	return clusters, used, quiet
}

// quiet reports whether nothing happens on a cluster, and nothing newly waits.
func (c *Cluster) quiet() bool {
	return c.Now+c.Released+c.Deleted+c.Preserved+c.Newly().all() == 0
}
