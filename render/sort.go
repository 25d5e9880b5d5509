// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	appsv1alpha1 "github.com/fairlead/fairlead/api/apps/v1alpha1"
	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	configv1alpha1 "github.com/fairlead/fairlead/api/config/v1alpha1"
	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/propagate"
)

// settingsFile is where the fleet's settings stand, at the root of its tree.
const settingsFile = "fairlead.yaml"

// item is what became of one document: one of its first seven fields.
type item struct {
	settings    *propagate.Settings
	cluster     *propagate.Cluster
	policy      *propagate.Policy
	override    *propagate.Override
	interpreter *propagate.Interpreter
	rebalancer  *propagate.Rebalancer
	template    *propagate.Template
	findings    []*propagate.Finding

	// open is set for a template whose kind Kubernetes does not define: its
	// scope depends on the definitions in the same snapshot.
	open *openScope
	// defines is set for a CustomResourceDefinition.
	defines *definition
}

// openScope is what is needed to derive a template again when a definition
// comes, changes or goes.
type openScope struct {
	namespace         string // as the document has it
	namespaced, known bool   // what the template was derived with
}

// definition is what a CustomResourceDefinition says of its kind.
type definition struct {
	kind       schema.GroupKind
	namespaced bool
}

// sortDocument finds out what a document is, by its kind.
func sortDocument(d *document, unit string) (*item, []propagate.Problem) {
	if wrong := checkMeta(d); len(wrong) > 0 {
		return nil, wrong
	}
	apiVersion, kind := d.object["apiVersion"].(string), d.object["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, []propagate.Problem{d.problem("apiVersion", "apiVersion: %v", err)}
	}
	switch {
	case gv.Group == fleetv1alpha1.GroupVersion.Group:
		return sortSettings(d, unit, apiVersion, kind)
	case gv.Group == "policy.karmada.io" || gv.Group == "cluster.karmada.io":
		return sortPolicy(d, unit, gv, kind)
	case apiVersion == appsv1alpha1.GroupVersion.String() && kind == appsv1alpha1.KindWorkloadRebalancer:
		delete(d.object, "status")
		var doc appsv1alpha1.WorkloadRebalancer
		if wrong := decodeStrict(d, &doc); len(wrong) > 0 {
			return nil, wrong
		}
		r, wrong := propagate.NewRebalancer(&doc, d.origin, d.lines())
		return &item{rebalancer: r}, wrong
	case apiVersion == configv1alpha1.GroupVersion.String() && kind == configv1alpha1.KindResourceInterpreterCustomization:
		var doc configv1alpha1.ResourceInterpreterCustomization
		if wrong := decodeStrict(d, &doc); len(wrong) > 0 {
			return nil, wrong
		}
		in, wrong := propagate.NewInterpreter(&doc, d.origin, d.lines())
		return &item{interpreter: in}, wrong
	case strings.HasSuffix(gv.Group, ".karmada.io"):
		return sortKarmadas(d, gv, kind)
	case isEphemeral(gv.Group, kind):
		return notPropagated(d, gv.Group, "it describes one cluster")
	}
	return sortTemplate(d, unit)
}

// steers is whether a document is of the kinds that say what goes where. With
// a mistake in one of them the rest of the tree may mean something else, so
// its unit is not frozen but the commit refused (fold rule 3).
func (d *document) steers() bool {
	kind, _ := d.object["kind"].(string)
	apiVersion, _ := d.object["apiVersion"].(string)
	if apiVersion == "" {
		return kind == fleetv1alpha1.KindFleetConfig ||
			slices.ContainsFunc(slices.Collect(maps.Values(steering)), func(kinds []string) bool { return slices.Contains(kinds, kind) })
	}
	group, _, _ := strings.Cut(apiVersion, "/")
	return group == fleetv1alpha1.GroupVersion.Group || strings.HasSuffix(group, ".karmada.io")
}

