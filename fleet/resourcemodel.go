// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// resourceModels validates the grades of a cluster's nodes and normalises them:
// sorted by grade, from zero to no upper bound. A cluster without any gets
// Karmada's defaults (digest §1.4).
func resourceModels(c *check, in []clusterv1alpha1.ResourceModel) []clusterv1alpha1.ResourceModel {
	if len(in) == 0 {
		return nil
	}

	const list = "spec.resourceModels"
	wrong := len(c.problems)
	models := slices.Clone(in)
	slices.SortStableFunc(models, func(a, b clusterv1alpha1.ResourceModel) int { return cmp.Compare(a.Grade, b.Grade) })

	for i := range models {
		m := &models[i]
		switch {
		case len(m.Ranges) == 0:
			c.at(list, "%s: grade %d has no ranges", list, m.Grade)
		case i > 0 && models[i-1].Grade == m.Grade:
			c.at(list, "%s: grade %d is listed twice", list, m.Grade)
		case !slices.EqualFunc(m.Ranges, models[0].Ranges, func(a, b clusterv1alpha1.ResourceModelRange) bool { return a.Name == b.Name }):
			c.at(list, "%s: grade %d must list the resources of grade %d, in the same order", list, m.Grade, models[0].Grade)
		}
	}

	if len(c.problems) > wrong {
		return models
	}

	for i := range models[0].Ranges {
		models[0].Ranges[i].Min = *resource.NewQuantity(0, resource.DecimalSI)
		models[len(models)-1].Ranges[i].Max = unboundedQuantity
	}

	for i, m := range models {
		for j, r := range m.Ranges {
			if r.Min.Cmp(r.Max) >= 0 {
				c.at(list, "%s: grade %d: min of %s must be below its max", list, m.Grade, r.Name)
			}
			if i > 0 && models[i-1].Ranges[j].Max.Cmp(r.Min) != 0 {
				c.at(list, "%s: grade %d: min of %s must be the max of grade %d", list, m.Grade, r.Name, models[i-1].Grade)
			}
		}
	}

	return models
}

var unboundedQuantity = *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
