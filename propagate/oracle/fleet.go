// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

type object = map[string]any

// fleet is what the files of one commit say.
type fleet struct {
	static, preemption bool
	maxDelete          any // nil, a number, or a text such as "25%"
	clusters           map[string]object
	policies           map[string]*policy
	overrides          []*override
	templates          map[string]*template
	rendered           map[string]int // documents by file
}

// template is an object that policies send to clusters.
type template struct {
	key, apiVersion, kind, namespace, name string
	file                                   string
	labels                                 map[string]string
	object                                 object
	// content is all of the object, update the part of it that counts as an
	// update when it changes (decision 1).
	content, update string
	own             Brakes // of its own annotations
}

// policy is a PropagationPolicy, or without a namespace a
// ClusterPropagationPolicy.
type policy struct {
	key, namespace, name string
	selectors            []any
	priority             float64
	preempts, lazy       bool
	activate             string
	// What waits under Lazy and StaticPolicy. delayed is all of it as a text.
	delayed                  string
	placement                object
	propagateDeps, overwrite bool
	brakes                   Brakes
	braked                   string // as it is written: what says nothing can be an edit
}

// override is an OverridePolicy, or without a namespace a
// ClusterOverridePolicy.
type override struct {
	namespace, name  string
	selectors, rules []any
}

// Reader reads files. It remembers documents that it has read, because the
// same ones come again in every commit.
type Reader struct {
	read map[string][]object
}

func (r *Reader) documents(text string) ([]object, error) {
	if all, ok := r.read[text]; ok {
		return all, nil
	}
	var all []object
	for _, doc := range strings.Split(text, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			return nil, err
		}
		if o != nil {
			all = append(all, o)
		}
	}
	if r.read == nil || len(r.read) > 10000 {
		r.read = map[string][]object{}
	}
	r.read[text] = all
	return all, nil
}

