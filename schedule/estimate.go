// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// Needs are what one replica asks of a cluster. A nil Needs only needs a place
// for a pod.
type Needs struct {
	// Resources are the requests, each with an amount above 0. Empty means that a
	// replica only constrains its node.
	Resources []Amount
}

// Amount is an amount of a resource: cpu in thousandths, others in units.
type Amount struct {
	Name  corev1.ResourceName
	Count int64
}

// NewNeeds turns a pod's requests into needs; nil for nil requests.
func NewNeeds(requests corev1.ResourceList) *Needs {
	n := &Needs{}
	for name, q := range requests {
		if a := amount(name, q); a.Count > 0 {
			n.Resources = append(n.Resources, a)
		}
	}
	return n
}

func amount(name corev1.ResourceName, q resource.Quantity) Amount {
	if name == corev1.ResourceCPU {
		return Amount{name, q.MilliValue()}
	}
	return Amount{name, q.Value()}
}

const (
	// unbounded is the capacity of a cluster that was not estimated.
	unbounded = math.MaxInt32
	// podsOfNode is the number of pods on a node of a model (digest §4.4).
	podsOfNode = 110
)

// room is the free capacity of a cluster, as last observed.
type room struct {
	pods   int64 // 0 also if the cluster does not report it
	free   []Amount
	models []model
	// modelled clusters report the sizes of their nodes, which say more than the
	// sum of free resources.
	modelled bool
}

// model is a number of nodes that each have at least this much free.
type model struct {
	nodes int64
	free  []Amount
}

func newRoom(c *clusterv1alpha1.Cluster) room {
	s := c.Status.ResourceSummary
	if s == nil {
		return room{}
	}

	var r room
	for name, q := range s.Allocatable {
		free := q.DeepCopy()
		for _, taken := range []corev1.ResourceList{s.Allocated, s.Allocating} {
			if t, ok := taken[name]; ok {
				free.Sub(t)
			}
		}

		a := amount(name, free)
		if name == corev1.ResourcePods {
			r.pods = a.Count
			continue
		}

		r.free = append(r.free, a)
	}

	r.models, r.modelled = models(c.Spec.ResourceModels, s.AllocatableModelings)
	return r
}

// models are the nodes by grade. A node offers the minimum of its grade.
// Negative counts are invalid, and then the sums are used instead.
func models(grades []clusterv1alpha1.ResourceModel, counts []clusterv1alpha1.AllocatableModeling) (all []model, ok bool) {
	if len(counts) == 0 {
		return nil, false
	}

	if len(grades) == 0 {
		grades = defaultGrades()
	}

	nodes := map[uint]int64{}
	for _, c := range counts {
		if c.Count < 0 {
			return nil, false
		}
		nodes[c.Grade] = int64(c.Count)
	}

	for _, g := range grades {
		if nodes[g.Grade] == 0 {
			continue
		}
		m := model{nodes: nodes[g.Grade]}
		for _, r := range g.Ranges {
			m.free = append(m.free, amount(r.Name, r.Min))
		}
		all = append(all, m)
	}

	return all, true
}

// defaultGrades are the grades of a cluster without any (digest §1.4), with the
// minimum of each counted resource.
func defaultGrades() []clusterv1alpha1.ResourceModel {
	var grades []clusterv1alpha1.ResourceModel
	for i, least := range [][2]int64{{0, 0}, {1, 4}, {2, 16}, {4, 32}, {8, 64}, {16, 128}, {32, 256}, {64, 512}, {128, 1024}} {
		cores, gibibytes := least[0], least[1]
		grades = append(grades, clusterv1alpha1.ResourceModel{Grade: uint(i), Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: corev1.ResourceCPU, Min: *resource.NewQuantity(cores, resource.DecimalSI)},
			{Name: corev1.ResourceMemory, Min: *resource.NewQuantity(gibibytes<<30, resource.BinarySI)},
		}})
	}

	return grades
}

// takes is the number of additional replicas with these needs that fit (digest
// §4.4).
func (r *room) takes(n *Needs) int64 {
	switch {
	case r.pods <= 0:
		return 0
	case n == nil:
		return min(r.pods, unbounded)
	case r.modelled:
		return min(r.modelsTake(n), unbounded)
	}

	return min(n.fit(r.free, r.pods), unbounded)
}

func (r *room) modelsTake(n *Needs) int64 {
	pods := min(r.pods, unbounded) // so that the sum stays in range
	var sum int64
	for _, m := range r.models {
		each := n.fit(m.free, podsOfNode)
		if each == 0 {
			continue
		}
		if m.nodes > pods/each {
			return pods // also if the product would overflow
		}
		sum = min(sum+m.nodes*each, pods)
	}

	return sum
}

// fit is how many times the needs fit into free resources, up to a limit.
func (n *Needs) fit(free []Amount, limit int64) int64 {
	for i := range n.Resources {
		limit = min(limit, max(amountOf(free, n.Resources[i].Name), 0)/n.Resources[i].Count)
	}
	return limit
}

func amountOf(all []Amount, name corev1.ResourceName) int64 {
	for i := range all {
		if all[i].Name == name {
			return all[i].Count
		}
	}
	return 0
}
