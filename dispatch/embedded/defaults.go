// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"encoding/base64"
	"maps"
	"slices"
)

// setDefaults sets what people look at first: replicas, the type of a Service
// or a Secret, the phase of a Namespace, the conditions of a definition; and
// moves a Secret's stringData where it is kept.
func setDefaults(k *kind, o map[string]any) {
	spec, _ := o["spec"].(map[string]any)
	switch k.Kind {
	case "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController":
		missing(spec, "replicas", int64(1))
	case "Job":
		missing(spec, "parallelism", int64(1))
		missing(spec, "completions", int64(1))
	case "Service":
		missing(spec, "type", "ClusterIP")
		missing(spec, "sessionAffinity", "None")
		ports, _ := spec["ports"].([]any)
		for _, p := range ports {
			port, _ := p.(map[string]any)
			missing(port, "protocol", "TCP")
			missing(port, "targetPort", port["port"])
		}
	case "Secret":
		missing(o, "type", "Opaque")
		clearSecret(o)
	case "Namespace":
		if spec == nil {
			spec = map[string]any{}
			o["spec"] = spec
		}
		missing(spec, "finalizers", []any{"kubernetes"})
		status, _ := o["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
			o["status"] = status
		}
		missing(status, "phase", "Active")
	case "CustomResourceDefinition":
		establish(o, spec)
	}
	podDefaults(k, spec)
}

func missing(m map[string]any, key string, value any) {
	if m == nil || value == nil {
		return
	}
	if _, ok := m[key]; !ok {
		m[key] = value
	}
}

func clearSecret(o map[string]any) {
	clear, _ := o["stringData"].(map[string]any)
	delete(o, "stringData")
	if len(clear) == 0 {
		return
	}
	data, _ := o["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
		o["data"] = data
	}
	for _, key := range slices.Sorted(maps.Keys(clear)) {
		if s, ok := clear[key].(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(s))
		}
	}
}

// podDefaults are of the pod in a workload: without the protocol of its ports
// two writers would not mean the same port.
func podDefaults(k *kind, spec map[string]any) {
	pod := spec
	if k.Kind == "CronJob" {
		job, _ := spec["jobTemplate"].(map[string]any)
		spec, _ = job["spec"].(map[string]any)
	}
	if k.Kind != "Pod" {
		template, _ := spec["template"].(map[string]any)
		pod, _ = template["spec"].(map[string]any)
	}
	if pod == nil || pod["containers"] == nil {
		return
	}
	for _, list := range []string{"containers", "initContainers"} {
		containers, _ := pod[list].([]any)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			ports, _ := container["ports"].([]any)
			for _, p := range ports {
				port, _ := p.(map[string]any)
				missing(port, "protocol", "TCP")
			}
		}
	}
}

// establish accepts a definition at once: there are no others to clash with
// that would matter here.
func establish(o, spec map[string]any) {
	names, _ := spec["names"].(map[string]any)
	if names == nil {
		return
	}
	if kind, ok := names["kind"].(string); ok {
		missing(names, "listKind", kind+"List")
	}
	missing(spec, "conversion", map[string]any{"strategy": "None"})
	versions := []any{}
	list, _ := spec["versions"].([]any)
	for _, v := range list {
		version, _ := v.(map[string]any)
		if version["storage"] == true {
			versions = append(versions, version["name"])
		}
	}
	condition := func(kind, reason, message string) map[string]any {
		return map[string]any{
			"type": kind, "status": "True", "reason": reason, "message": message,
			"lastTransitionTime": "2020-01-01T00:00:00Z",
		}
	}
	o["status"] = map[string]any{
		"acceptedNames":  maps.Clone(names),
		"storedVersions": versions,
		"conditions": []any{
			condition("NamesAccepted", "NoConflicts", "no conflicts found"),
			condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
		},
	}
}
