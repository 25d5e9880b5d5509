// SPDX-License-Identifier: Apache-2.0

package interpret

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Observed is what is known of a template's copy on one cluster.
type Observed struct {
	Cluster string
	// Applied reports whether the cluster has the desired content.
	Applied bool
	Health  Health
	Status  map[string]any // as returned by StatusOf; nil without one
}

// plain is the item as Karmada passes it to scripts.
func (o Observed) plain() map[string]any {
	m := map[string]any{"clusterName": o.Cluster, "applied": o.Applied, "health": string(cmp.Or(o.Health, Unknown))}
	if o.Status != nil {
		m["status"] = o.Status
	}
	return m
}

// Aggregate returns a template with the status that its copies add up to,
// computed by the script of its kind, or else by the rule of a kind that is known
// (digest §9.4). A template of any other kind is returned as it is. It does not
// modify the template or the items, but the result shares values with them.
func Aggregate(script Interpreter, template map[string]any, items []Observed) (map[string]any, error) {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b Observed) int { return strings.Compare(a.Cluster, b.Cluster) })
	var status map[string]any
	if script != nil {
		var err error
		if status, err = script.Aggregate(template, items); err != nil {
			return nil, err
		}
	} else {
		gk := groupKind(template)
		rule := aggregated[gk]
		if k := kindOf(gk, template); k != nil {
			rule = k.adds
		}
		if rule == nil {
			return template, nil
		}
		a := &aggregate{kind: gk, template: template, items: items}
		a.was, _ = template["status"].(map[string]any)
		status = rule(a)
		if a.err != nil {
			return nil, fmt.Errorf("%s: %w", a.kind.Kind, a.err)
		}
	}

	out := maps.Clone(template)
	delete(out, "status")

	if len(status) > 0 {
		out["status"] = status
	}

	return out, nil
}

// aggregate is a status while it is added up.
type aggregate struct {
	kind     schema.GroupKind
	template map[string]any
	was      map[string]any // the template's previous status
	items    []Observed     // by cluster
	err      error          // the first value of a wrong type
}

var aggregated = map[schema.GroupKind]func(*aggregate) map[string]any{
	deployment:  (*aggregate).workload,
	replicaSet:  (*aggregate).workload,
	daemonSet:   (*aggregate).workload,
	statefulSet: (*aggregate).workload,
	service:     (*aggregate).service,
	ingress:     (*aggregate).addresses,
	job:         (*aggregate).job,
	cronJob:     (*aggregate).cronJob,
	pod:         (*aggregate).pod,
	volume:      (*aggregate).volume,
	claim:       (*aggregate).claim,
	budget:      (*aggregate).budget,
	autoscaler:  (*aggregate).sums,
}

func (a *aggregate) wrong(cluster, field string) {
	if a.err == nil {
		a.err = fmt.Errorf("status.%s on %s has the wrong type", field, cluster)
	}
}

// number is a field of an item's status, 0 without it.
func (a *aggregate) number(item Observed, field string) int64 {
	n, ok := integral(item.Status[field])
	if !ok {
		a.wrong(item.Cluster, field)
	}
	return n
}

func (a *aggregate) text(item Observed, field string) string {
	s, ok := item.Status[field].(string)
	if !ok && item.Status[field] != nil {
		a.wrong(item.Cluster, field)
	}
	return s
}

func (a *aggregate) list(item Observed, field string) []map[string]any {
	all, ok := objects(item.Status[field])
	if !ok {
		a.wrong(item.Cluster, field)
	}
	return all
}

func (a *aggregate) object(item Observed, field string) map[string]any {
	m, ok := item.Status[field].(map[string]any)
	if !ok && item.Status[field] != nil {
		a.wrong(item.Cluster, field)
	}
	return m
}

// sums adds up the counters of the kind.
func (a *aggregate) sums() map[string]any { return a.sumOf(counters[a.kind]) }

