// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

// servedNamespaces are on every cluster from its beginning.
var servedNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}

// neededNamespaces adds a line for each namespace that is made on a cluster because
// something needs it there (fold rule 27, decision 37), and a caution where no
// template is that namespace: its name may be misspelt.
func (p *planner) neededNamespaces() {
	needed := p.firstInNamespace()
	if len(needed) == 0 {
		return
	}

	p.withoutKnownNamespaces(needed)
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		on := needed[name]
		if len(on) == 0 {
			continue
		}

		id := object.ID{Kind: "Namespace", Name: name}
		clusters := slices.Sorted(maps.Keys(on))
		for _, cluster := range clusters {
			p.cells = append(p.cells, p.neededNamespace(id, on[cluster]))
		}

		if p.head.snapshot().Templates.At(id.Key()) == nil {
			first := on[clusters[0]]
			p.findings = append(p.findings, fleet.Finding{Code: fleet.FindingNamespaceCreated, Severity: fleet.SeverityCaution, Object: id, Clusters: clusters, Origin: p.origin(first.Object),
				Message: fmt.Sprintf("namespace %s is no template of the fleet: it is created on %s for %s, and stays after it", name, someOf(clusters), first.Object)})
		}
	}
}

// neededNamespace is the line of a namespace that is made for what another line creates.
func (p *planner) neededNamespace(id object.ID, by *Cell) Cell {
	return Cell{
		Object: id, APIVersion: "v1", Cluster: by.Cluster, Policy: by.Policy,
		Action: ActionCreate, Disposition: by.Disposition,
		Because: []Because{{"namespace-needed", p.origin(by.Object)}},

		// What a member has is not in git: somebody else may have made it.
		DependsOn: "observations",
	}
}

// firstInNamespace is, by namespace and cluster, the first object that this change
// creates there.
func (p *planner) firstInNamespace() map[string]map[string]*Cell {
	needed := map[string]map[string]*Cell{}
	for i := range p.cells {
		c := &p.cells[i]
		sent := c.Action == ActionCreate && (c.Disposition == Now || c.Disposition == Released)
		if !sent || c.Object.Namespace == "" || slices.Contains(servedNamespaces, c.Object.Namespace) {
			continue
		}

		on := needed[c.Object.Namespace]
		if on == nil {
			on = map[string]*Cell{}
			needed[c.Object.Namespace] = on
		}
		if first := on[c.Cluster]; first == nil || c.Object.Key() < first.Object.Key() {
			on[c.Cluster] = c
		}
	}
	return needed
}

// withoutKnownNamespaces drops what the cluster has by what git says: something ran
// in the namespace before, or it is itself a work there.
func (p *planner) withoutKnownNamespaces(needed map[string]map[string]*Cell) {
	for b := range p.base.Bindings.Values() {
		if on := needed[b.Namespace]; len(on) > 0 {
			for i := range b.Works {
				if b.Works[i].Released != nil {
					delete(on, b.Works[i].Cluster)
				}
			}
		}
	}

	for name, on := range needed {
		b := p.head.Bindings.At(object.ID{Kind: "Namespace", Name: name}.Key())
		for i := range b.works() {
			delete(on, b.Works[i].Cluster)
		}
	}
}

// origin is where the template of an object is in git.
func (p *planner) origin(id object.ID) fleet.Origin {
	return origin(p.head.Bindings.At(id.Key()), p.head)
}
