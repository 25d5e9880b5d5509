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

	"github.com/fairlead/fairlead/fleet"
)

const (
	// maxAnnotations is the limit for the keys and values of all annotations.
	maxAnnotations = 256 << 10
	// maxData is the limit for the data of a ConfigMap or Secret.
	maxData = 1 << 20
	// maxRequest is the size limit of a request to an API server, maxStored etcd's
	// default limit.
	maxRequest = 3 << 20
	maxStored  = 3 << 19
)

// lint finds what every API server would reject, so that it is reported before
// anything is sent. It does not refuse the commit: an override may still fix
// the object, and the rest of the commit is valid.
func lint(d *document, t *fleet.Template) *fleet.Finding {
	f := &fleet.Finding{Code: fleet.FindingRefused, Severity: fleet.SeverityError, Object: t.ID}
	var faults []string
	fault := func(path, format string, args ...any) {
		if len(faults) == 0 {
			f.Origin = d.at(path)
		}
		// Cut the examples, which are longer than the rule.
		text, _, _ := strings.Cut(fmt.Sprintf(format, args...), " (e.g. ")
		faults = append(faults, text)
	}

	if wrong := invalidName(t); wrong != "" {
		fault("metadata.name", "metadata.name: %s", wrong)
	}
	if wrong := validateText(content.IsDNS1123Label, t.Namespace); t.Namespace != "" && len(wrong) > 0 {
		fault("metadata.namespace", "metadata.namespace: %s", wrong[0])
	}

	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		if wrong := validateText(content.IsLabelKey, key); len(wrong) > 0 {
			fault("metadata.labels."+key, "label %q: %s", key, wrong[0])
		}
		if wrong := validateText(content.IsLabelValue, t.Labels[key]); len(wrong) > 0 {
			fault("metadata.labels."+key, "value of label %s: %s", key, wrong[0])
		}
	}

	meta, _ := t.Object()["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	size := 0
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if wrong := validateText(content.IsLabelKey, strings.ToLower(key)); len(wrong) > 0 {
			fault("metadata.annotations."+key, "annotation %q: %s", key, wrong[0])
		}
		value, _ := annotations[key].(string)
		size += len(key) + len(value)
	}

	if size > maxAnnotations {
		fault("metadata.annotations", "metadata.annotations is %d bytes, the limit is %d", size, maxAnnotations)
	}
	if wrong := invalidReplicas(t); wrong != "" {
		fault("spec.replicas", "spec.replicas is %s", wrong)
	}
	if size := dataSize(t); size > maxData {
		fault("data", "data is %d bytes, the limit is %d", size, maxData)
	}

	if size := minJSONSize(t.Object()); size > maxRequest {
		fault("", "the object is %d bytes, the limit is %d", size, maxRequest)
	} else if size > maxStored && len(faults) == 0 {
		f.Severity, f.Origin = fleet.SeverityCaution, d.origin
		f.Message = fmt.Sprintf("%s is %d bytes; a cluster accepts at most %d unless its etcd limit is raised", t.ID, size, maxStored)
		return f
	}

	if len(faults) == 0 {
		return nil
	}

	f.Message = fmt.Sprintf("no cluster accepts %s: %s", t.ID, strings.Join(faults, "; "))
	return f
}

// isSimpleName reports whether a text is certainly valid as a name, a key and a
// value. Most are, and need no regular expression.
func isSimpleName(s string) bool {
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

func validateText(check func(string) []string, s string) []string {
	if isSimpleName(s) {
		return nil
	}
	return check(s)
}

// subdomains are the groups in which every name must be a DNS subdomain. Other
// groups allow more for some kinds, and a custom kind may allow anything.
var subdomains = map[string]bool{"": true, "apps": true, "batch": true, "autoscaling": true, "policy": true}

func invalidName(t *fleet.Template) string {
	if isSimpleName(t.Name) {
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

// invalidReplicas says why spec.replicas is invalid; "" if it is valid. The
// template is placed as one without replicas, and every cluster rejects it.
func invalidReplicas(t *fleet.Template) string {
	if t.Group != "apps" || t.Kind != "Deployment" && t.Kind != "StatefulSet" && t.Kind != "ReplicaSet" {
		return ""
	}

	spec, _ := t.Object()["spec"].(map[string]any)
	switch n := spec["replicas"].(type) {
	case nil:
		return ""
	case int64:
		if n < 0 || n > math.MaxInt32 {
			return fmt.Sprintf("%d, must be from 0 to %d", n, math.MaxInt32)
		}
		return ""
	case string:
		return "a string, must be a whole number"
	}

	return "not a whole number"
}

// dataSize is the size of a ConfigMap or Secret, as an API server counts it.
func dataSize(t *fleet.Template) (size int) {
	if t.Group != "" || t.Kind != "ConfigMap" && t.Kind != "Secret" {
		return 0
	}

	for _, field := range []string{"data", "binaryData", "stringData"} {
		values, _ := t.Object()[field].(map[string]any)
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

// minJSONSize is a lower bound of an object's size as JSON.
func minJSONSize(value any) (size int) {
	switch value := value.(type) {
	case string:
		return len(value) + 2
	case map[string]any:
		for key, v := range value {
			size += len(key) + 4 + minJSONSize(v)
		}
	case []any:
		for _, v := range value {
			size += 1 + minJSONSize(v)
		}
	}

	return size + 1
}
