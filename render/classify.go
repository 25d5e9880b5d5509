// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/object"
)

const settingsFile = fleet.SettingsFile

// item is the result of one document.
type item struct {
	document fleet.Document // zero if there are only findings
	findings []*fleet.Finding

	// open is set for a template of a kind that is not built into Kubernetes: its
	// scope depends on the definitions in the same snapshot.
	open *openScope
	// defines is set for a CustomResourceDefinition.
	defines *definition
}

// openScope is what it takes to derive a template again when a definition is
// added, changed or removed.
type openScope struct {
	namespace         string // as in the document
	namespaced, known bool   // the scope it was derived with
}

// definition is the kind and scope that a CustomResourceDefinition declares.
type definition struct {
	kind       schema.GroupKind
	namespaced bool
}

// classify turns a document into an item, by its kind.
func classify(d *document, unit string, kinds fleet.Kinds) (*item, []fleet.Problem) {
	if unit == d.origin.File && d.isNoObject() {
		return nil, []fleet.Problem{noManifest(fleet.Problem{Origin: d.origin, Message: "not a Kubernetes object: it has no kind and no metadata.name"})}
	}
	if wrong := checkMeta(d); len(wrong) > 0 {
		return nil, wrong
	}

	apiVersion, kind := d.object["apiVersion"].(string), d.object["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, []fleet.Problem{d.problem("apiVersion", "apiVersion: %v", err)}
	}

	if k := kinds.Find(gv, kind); k != nil {
		doc, findings, wrong := k.Read(&fleet.Source{Object: d.object, Origin: d.origin, Lines: d.lines, Unit: unit})
		return &item{document: doc, findings: findings}, wrong
	}

	switch {
	case gv.Group == fleetv1alpha1.GroupVersion.Group && len(kinds.In(gv.Group)) == 1:
		return nil, []fleet.Problem{d.problem("kind", "%s %s is unknown; the only kind of this group is FleetConfig of %s", apiVersion, kind, fleetv1alpha1.GroupVersion)}
	case steers(gv.Group, kinds):
		return classifyKarmada(d, gv, kind, kinds)
	case isEphemeral(gv.Group, kind):
		return notPropagated(d, gv.Group, "it describes one cluster")
	}

	return classifyTemplate(d, unit)
}

// isNoObject reports whether a document has nothing that makes an object.
func (d *document) isNoObject() bool {
	meta, _ := d.object["metadata"].(map[string]any)
	return d.object["kind"] == nil && meta["name"] == nil && meta["generateName"] == nil
}

// isControl reports whether a document is of a kind that decides what goes
// where. A mistake in one may change the meaning of the rest of the tree, so it
// refuses the commit instead of freezing its unit (fold rule 3).
func (d *document) isControl(kinds fleet.Kinds) bool {
	kind, _ := d.object["kind"].(string)
	apiVersion, _ := d.object["apiVersion"].(string)
	if apiVersion == "" {
		return kinds.Named(kind)
	}
	group, _, _ := strings.Cut(apiVersion, "/")
	return steers(group, kinds)
}

// steers reports whether documents of a group may decide what goes where.
func steers(group string, kinds fleet.Kinds) bool {
	return len(kinds.In(group)) > 0 || strings.HasSuffix(group, ".karmada.io")
}

// checkMeta refuses a document without the fields of a Kubernetes object.
func checkMeta(d *document) (wrong []fleet.Problem) {
	text := func(value any, path string) {
		switch s, ok := value.(string); {
		case value == nil || ok && s == "":
			wrong = append(wrong, d.problem(path, "%s is required", path))
		case !ok:
			wrong = append(wrong, d.problem(path, "%s is %s, must be a string", path, kindOf(value)))
		}
	}

	text(d.object["apiVersion"], "apiVersion")
	text(d.object["kind"], "kind")
	meta, ok := d.object["metadata"].(map[string]any)
	if !ok {
		if d.object["metadata"] != nil {
			return append(wrong, d.problem("metadata", "metadata is %s, must be an object", kindOf(d.object["metadata"])))
		}
	}

	// There is only one FleetConfig, so it needs no name.
	apiVersion, _ := d.object["apiVersion"].(string)
	settings := d.object["kind"] == fleetv1alpha1.KindFleetConfig && strings.HasPrefix(apiVersion, fleetv1alpha1.GroupVersion.Group+"/")
	if !settings || meta["name"] != nil {
		if generated, _ := meta["generateName"].(string); generated != "" && meta["name"] == nil {
			wrong = append(wrong, d.problem("metadata.generateName", "metadata.name is required: an object is tracked by its name, so a cluster cannot choose one (generateName)"))
		} else {
			text(meta["name"], "metadata.name")
		}
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
			wrong = append(wrong, d.problem(path, "%s is %s, must be a map", path, kindOf(meta[field])))
		}

		for key, value := range values {
			if _, ok := value.(string); !ok {
				wrong = append(wrong, d.problem(path+"."+key, "%s.%s is %s, must be a string", path, key, kindOf(value)))
			}
		}
	}

	return wrong
}

