// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/object"
)

// fileOf is where an object stands among the files that a pull cluster's own
// tools apply: NAMESPACE/kind.group_name.yaml, cluster-scoped objects in
// _cluster.
func fileOf(ref member.Ref) string {
	name := filesOf(ref) + safe(ref.Name)
	if len(name) > longest {
		// Still a name of its own: safe makes no % that is followed by a dash.
		digest := strings.TrimPrefix(object.DigestOf([]byte(name)).String(), "sha256:")
		name = name[:longest] + "%-" + digest[:16]
	}
	return fileIn(ref, name+".yaml")
}

// fileApart is where an object stands of which the file is taken by one of a kind that
// differs in case only: Foo and FOO of one group are two kinds.
func fileApart(ref member.Ref) string {
	digest := strings.TrimPrefix(object.DigestOf([]byte(ref.Kind)).String(), "sha256:")
	return strings.TrimSuffix(fileOf(ref), ".yaml") + "%-" + digest[:8] + ".yaml"
}

// isFileOf reports whether a file is where an object would be.
func isFileOf(ref member.Ref, file string) bool { return file == fileOf(ref) || file == fileApart(ref) }

// isAnotherKind reports whether the object in a file is of a kind that differs in case
// only.
func isAnotherKind(o map[string]any, ref member.Ref) bool {
	return o != nil && member.RefOf(o).Kind != ref.Kind && strings.EqualFold(member.RefOf(o).Kind, ref.Kind)
}

// fileIn is a file beside those of a kind in a namespace.
func fileIn(ref member.Ref, name string) string {
	folder := "_cluster"
	if ref.Namespace != "" {
		folder = safe(ref.Namespace)
	}
	return folder + "/" + name
}

// longest is what a file system allows a name, less what follows.
const longest = 200

// filesOf is how the names of the files of a kind begin.
func filesOf(ref member.Ref) string {
	kind := strings.ToLower(ref.Kind)
	if ref.Group != "" {
		kind += "." + ref.Group
	}
	return safe(kind) + "_"
}

// safe writes every byte that a file system may not like as %XX, so that no
// name leaves the directory and no two names meet.
func safe(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' && i > 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// localConfig is by which kustomize, and so Flux, leaves an object out.
const localConfig = "config.kubernetes.io/local-config"

// fileText is an object as a file, if the tools that apply it will see it there.
func fileText(manifest map[string]any) ([]byte, error) {
	if v, ok := foundIn(manifest).Annotations[localConfig]; ok && v != "false" {
		return nil, &member.Error{Reason: member.Invalid, Err: fmt.Errorf("the annotation %s has Flux leave it out: take it off, or do not place it here", localConfig)}
	}
	raw, err := yaml.Marshal(manifest)
	if err != nil {
		return nil, &member.Error{Reason: member.Invalid, Err: err}
	}
	return raw, nil
}

// parseFile reads an object; nil when it is none, or not the only one. We write
// one to a file, and its text has no marker at the beginning of a line.
func parseFile(raw []byte) map[string]any {
	if _, more, _ := bytes.Cut(raw, []byte("\n---")); len(bytes.TrimSpace(more)) > 0 {
		return nil
	}
	doc, err := yaml.YAMLToJSON(raw)
	if err != nil {
		return nil
	}
	var o unstructured.Unstructured // which reads whole numbers as int64
	if err := o.UnmarshalJSON(doc); err != nil {
		return nil
	}
	return o.Object
}

func replicasIn(o map[string]any) (int64, bool) {
	spec, _ := o["spec"].(map[string]any)
	n, ok := spec["replicas"].(int64)
	return n, ok
}

// isForeign reports whether a file is in the way of one of ours. One that we had on
// record may be another fleet's by now; without a UID to find, force is adoption.
func isForeign(was *member.Found, opt member.ApplyOptions) bool {
	whose := was.Whose(opt.Marker, opt.UID != "")
	if opt.Force {
		return opt.UID != "" && whose == object.AnotherFleets
	}
	return whose != object.Ours
}

// foundIn is what the metadata of an object say; of nil nothing.
func foundIn(o map[string]any) *member.Found {
	meta, _ := o["metadata"].(map[string]any)
	return &member.Found{
		ID:          member.RefOf(o).ID(),
		Labels:      stringMap(meta["labels"]),
		Annotations: stringMap(meta["annotations"]),
	}
}

func stringMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := map[string]string{}
	for key, value := range m {
		if s, ok := value.(string); ok {
			out[key] = s
		}
	}
	return out
}

// letGo is an object without our marks, and with those that keep it. Its file
// stays: a tool decides by what its cluster has, and nobody knows when that
// will have seen the marks.
func letGo(o map[string]any) map[string]any {
	meta, _ := o["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	labels, annotations := without(meta["labels"]), without(meta["annotations"])
	object.KeepFromPruning(annotations)
	meta["annotations"] = annotations
	if meta["labels"] = labels; len(labels) == 0 {
		delete(meta, "labels")
	}
	o = maps.Clone(o)
	o["metadata"] = meta
	return o
}

// without leaves out the keys that are ours.
func without(v any) map[string]any {
	m, _ := v.(map[string]any)
	out := map[string]any{}
	for key, value := range m {
		if !object.IsOurs(key) {
			out[key] = value
		}
	}
	return out
}