func (a *aggregate) sumOf(fields []string) map[string]any {
	status := map[string]any{}
	for _, field := range fields {
		var sum int64
		for _, item := range a.items {
			sum += a.number(item, field)
		}
		status[field] = sum
	}

	return status
}

// workload also says which generation of the template the counters are about.
func (a *aggregate) workload() map[string]any {
	status := a.sums()
	if generation := a.observedGeneration(); generation != 0 {
		status["observedGeneration"] = generation
	}
	return status
}

// observedGeneration is the template's if the controller of every copy has
// observed it, and what it was before if not.
func (a *aggregate) observedGeneration() int64 {
	meta, _ := a.template["metadata"].(map[string]any)
	generation, ok := integral(meta["generation"])
	if !ok {
		a.err = errors.New("metadata.generation is not a whole number")
	}

	for _, item := range a.items {
		if item.Status == nil || a.number(item, "observedGeneration") < a.number(item, "generation") ||
			a.number(item, "resourceTemplateGeneration") < generation {
			generation, _ = integral(a.was["observedGeneration"])
			break
		}
	}

	return generation
}

// addresses are those of all load balancers.
func (a *aggregate) addresses() map[string]any {
	type address struct {
		ip, hostname, all string
		value             map[string]any
	}

	var all []address
	for _, item := range a.items {
		ingress, ok := objects(a.object(item, "loadBalancer")["ingress"])
		if !ok {
			a.wrong(item.Cluster, "loadBalancer.ingress")
		}

		for _, at := range ingress {
			ip, _ := at["ip"].(string)
			hostname, _ := at["hostname"].(string)
			all = append(all, address{ip, hostname, fmt.Sprint(at), at})
		}
	}

	slices.SortFunc(all, func(x, y address) int {
		return cmp.Or(strings.Compare(x.ip, y.ip), strings.Compare(x.hostname, y.hostname), strings.Compare(x.all, y.all))
	})

	all = slices.CompactFunc(all, func(x, y address) bool { return x.all == y.all })
	ingress := make([]any, len(all))
	for i := range all {
		ingress[i] = all[i].value
	}

	balancer := map[string]any{}
	if len(ingress) > 0 {
		balancer["ingress"] = ingress
	}

	return map[string]any{"loadBalancer": balancer}
}

func (a *aggregate) service() map[string]any {
	if !balancesLoad(a.template) {
		return a.was
	}
	return a.addresses()
}

// job is complete when all copies are, and failed when one is. A finished
// condition stays as it was, and so does the start time.
func (a *aggregate) job() map[string]any {
	before, _ := objects(a.was["conditions"])
	if met(before, "Complete") || met(before, "Failed") {
		return a.was
	}

	status := a.sums()
	complete, criteria := 0, 0
	var failed []string
	var conditions []any

	for _, item := range a.items {
		has := a.list(item, "conditions")
		if met(has, "Failed") {
			failed = append(failed, item.Cluster)
		}
		if met(has, "Complete") {
			complete++
		}
		if met(has, "SuccessCriteriaMet") {
			criteria++
		}
	}

	condition := func(kind, reason, message string) {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "reason": reason, "message": message})
	}

	if len(failed) > 0 {
		condition("Failed", "JobFailed", "Job executed failed in member clusters "+strings.Join(failed, ","))
	}

	if n := len(a.items); n > 0 && complete == n {
		condition("Complete", "Completed", "Job completed")
		if criteria == n {
			condition("SuccessCriteriaMet", "Completed", "Job completed")
		}
	}

	if len(conditions) > 0 {
		status["conditions"] = conditions
	}

	if started := a.was["startTime"]; started != nil {
		status["startTime"] = started
	} else if first, _, every := a.moments("startTime"); every {
		status["startTime"] = first
	}

	if _, last, every := a.moments("completionTime"); every {
		status["completionTime"] = last
	}

	return status
}

// met reports whether a condition is true.
func met(conditions []map[string]any, kind string) bool {
	return slices.ContainsFunc(conditions, func(c map[string]any) bool { return c["type"] == kind && c["status"] == "True" })
}