// alias gives the field at to the lines of the field at from.
func (d *document) alias(from, to string) { (&fleet.Source{Lines: d.lines}).Alias(from, to) }

func classifyTemplate(d *document, unit string) (*item, []fleet.Problem) {
	meta := d.object["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	defines := definitionOf(d)
	unapplied := object.NotApplied(d.object)
	t, wrong := fleet.NewTemplate(d.object, object.DefaultScope, d.origin, unit)
	if len(wrong) > 0 {
		return nil, wrong
	}

	if reason := reservedReason(t.ID); reason != "" {
		return notPropagated(d, t.Group, reason)
	}

	it := &item{document: t.Document(), defines: defines}
	for _, f := range unapplied {
		it.findings = append(it.findings, &fleet.Finding{
			Code: fleet.FindingNotApplied, Severity: fleet.SeverityNotice, Object: t.ID, Origin: d.at(f.Path),
			Message: fmt.Sprintf("%s of %s is not applied: %s", f.Path, t.ID, f.Why),
		})
	}
	if f := lint(d, t); f != nil {
		it.findings = append(it.findings, f)
	}
	if f := encryption(d, t); f != nil {
		it.findings = append(it.findings, f)
	}
	if _, builtin := object.BuiltinScope(t.Group, t.Kind); !builtin {
		namespaced, known := object.DefaultScope(t.Group, t.Kind)
		it.open = &openScope{namespace, namespaced, known}
	}

	return it, nil
}

// definitionOf reads the kind and scope that a CustomResourceDefinition
// declares; nil for any other document.
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

// scoped derives the template again if the scope of its kind has changed. It
// returns it itself otherwise.
func (it *item) scoped(scope object.Scope) *item {
	if it.open == nil {
		return it
	}

	was := it.document.Value.(*fleet.Template)
	namespaced, known := scope(was.Group, was.Kind)
	if it.open.namespaced == namespaced && it.open.known == known {
		return it
	}

	object := runtime.DeepCopyJSON(was.Object())
	meta := object["metadata"].(map[string]any)
	delete(meta, "namespace")

	if it.open.namespace != "" {
		meta["namespace"] = it.open.namespace
	}

	// It was valid before and is now: only its namespace differs.
	t, _ := fleet.NewTemplate(object, scope, was.Origin, was.Unit)
	return &item{document: t.Document(), findings: it.findings, defines: it.defines, open: &openScope{it.open.namespace, namespaced, known}}
}

func isEphemeral(group, kind string) bool {
	switch group + "/" + kind {
	case "/Event", "events.k8s.io/Event", "coordination.k8s.io/Lease":
		return true
	}
	return false
}

// reservedReason says why an object is not propagated although its kind is; ""
// if it is.
func reservedReason(id object.ID) string {
	namespace := id.Namespace
	if id.Group == "" && id.Kind == "Namespace" {
		namespace = id.Name
	}

	if namespace == "karmada-system" || namespace == "karmada-cluster" || strings.HasPrefix(namespace, "karmada-es-") {
		return "namespace " + namespace + " is reserved for Karmada"
	}
	return ""
}

// notPropagated is fold rule 10: a finding instead of a template.
func notPropagated(d *document, group, reason string) (*item, []fleet.Problem) {
	id := idOf(d, group)
	return &item{findings: []*fleet.Finding{{
		Code: fleet.FindingNotPropagated, Severity: fleet.SeverityNotice, Object: id, Origin: d.origin,
		Message: fmt.Sprintf("%s is not propagated: %s", id, reason),
	}}}, nil
}

// idOf is the identity of a document that does not become a template.
func idOf(d *document, group string) object.ID {
	meta := d.object["metadata"].(map[string]any)
	id := object.ID{Group: group, Kind: d.object["kind"].(string), Name: meta["name"].(string)}
	id.Namespace, _ = meta["namespace"].(string)
	if namespaced, known := object.BuiltinScope(group, id.Kind); known && namespaced && id.Namespace == "" {
		id.Namespace = metav1.NamespaceDefault
	}
	return id
}

// encryption is the finding about a document that SOPS has encrypted. Where a field
// stands is asked of those alone: it takes another parse of the file.
func encryption(d *document, t *fleet.Template) *fleet.Finding {
	if !object.IsEncrypted(t.Object()) {
		return nil
	}

	f := &fleet.Finding{Code: fleet.FindingEncrypted, Severity: fleet.SeverityNotice, Object: t.ID, Origin: d.at("sops")}
	switch {
	case strings.HasPrefix(t.Kind, "ENC["):
		f.Severity, f.Origin = fleet.SeverityCaution, d.at("kind")
		f.Message = "the kind of this document is encrypted, so that nobody can tell what it is: have SOPS encrypt the values alone, with encrypted_regex: ^(data|stringData)$"
	case object.IsSecret(t.Object()):
		f.Message = fmt.Sprintf("%s is encrypted with SOPS: it is decrypted on the way to a push cluster with the keys of spec.decryption or run --decryption, and by the Flux of a pull cluster", t.ID)
	default:
		return nil
	}
	return f
}