// checkMeta refuses what is no Kubernetes object.
func checkMeta(d *document) (wrong []propagate.Problem) {
	text := func(value any, path string) {
		switch s, ok := value.(string); {
		case value == nil || ok && s == "":
			wrong = append(wrong, d.problem(path, "%s is required", path))
		case !ok:
			wrong = append(wrong, d.problem(path, "%s is no string but %s", path, kindOf(value)))
		}
	}
	text(d.object["apiVersion"], "apiVersion")
	text(d.object["kind"], "kind")
	meta, ok := d.object["metadata"].(map[string]any)
	if !ok {
		if d.object["metadata"] != nil {
			return append(wrong, d.problem("metadata", "metadata is no object but %s", kindOf(d.object["metadata"])))
		}
	}
	// There is one FleetConfig, which needs no name.
	if d.object["kind"] != fleetv1alpha1.KindFleetConfig || meta["name"] != nil {
		text(meta["name"], "metadata.name")
	}
	if meta["namespace"] != nil {
		if _, ok := meta["namespace"].(string); !ok {
			text(meta["namespace"], "metadata.namespace")
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		path := "metadata." + field
		values, ok := meta[field].(map[string]any)
		if meta[field] == nil {
			delete(meta, field)
			continue
		}
		if !ok {
			wrong = append(wrong, d.problem(path, "%s is no map but %s", path, kindOf(meta[field])))
		}
		for key, value := range values {
			if _, ok := value.(string); !ok {
				wrong = append(wrong, d.problem(path+"."+key, "%s.%s is no string but %s", path, key, kindOf(value)))
			}
		}
	}
	return wrong
}

func sortSettings(d *document, unit, apiVersion, kind string) (*item, []propagate.Problem) {
	if apiVersion != fleetv1alpha1.GroupVersion.String() || kind != fleetv1alpha1.KindFleetConfig {
		return nil, []propagate.Problem{d.problem("kind", "%s %s is unknown; the only kind of this group is FleetConfig of %s", apiVersion, kind, fleetv1alpha1.GroupVersion)}
	}
	if unit != settingsFile {
		return nil, []propagate.Problem{d.problem("kind", "FleetConfig is only read from %s at the root of the fleet", settingsFile)}
	}
	var config fleetv1alpha1.FleetConfig
	if wrong := decodeStrict(d, &config); len(wrong) > 0 {
		return nil, wrong
	}
	settings, wrong := propagate.NewSettings(&config, d.origin, d.lines())
	return &item{settings: settings}, wrong
}

// sortPolicy takes the kinds of Karmada that a user writes.
func sortPolicy(d *document, unit string, gv schema.GroupVersion, kind string) (*item, []propagate.Problem) {
	switch gv.String() + " " + kind {
	case "policy.karmada.io/v1alpha1 " + policyv1alpha1.KindPropagationPolicy, "policy.karmada.io/v1alpha1 " + policyv1alpha1.KindClusterPropagationPolicy:
	case "cluster.karmada.io/v1alpha1 Cluster":
		for _, path := range []string{"spec.resourceModels", "status.resourceSummary"} {
			amounts, _, _ := unstructured.NestedFieldNoCopy(d.object, strings.Split(path, ".")...)
			if propagate.Immense(amounts) {
				return nil, []propagate.Problem{d.problem(path, "%s has an amount that is no quantity", path)}
			}
		}
		var cluster clusterv1alpha1.Cluster
		if wrong := decodeStrict(d, &cluster); len(wrong) > 0 {
			return nil, wrong
		}
		c, wrong := propagate.NewCluster(&cluster, d.origin, d.lines())
		return &item{cluster: c}, wrong
	case "policy.karmada.io/v1alpha1 " + policyv1alpha1.KindOverridePolicy, "policy.karmada.io/v1alpha1 " + policyv1alpha1.KindClusterOverridePolicy:
		var override policyv1alpha1.OverridePolicy // both kinds have its shape
		if wrong := decodeStrict(d, &override); len(wrong) > 0 {
			return nil, wrong
		}
		o, wrong := propagate.NewOverride(kind, override.ObjectMeta, override.Spec, d.origin, d.lines())
		return &item{override: o}, wrong
	default:
		return sortKarmadas(d, gv, kind)
	}
	findings, wrong := respell(d)
	if len(wrong) > 0 {
		return nil, wrong
	}
	var policy policyv1alpha1.PropagationPolicy // both kinds have its shape
	if wrong := decodeStrict(d, &policy); len(wrong) > 0 {
		return nil, wrong
	}
	p, wrong := propagate.NewPolicy(kind, policy.ObjectMeta, policy.Spec, d.origin, d.lines())
	if p != nil {
		p.Unit = unit
		for _, f := range findings {
			f.Policy = p.Ref
			f.Object = propagate.ID{Group: "policy.karmada.io", Kind: kind, Namespace: p.Ref.Namespace, Name: p.Ref.Name}
		}
	}
	return &item{policy: p, findings: findings}, wrong
}

// respell takes the spelling of suspension that Karmada's proposal had, and
// says what it is now (decision 8).
func respell(d *document) (findings []*propagate.Finding, wrong []propagate.Problem) {
	spec, _ := d.object["spec"].(map[string]any)
	suspension, ok := spec["suspension"].(map[string]any)
	if !ok {
		return nil, nil
	}
	_, dispatching := suspension["dispatching"]
	_, onClusters := suspension["dispatchingOnClusters"]
	mixed := dispatching || onClusters
	for _, s := range []struct{ old, now string }{
		{"suspendDispatching", "dispatching"}, {"suspendDispatchingOnClusters", "dispatchingOnClusters"},
	} {
		value, has := suspension[s.old]
		if !has {
			continue
		}
		old, now := "spec.suspension."+s.old, "spec.suspension."+s.now
		if mixed {
			wrong = append(wrong, d.problem(old, "%s is an old spelling of %s, and the policy uses both", old, now))
			continue
		}
		findings = append(findings, &propagate.Finding{
			Code: "old-spelling", Level: propagate.LevelNotice, Origin: d.at(old),
			Message: fmt.Sprintf("%s is an old spelling of %s", old, now),
		})
		delete(suspension, s.old)
		suspension[s.now] = value
		d.alias(old, now)
	}
	return findings, wrong
}

// alias gives what stands at one path the lines of another.
func (d *document) alias(from, to string) {
	lines := d.lines()
	for path, line := range below(lines, from) {
		lines[to+path] = line
	}
}

// decodeStrict fills one of our kinds, and refuses fields that it has not.
func decodeStrict(d *document, into any) (wrong []propagate.Problem) {
	strict, err := kjson.UnmarshalStrict(encode(d.object), into)
	if err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) {
			return []propagate.Problem{d.problem(mismatch.Field, "%s is a %s, must be %s", mismatch.Field, mismatch.Value, typeName(mismatch))}
		}
		return []propagate.Problem{d.problem("spec", "%s", cause(err))}
	}
	for _, err := range strict {
		path := ""
		if f, ok := err.(interface{ FieldPath() string }); ok {
			path = f.FieldPath()
		}
		wrong = append(wrong, d.problem(path, "%s", err.Error()))
	}
	return wrong
}