// moments are the first and last of a time, and whether every item has one.
// Kubernetes' format makes texts sort like the times.
func (a *aggregate) moments(field string) (first, last string, every bool) {
	every = len(a.items) > 0
	for _, item := range a.items {
		at := a.text(item, field)
		if at == "" {
			every = false
			continue
		}

		if first == "" || at < first {
			first = at
		}

		last = max(last, at)
	}

	return first, last, every
}

func (a *aggregate) cronJob() map[string]any {
	status := map[string]any{}
	if active := a.joined("active"); len(active) > 0 {
		status["active"] = active
	}

	for _, field := range []string{"lastScheduleTime", "lastSuccessfulTime"} {
		if _, last, _ := a.moments(field); last != "" {
			status[field] = last
		}
	}

	return status
}

// joined concatenates the lists of all items.
func (a *aggregate) joined(field string) (all []any) {
	for _, item := range a.items {
		for _, o := range a.list(item, field) {
			all = append(all, o)
		}
	}
	return all
}

// phase is the first of phases that an item is in. An item without a phase is
// pending.
func (a *aggregate) phase(phases ...string) string {
	in := map[string]bool{}
	for _, item := range a.items {
		in[cmp.Or(a.text(item, "phase"), "Pending")] = true
	}

	for _, phase := range phases {
		if in[phase] {
			return phase
		}
	}

	return slices.Sorted(maps.Keys(in))[0] // a phase that Kubernetes added later
}

func (a *aggregate) pod() map[string]any {
	if len(a.items) == 0 {
		return a.was
	}

	status := map[string]any{"phase": a.phase("Failed", "Pending", "Running", "Succeeded")}
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		if all := a.joined(field); len(all) > 0 {
			status[field] = all
		}
	}

	return status
}

func (a *aggregate) volume() map[string]any {
	if len(a.items) == 0 {
		return a.was
	}
	return map[string]any{"phase": a.phase("Failed", "Pending", "Available", "Bound", "Released")}
}

// claim is lost when one copy is, and bound when all are.
func (a *aggregate) claim() map[string]any {
	if len(a.items) == 0 {
		return a.was
	}

	phase := "Bound"
	capacity := map[string]resource.Quantity{}
	var modes []any
	for _, item := range a.items {
		switch p := cmp.Or(a.text(item, "phase"), "Pending"); {
		case p == "Lost", phase == "Bound":
			phase = p
		}

		for name, amount := range a.object(item, "capacity") {
			text, _ := amount.(string)
			if !IsQuantity(text) {
				text = ""
			}

			q, err := resource.ParseQuantity(text)
			if err != nil {
				a.wrong(item.Cluster, "capacity")
				continue
			}

			sum := capacity[name]
			sum.Add(q)
			capacity[name] = sum
		}

		has, ok := item.Status["accessModes"].([]any)
		if !ok && item.Status["accessModes"] != nil {
			a.wrong(item.Cluster, "accessModes")
		}

		for _, mode := range has {
			if _, ok := mode.(string); !ok {
				a.wrong(item.Cluster, "accessModes")
			} else if !slices.Contains(modes, mode) {
				modes = append(modes, mode)
			}
		}
	}

	status := map[string]any{"phase": phase}
	if len(capacity) > 0 {
		amounts := map[string]any{}
		for name, q := range capacity {
			amounts[name] = q.String()
		}
		status["capacity"] = amounts
	}

	if len(modes) > 0 {
		status["accessModes"] = modes
	}

	return status
}

func (a *aggregate) budget() map[string]any {
	status := a.sums()
	disrupted := map[string]any{}
	for _, item := range a.items {
		for name, at := range a.object(item, "disruptedPods") {
			disrupted[item.Cluster+"/"+name] = at
		}
	}

	if len(disrupted) > 0 {
		status["disruptedPods"] = disrupted
	}

	return status
}

// decimal parses a generation.
func decimal(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
