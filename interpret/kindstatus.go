// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// addition is how the fields of a regular kind's status add up. Where several
// clusters report a field that does not add up, one of them stands for all.
type addition struct {
	sum   []string // added up, 0 where nobody reports it
	tally []string // added up, absent where nobody reports it
	inner []string // objects whose numbers are added up, however deep

	first, last      []string // that of the first or last cluster that reports it
	earliest, latest []string // times
	every            []string // true if it is for every cluster that reports it
	lists            []string // joined
	amounts          []string // quantities

	conditions func(*aggregate) []any
	// generation says that the controller reports which generation it counts.
	generation bool
	// single says that the status of an only copy is taken as it is.
	single bool
}

// rule is the addition as a kind's rule.
func (d addition) rule() func(*aggregate) map[string]any { return d.add }

func (d addition) add(a *aggregate) map[string]any {
	switch {
	case len(a.items) == 0 && !d.generation:
		return a.was
	case d.single && len(a.items) == 1:
		return a.items[0].Status
	}

	status := a.sumOf(d.sum)
	for _, field := range d.tally {
		if a.reports(field) {
			maps.Copy(status, a.sumOf([]string{field}))
		}
	}

	for _, field := range d.inner {
		if sum := a.inner(field); len(sum) > 0 {
			status[field] = sum
		}
	}

	d.choose(a, status)
	d.collect(a, status)

	if generation := d.observed(a); generation != 0 {
		status["observedGeneration"] = generation
	}
	return status
}

// choose takes the fields that one cluster stands for.
func (d addition) choose(a *aggregate, status map[string]any) {
	for _, item := range a.items {
		for _, field := range d.last {
			if v := item.Status[field]; v != nil && v != "" {
				status[field] = v
			}
		}
		for _, field := range d.first {
			if v := item.Status[field]; v != nil && status[field] == nil {
				status[field] = v
			}
		}
	}

	for _, field := range d.earliest {
		if first, _, _ := a.moments(field); first != "" {
			status[field] = first
		}
	}
	for _, field := range d.latest {
		if _, last, _ := a.moments(field); last != "" {
			status[field] = last
		}
	}
}

// collect takes the fields that every cluster has a part in.
func (d addition) collect(a *aggregate, status map[string]any) {
	for _, field := range d.every {
		if a.reports(field) {
			status[field] = a.every(field)
		}
	}

	for _, field := range d.lists {
		if all := a.joined(field); len(all) > 0 {
			status[field] = all
		}
	}

	for _, field := range d.amounts {
		if sum := a.amount(field); sum != "" {
			status[field] = sum
		}
	}

	if d.conditions != nil {
		if all := d.conditions(a); len(all) > 0 {
			status["conditions"] = all
		}
	}
}

func (d addition) observed(a *aggregate) int64 {
	if !d.generation {
		return 0
	}
	return a.observedGeneration()
}

// reports reports whether a cluster reports a field.
func (a *aggregate) reports(field string) bool {
	return slices.ContainsFunc(a.items, func(item Observed) bool { return item.Status[field] != nil })
}

// every reports whether a field is true on every cluster that reports it.
func (a *aggregate) every(field string) bool {
	all := true
	for _, item := range a.items {
		value, ok := item.Status[field].(bool)
		if !ok && item.Status[field] != nil {
			a.wrong(item.Cluster, field)
		}
		all = all && (value || item.Status[field] == nil)
	}
	return all
}

// amount adds up a field of quantities, "" where nobody reports it.
func (a *aggregate) amount(field string) string {
	var sum resource.Quantity
	seen := false
	for _, item := range a.items {
		value := item.Status[field]
		if value == nil || value == "" {
			continue
		}

		text, _ := value.(string)
		if n, ok := integral(value); ok {
			sum.Add(*resource.NewQuantity(n, resource.DecimalSI))
			seen = true
			continue
		}

		q, err := resource.ParseQuantity(text)
		if err != nil || !IsQuantity(text) {
			a.wrong(item.Cluster, field)
			continue
		}
		sum.Add(q)
		seen = true
	}

	if !seen {
		return ""
	}
	return sum.String()
}

// inner adds up the numbers of an object, however deep they are. Anything else in
// it does not add up and is left out.
func (a *aggregate) inner(field string) map[string]any {
	sum := map[string]any{}
	for _, item := range a.items {
		if !addInner(sum, a.object(item, field)) {
			a.wrong(item.Cluster, field)
		}
	}
	return sum
}