func typeName(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind().String() {
	case "struct", "map":
		return "an object"
	case "slice":
		return "a list"
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "int", "int32", "int64", "uint":
		return "a whole number"
	}
	return "of type " + e.Type.String()
}

func sortTemplate(d *document, unit string) (*item, []propagate.Problem) {
	meta := d.object["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	defines := definitionOf(d)
	t, wrong := propagate.NewTemplate(d.object, propagate.BuiltinScope, d.origin, unit)
	if len(wrong) > 0 {
		return nil, wrong
	}
	if reason := reserved(t.ID); reason != "" {
		return notPropagated(d, t.Group, reason)
	}
	it := &item{template: t, defines: defines}
	if f := refused(d, t); f != nil {
		it.findings = append(it.findings, f)
	}
	if _, known := propagate.BuiltinScope(t.Group, t.Kind); !known {
		it.open = &openScope{namespace: namespace}
	}
	return it, nil
}

// definitionOf reads the scope that a CustomResourceDefinition gives its kind.
func definitionOf(d *document) *definition {
	apiVersion, _ := d.object["apiVersion"].(string)
	if d.object["kind"] != "CustomResourceDefinition" || !strings.HasPrefix(apiVersion, "apiextensions.k8s.io/") {
		return nil
	}
	spec, _ := d.object["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ := spec["group"].(string)
	kind, _ := names["kind"].(string)
	if group == "" || kind == "" {
		return nil
	}
	return &definition{schema.GroupKind{Group: group, Kind: kind}, spec["scope"] != "Cluster"}
}

// scoped derives a template with the scope that holds for its kind now. It
// returns the same item when that is what it was derived with.
func (it *item) scoped(scope propagate.Scope) *item {
	if it.open == nil {
		return it
	}
	namespaced, known := scope(it.template.Group, it.template.Kind)
	if it.open.namespaced == namespaced && it.open.known == known {
		return it
	}
	object := runtime.DeepCopyJSON(it.template.Object)
	meta := object["metadata"].(map[string]any)
	delete(meta, "namespace")
	if it.open.namespace != "" {
		meta["namespace"] = it.open.namespace
	}
	// What made a template once does so again: only its namespace differs.
	t, _ := propagate.NewTemplate(object, scope, it.template.Origin, it.template.Unit)
	return &item{template: t, findings: it.findings, defines: it.defines, open: &openScope{it.open.namespace, namespaced, known}}
}

func isEphemeral(group, kind string) bool {
	switch group + "/" + kind {
	case "/Event", "events.k8s.io/Event", "coordination.k8s.io/Lease":
		return true
	}
	return false
}

// reserved says why an object is not propagated though its kind is.
func reserved(id propagate.ID) string {
	namespace := id.Namespace
	if id.Group == "" && id.Kind == "Namespace" {
		namespace = id.Name
	}
	switch {
	case namespace == "karmada-system" || namespace == "karmada-cluster" || strings.HasPrefix(namespace, "karmada-es-"):
		return "namespace " + namespace + " is Karmada's"
	case strings.HasPrefix(namespace, "kube-"):
		return "namespace " + namespace + " belongs to each cluster"
	}
	return ""
}

// notPropagated is fold rule 10: no template, but worth a word.
func notPropagated(d *document, group, reason string) (*item, []propagate.Problem) {
	id := idOf(d, group)
	return &item{findings: []*propagate.Finding{{
		Code: propagate.FindingNotPropagated, Level: propagate.LevelNotice, Object: id, Origin: d.origin,
		Message: fmt.Sprintf("%s is not propagated: %s", id, reason),
	}}}, nil
}

// idOf is the identity of a document that is no template.
func idOf(d *document, group string) propagate.ID {
	meta := d.object["metadata"].(map[string]any)
	id := propagate.ID{Group: group, Kind: d.object["kind"].(string), Name: meta["name"].(string)}
	id.Namespace, _ = meta["namespace"].(string)
	if namespaced, known := propagate.BuiltinScope(group, id.Kind); known && namespaced && id.Namespace == "" {
		id.Namespace = metav1.NamespaceDefault
	}
	return id
}
