// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
)

// column is one that kubectl prints, between NAME and AGE.
type column struct {
	name  string
	value func(o map[string]any) any
}

func at(path ...string) func(map[string]any) any {
	return func(o map[string]any) any {
		v, ok, err := unstructured.NestedFieldNoCopy(o, path...)
		if err != nil || !ok {
			return "<none>"
		}
		return v
	}
}

func number(path ...string) func(map[string]any) any {
	return func(o map[string]any) any {
		v, _, _ := unstructured.NestedInt64(o, path...)
		return v
	}
}

func size(fields ...string) func(map[string]any) any {
	return func(o map[string]any) any {
		n := 0
		for _, field := range fields {
			m, _ := o[field].(map[string]any)
			n += len(m)
		}
		return int64(n)
	}
}

func ready(o map[string]any) any {
	have, _, _ := unstructured.NestedInt64(o, "status", "readyReplicas")
	want, _, _ := unstructured.NestedInt64(o, "spec", "replicas")
	return fmt.Sprintf("%d/%d", have, want)
}

func ports(o map[string]any) any {
	list, _, _ := unstructured.NestedSlice(o, "spec", "ports")
	var out []string
	for _, p := range list {
		port, _ := p.(map[string]any)
		out = append(out, fmt.Sprintf("%v/%v", port["port"], port["protocol"]))
	}
	if out == nil {
		return "<none>"
	}
	return strings.Join(out, ",")
}

func columnsOf(kind string) []column {
	switch kind {
	case "Deployment":
		return []column{{"Ready", ready}, {"Up-to-date", number("status", "updatedReplicas")}, {"Available", number("status", "availableReplicas")}}
	case "StatefulSet":
		return []column{{"Ready", ready}}
	case "ReplicaSet", "ReplicationController":
		return []column{{"Desired", number("spec", "replicas")}, {"Current", number("status", "replicas")}, {"Ready", number("status", "readyReplicas")}}
	case "DaemonSet":
		return []column{{"Desired", number("status", "desiredNumberScheduled")}, {"Ready", number("status", "numberReady")}}
	case "Service":
		return []column{{"Type", at("spec", "type")}, {"Cluster-IP", at("spec", "clusterIP")}, {"Port(s)", ports}}
	case "ConfigMap":
		return []column{{"Data", size("data", "binaryData")}}
	case "Secret":
		return []column{{"Type", at("type")}, {"Data", size("data")}}
	case "Namespace", "Pod", "PersistentVolumeClaim", "PersistentVolume":
		return []column{{"Status", at("status", "phase")}}
	case "CronJob":
		return []column{{"Schedule", at("spec", "schedule")}, {"Suspend", at("spec", "suspend")}}
	case "Ingress":
		return []column{{"Class", at("spec", "ingressClassName")}}
	}
	return nil
}

// customColumns are those of a definition whose path is a plain one.
func customColumns(list []apiextensionsv1.CustomResourceColumnDefinition) []column {
	var out []column
	for _, c := range list {
		if c.Priority > 0 || strings.ContainsAny(c.JSONPath, "[]@*?") || c.JSONPath == ".metadata.creationTimestamp" {
			continue
		}
		out = append(out, column{c.Name, at(strings.Split(strings.TrimPrefix(c.JSONPath, "."), ".")...)})
	}
	return out
}

func (k *kind) table(objects []*stored, version, next string) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: version, Continue: next},
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
		},
		Rows: []metav1.TableRow{},
	}
	for _, c := range k.columns {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: c.name, Type: "string"})
	}
	t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: "Age", Type: "string"})
	for _, o := range objects {
		u := o.decoded()
		row := metav1.TableRow{Cells: []any{o.name}, Object: rawExtension(metadata.encode(k, o))}
		for _, c := range k.columns {
			row.Cells = append(row.Cells, c.value(u.Object))
		}
		age := duration.HumanDuration(time.Since(u.GetCreationTimestamp().Time))
		row.Cells = append(row.Cells, age)
		t.Rows = append(t.Rows, row)
	}
	return t
}