func addInner(sum, more map[string]any) bool {
	fits := true
	for name, value := range more {
		switch value := value.(type) {
		case map[string]any:
			inner, ok := sum[name].(map[string]any)
			if !ok {
				fits = fits && sum[name] == nil
				inner = map[string]any{}
			}
			fits = addInner(inner, value) && fits
			if len(inner) > 0 {
				sum[name] = inner
			}
		case int64, float64:
			n, ok := integral(value)
			before, counted := integral(sum[name])
			fits = fits && ok && counted
			sum[name] = before + n
		}
	}
	return fits
}

// together is an object of all fields that an object has on some cluster.
func (a *aggregate) together(field string) map[string]any {
	all := map[string]any{}
	for _, item := range a.items {
		maps.Copy(all, a.object(item, field))
	}
	return all
}

// worst is the first item whose state at a field weighs most.
func (a *aggregate) worst(weights map[string]int, path ...string) (worst Observed, ok bool) {
	weight := -1
	for _, item := range a.items {
		inside := item
		for _, field := range path[:len(path)-1] {
			inside.Status = a.object(inside, field)
		}
		last := path[len(path)-1]
		if inside.Status[last] == nil {
			continue
		}
		if w := weights[a.text(inside, last)]; w > weight {
			worst, weight, ok = item, w, true
		}
	}
	return worst, ok
}

// joinedConditions are those of all clusters.
func joinedConditions(a *aggregate) []any { return a.joined("conditions") }

// mergedConditions are those of all clusters. Of those with equal type, status and
// reason the first stands for all, with what each cluster says.
func mergedConditions(a *aggregate) []any {
	type key struct{ kind, status, reason any }
	var all []any
	merged := map[key]map[string]any{}
	for _, item := range a.items {
		for _, c := range a.list(item, "conditions") {
			message, _ := c["message"].(string)
			message = item.Cluster + "=" + message
			k := key{c["type"], c["status"], c["reason"]}
			if has := merged[k]; has != nil {
				has["message"] = has["message"].(string) + ", " + message
				continue
			}

			c = maps.Clone(c)
			c["message"] = message
			merged[k] = c
			all = append(all, c)
		}
	}
	return all
}

// conditionsByType are one of each type: the one that changed last, or of the last
// cluster where times are equal or absent.
func conditionsByType(a *aggregate) []any {
	var order []string
	newest := map[string]map[string]any{}
	for _, item := range a.items {
		for _, c := range a.list(item, "conditions") {
			kind, _ := c["type"].(string)
			was, seen := newest[kind]
			if !seen {
				order = append(order, kind)
			}
			if !seen || changed(c) >= changed(was) {
				newest[kind] = c
			}
		}
	}

	var all []any
	for _, kind := range order {
		all = append(all, newest[kind])
	}
	return all
}

// changed is when a condition changed, "" if it does not say so.
func changed(c map[string]any) string {
	updated, _ := c["lastUpdateTime"].(string)
	moved, _ := c["lastTransitionTime"].(string)
	return cmp.Or(updated, moved)
}

// finished is the condition of a job that runs on several clusters: complete when
// all copies are, and failed, for a reason, when one is. No clock is read, so it has
// no time.
func (a *aggregate) finished(complete, failure string) (conditions []any, all bool) {
	var failed []string
	done := 0
	for _, item := range a.items {
		has := a.list(item, "conditions")
		if met(has, "Failed") {
			failed = append(failed, item.Cluster)
		}
		if met(has, complete) {
			done++
		}
	}

	add := func(kind, reason, message string) {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "reason": reason, "message": message})
	}
	if len(failed) > 0 {
		add("Failed", failure, "failed on "+strings.Join(failed, ", "))
	}
	if all = len(a.items) > 0 && done == len(a.items); all {
		add(complete, "Completed", "completed on every cluster")
	}
	return conditions, all
}

// withoutEmpty is a status without zeros and what is empty, as its kind is served.
func withoutEmpty(status map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range status {
		if m, ok := value.(map[string]any); ok {
			value = withoutEmpty(m)
		}
		switch v := value.(type) {
		case map[string]any:
			if len(v) == 0 {
				continue
			}
		case []any:
			if len(v) == 0 {
				continue
			}
		}
		if value == nil || value == "" || value == int64(0) || value == float64(0) {
			continue
		}
		out[name] = value
	}
	return out
}
