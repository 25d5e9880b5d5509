// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/fairlead/fairlead/propagate"
)

const (
	// mostAnnotations is what the keys and values of all annotations may take.
	mostAnnotations = 256 << 10
	// mostData is what a ConfigMap or a Secret may hold.
	mostData = 1 << 20
	// mostSent is what an API server reads of a request, and mostKept what etcd
	// takes unless it is told otherwise.
	mostSent = 3 << 20
	mostKept = 3 << 19
)

// refused finds what no API server takes, whatever the cluster: it is worth a
// word before anything is sent. It refuses no commit, since an override may still
// mend it, and the rest of the commit is in order.
func refused(d *document, t *propagate.Template) *propagate.Finding {
	f := &propagate.Finding{Code: propagate.FindingRefused, Level: propagate.LevelError, Object: t.ID}
	var faults []string
	fault := func(path, format string, args ...any) {
		if len(faults) == 0 {
			f.Origin = d.at(path)
		}
		// Without the examples, which are longer than the rule.
		text, _, _ := strings.Cut(fmt.Sprintf(format, args...), " (e.g. ")
		faults = append(faults, text)
	}
	if wrong := wrongName(t); wrong != "" {
		fault("metadata.name", "its name: %s", wrong)
	}
	if wrong := faultsOf(content.IsDNS1123Label, t.Namespace); t.Namespace != "" && len(wrong) > 0 {
		fault("metadata.namespace", "its namespace: %s", wrong[0])
	}
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		if wrong := faultsOf(content.IsLabelKey, key); len(wrong) > 0 {
			fault("metadata.labels."+key, "the label %q: %s", key, wrong[0])
		}
		if wrong := faultsOf(content.IsLabelValue, t.Labels[key]); len(wrong) > 0 {
			fault("metadata.labels."+key, "the value of the label %s: %s", key, wrong[0])
		}
	}
	meta, _ := t.Object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	size := 0
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if wrong := faultsOf(content.IsLabelKey, strings.ToLower(key)); len(wrong) > 0 {
			fault("metadata.annotations."+key, "the annotation %q: %s", key, wrong[0])
		}
		value, _ := annotations[key].(string)
		size += len(key) + len(value)
	}
	if size > mostAnnotations {
		fault("metadata.annotations", "its annotations take %d bytes, and may take %d", size, mostAnnotations)
	}
	if wrong := wrongReplicas(t); wrong != "" {
		fault("spec.replicas", "spec.replicas is %s", wrong)
	}
	if size := dataOf(t); size > mostData {
		fault("data", "its data are %d bytes, and may be %d", size, mostData)
	}
	if size := weight(t.Object); size > mostSent {
		fault("", "it is %d bytes, and may be %d", size, mostSent)
	} else if size > mostKept && len(faults) == 0 {
		f.Level, f.Origin = propagate.LevelCaution, d.origin
		f.Message = fmt.Sprintf("%s is %d bytes: a cluster takes %d, unless its etcd is told to take more", t.ID, size, mostKept)
		return f
	}
	if len(faults) == 0 {
		return nil
	}
	f.Message = fmt.Sprintf("no cluster takes %s: %s", t.ID, strings.Join(faults, "; "))
	return f
}

// isPlain is whether a text is so simple that it is right as a name, a key and a
// value. Most are, and need no regular expression.
func isPlain(s string) bool {
	if len(s) == 0 || len(s) > 63 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !letter && (c != '-' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return true
}

func faultsOf(check func(string) []string, s string) []string {
	if isPlain(s) {
		return nil
	}
	return check(s)
}

// subdomains are the groups whose objects are all named as DNS names are. Others
// allow more for some kinds, and who serves a custom kind may allow anything.
var subdomains = map[string]bool{"": true, "apps": true, "batch": true, "autoscaling": true, "policy": true}

func wrongName(t *propagate.Template) string {
	if isPlain(t.Name) {
		return ""
	}
	wrong := content.IsPathSegmentName(t.Name)
	switch {
	case len(wrong) > 0 || !subdomains[t.Group]:
	case t.Group == "" && t.Kind == "Namespace":
		wrong = content.IsDNS1123Label(t.Name)
	default:
		wrong = content.IsDNS1123Subdomain(t.Name)
	}
	return strings.Join(wrong, "; ")
}

// wrongReplicas says what is no number of replicas. Such a workload is placed as
// one that wants none, and every cluster refuses it.
func wrongReplicas(t *propagate.Template) string {
	if t.Group != "apps" || t.Kind != "Deployment" && t.Kind != "StatefulSet" && t.Kind != "ReplicaSet" {
		return ""
	}
	spec, _ := t.Object["spec"].(map[string]any)
	switch n := spec["replicas"].(type) {
	case nil:
		return ""
	case int64:
		if n < 0 || n > math.MaxInt32 {
			return fmt.Sprintf("%d, and must be from 0 to %d", n, math.MaxInt32)
		}
		return ""
	case string:
		return "a string, and must be a whole number"
	}
	return "no whole number"
}

// dataOf is how much a ConfigMap or a Secret holds, as an API server counts it.
func dataOf(t *propagate.Template) (size int) {
	if t.Group != "" || t.Kind != "ConfigMap" && t.Kind != "Secret" {
		return 0
	}
	for _, field := range []string{"data", "binaryData", "stringData"} {
		values, _ := t.Object[field].(map[string]any)
		encoded := field == "binaryData" || field == "data" && t.Kind == "Secret"
		for _, value := range values {
			text, _ := value.(string)
			if encoded {
				text = strings.TrimRight(strings.NewReplacer("\n", "", "\r", "").Replace(text), "=")
				size += base64.RawStdEncoding.DecodedLen(len(text))
			} else {
				size += len(text)
			}
		}
	}
	return size
}

// weight is what an object takes at least as JSON.
func weight(value any) (size int) {
	switch value := value.(type) {
	case string:
		return len(value) + 2
	case map[string]any:
		for key, v := range value {
			size += len(key) + 4 + weight(v)
		}
	case []any:
		for _, v := range value {
			size += 1 + weight(v)
		}
	}
	return size + 1
}