// fleet reads a tree. The error is why the commit is refused.
func (r *Reader) fleet(files map[string]string) (*fleet, error) {
	f := &fleet{
		preemption: true,
		clusters:   map[string]object{},
		policies:   map[string]*policy{},
		templates:  map[string]*template{},
		rendered:   map[string]int{},
	}
	for file, text := range files {
		all, err := r.documents(text)
		if err != nil {
			return nil, err
		}
		f.rendered[file] = len(all)
		for _, o := range all {
			if err := f.add(o, file); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

func (f *fleet) add(o object, file string) error {
	name := text(o, "metadata", "name")
	switch kind := text(o, "kind"); kind {
	case "FleetConfig":
		for gate, on := range at(o, "spec", "featureGates") {
			switch gate {
			case "StaticPolicy":
				f.static = on.(bool)
			case "PropagationPolicyPreemption":
				f.preemption = on.(bool)
			default:
				return fmt.Errorf("unknown gate %s", gate)
			}
		}
		f.maxDelete = at(o, "spec")["maxDelete"]
	case "Cluster":
		f.clusters[name] = o
	case "PropagationPolicy", "ClusterPropagationPolicy":
		p, err := newPolicy(o)
		if err != nil {
			return err
		}
		f.policies[p.key] = p
	case "OverridePolicy", "ClusterOverridePolicy":
		f.overrides = append(f.overrides, &override{
			namespace: text(o, "metadata", "namespace"),
			name:      name,
			selectors: list(at(o, "spec")["resourceSelectors"]),
			rules:     list(at(o, "spec")["overrideRules"]),
		})
	default:
		t := newTemplate(o)
		t.file = file
		annotations := at(o, "metadata", "annotations")
		if held, given := annotations["fairlead.dev/hold"]; given && held == "" {
			return fmt.Errorf("%s holds nothing", t.key)
		}
		if preserve, given := annotations["fairlead.dev/preserve"]; given && preserve != "true" && preserve != "false" {
			return fmt.Errorf("%s: preserve is neither true nor false", t.key)
		}
		f.templates[t.key] = t
	}
	return nil
}

func newPolicy(o object) (*policy, error) {
	spec := at(o, "spec")
	p := &policy{
		namespace: text(o, "metadata", "namespace"),
		name:      text(o, "metadata", "name"),
		selectors: list(spec["resourceSelectors"]),
		preempts:  spec["preemption"] == "Always",
		lazy:      spec["activationPreference"] == "Lazy",
		activate:  text(o, "metadata", "annotations", "fairlead.dev/activate"),
		placement: at(spec, "placement"),
		overwrite: spec["conflictResolution"] == "Overwrite",
	}
	p.key = p.namespace + "/" + p.name
	p.priority, _ = spec["priority"].(float64)
	p.propagateDeps, _ = spec["propagateDeps"].(bool)
	p.brakes = brakesOf(spec)
	p.braked = canonical([]any{spec["suspension"], spec["preserveResourcesOnDeletion"]})
	for _, s := range p.selectors {
		if p.preempts && text(s.(object), "name") == "" {
			return nil, fmt.Errorf("preemption Always needs names")
		}
		if ns := text(s.(object), "namespace"); ns != "" && p.namespace != "" && ns != p.namespace {
			return nil, fmt.Errorf("%s selects in another namespace", p.key)
		}
	}
	if p.brakes.All && len(list(at(spec, "suspension", "dispatchingOnClusters")["clusterNames"])) > 0 {
		return nil, fmt.Errorf("all clusters and some clusters are suspended")
	}
	scheduling := at(p.placement, "replicaScheduling")
	if _, given := p.placement["replicaScheduling"]; given {
		defaulted := object{"replicaSchedulingType": "Divided"}
		for k, v := range scheduling {
			defaulted[k] = v
		}
		if defaulted["replicaSchedulingType"] == "Divided" && defaulted["replicaDivisionPreference"] == nil {
			defaulted["replicaDivisionPreference"] = "Weighted"
		}
		placement := object{}
		for k, v := range p.placement {
			placement[k] = v
		}
		placement["replicaScheduling"] = defaulted
		p.placement = placement
	}
	p.delayed = canonical(object{"placement": p.placement, "overwrite": p.overwrite, "propagateDeps": p.propagateDeps})
	return p, nil
}

// newTemplate is a template after the defaulting of an API server (decision
// 25, rule 8).
func newTemplate(in object) *template {
	o := copied(in).(object)
	meta := o["metadata"].(object)
	kind := text(o, "kind")
	if !slices.Contains([]string{"Namespace", "CustomResourceDefinition", "ClusterRole"}, kind) && text(meta, "namespace") == "" {
		meta["namespace"] = "default"
	}
	t := &template{
		apiVersion: text(o, "apiVersion"),
		kind:       kind,
		namespace:  text(meta, "namespace"),
		name:       text(meta, "name"),
		labels:     map[string]string{},
		object:     o,
		content:    canonical(o),
	}
	switch held := text(meta, "annotations", "fairlead.dev/hold"); held {
	case "":
	case "*":
		t.own.All = true
	default:
		t.own.On = strings.Split(held, ",")
	}
	t.own.Preserve = text(meta, "annotations", "fairlead.dev/preserve") == "true"
	group, _, found := strings.Cut(t.apiVersion, "/")
	if !found {
		group = ""
	}
	t.key = t.namespace + "/" + kind + "." + group + "/" + t.name
	for k, v := range at(meta, "labels") {
		t.labels[k] = fmt.Sprint(v)
	}
	bare := copied(o).(object)
	delete(bare, "status")
	for _, field := range []string{"labels", "annotations"} {
		kept := object{}
		for k, v := range at(meta, field) {
			if !strings.Contains(k, ".karmada.io") && !strings.HasPrefix(k, "fairlead.dev") {
				kept[k] = v
			}
		}
		delete(bare["metadata"].(object), field)
		if len(kept) > 0 {
			bare["metadata"].(object)[field] = kept
		}
	}
	t.update = canonical(bare)
	return t
}

// runsPods reports whether the template is of a kind that has replicas and a pod
// template: Kubernetes' Deployment, or OpenKruise's CloneSet.
func (t *template) runsPods() bool {
	return t.kind == "Deployment" || t.kind == "CloneSet" && t.apiVersion == "apps.kruise.io/v1alpha1"
}

// references are the ConfigMaps that its pods use, by key.
func (t *template) references() []string {
	var all []string
	if !t.runsPods() {
		return nil
	}
	for _, c := range list(at(t.object, "spec", "template", "spec")["containers"]) {
		for _, from := range list(c.(object)["envFrom"]) {
			key := t.namespace + "/ConfigMap./" + text(from.(object), "configMapRef", "name")
			if !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	return all
}

// replicas is how many the template wants, and whether it is a workload at
// all: one that runs nothing and asks for nothing is an object like others.
func (t *template) replicas() (int64, bool) {
	if !t.runsPods() {
		return 0, false
	}
	spec, _ := t.object["spec"].(object)
	n, set := spec["replicas"].(float64)
	if spec != nil && !set {
		n = 1 // as an API server has it (decision 25)
	}
	asks := false
	for _, c := range list(at(t.object, "spec", "template", "spec")["containers"]) {
		asks = asks || len(at(c.(object), "resources", "requests")) > 0
	}
	return int64(n), n > 0 || asks
}

// at is the map at a path, empty where there is none.
func at(o object, path ...string) object {
	for _, p := range path {
		o, _ = o[p].(object)
	}
	if o == nil {
		return object{}
	}
	return o
}

// text is the text at a path, empty where there is none.
func text(o object, path ...string) string {
	last := len(path) - 1
	s, _ := at(o, path[:last]...)[path[last]].(string)
	return s
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func names(v any) []string {
	var all []string
	for _, n := range list(v) {
		all = append(all, n.(string))
	}
	return all
}

func copied(v any) any {
	switch v := v.(type) {
	case object:
		c := object{}
		for k, inner := range v {
			c[k] = copied(inner)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, inner := range v {
			c[i] = copied(inner)
		}
		return c
	}
	return v
}

// canonical is the same text for the same value.
func canonical(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
