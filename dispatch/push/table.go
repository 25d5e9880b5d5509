// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fairlead/fairlead/dispatch/member"
)

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// Table reads objects as the member shows them to kubectl. A row's object is
// its metadata and no more, whatever the kind.
func (r *Reader) Table(ctx context.Context, res Resource, s Selection) (*metav1.Table, error) {
	var table *metav1.Table
	for a, err := range r.pages(ctx, member.Ref{GroupVersionKind: res.GroupVersionKind}, res.endpoint(), s, asTable) {
		if err != nil {
			return nil, err
		}
		page, err := tableOf(a.body)
		a.done()
		if err != nil {
			return nil, err
		}
		if table == nil {
			table = page
			continue
		}
		table.Rows = append(table.Rows, page.Rows...)
	}
	return table, nil
}

// tableOf reads a page. An aggregated API may know no tables: what it answers
// instead has a name and an age.
func tableOf(body []byte) (*metav1.Table, error) {
	// Through unstructured, which reads whole numbers as int64.
	var u unstructured.Unstructured
	if err := json.Unmarshal(body, &u); err != nil {
		return nil, notKubernetes(http.StatusOK)
	}
	if u.GetKind() != "Table" {
		return plainTable(&u)
	}
	table := &metav1.Table{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, table); err != nil {
		return nil, notKubernetes(http.StatusOK)
	}
	for i := range table.Rows {
		o := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(table.Rows[i].Object.Raw, o); err != nil {
			return nil, notKubernetes(http.StatusOK)
		}
		table.Rows[i].Object = runtime.RawExtension{Object: o}
	}
	return table, nil
}

func plainTable(u *unstructured.Unstructured) (*metav1.Table, error) {
	list, err := u.ToList()
	if err != nil {
		return nil, notKubernetes(http.StatusOK)
	}
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name"}, {Name: "Age", Type: "string"},
	}}
	for i := range list.Items {
		o := &list.Items[i]
		age := "<unknown>"
		if made := o.GetCreationTimestamp(); !made.IsZero() {
			age = duration.HumanDuration(metav1.Now().Sub(made.Time))
		}
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  []any{o.GetName(), age},
			Object: runtime.RawExtension{Object: meta.AsPartialObjectMetadata(o)},
		})
	}
	return table, nil
}

// Objects yields whole objects, without the entries of their managers: what
// kubectl shows of them.
func (r *Reader) Objects(ctx context.Context, res Resource, s Selection) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		r.whole(ctx, member.Ref{GroupVersionKind: res.GroupVersionKind}, res.endpoint(), s, func(o map[string]any, err error) bool {
			if m, ok := o["metadata"].(map[string]any); ok {
				delete(m, "managedFields")
			}
			return yield(o, err)
		})
	}
}

// columnIndex finds a column by its name.
func columnIndex(columns []metav1.TableColumnDefinition, name string) int {
	return slices.IndexFunc(columns, func(c metav1.TableColumnDefinition) bool { return c.Name == name })
}

// Gather puts the tables of several members together, in the order of the
// members. Columns are those of the first table, and where others have more,
// behind the one that they follow there. What a member does not tell is nil.
func Gather(members []string, tables map[string]*metav1.Table) (columns []metav1.TableColumnDefinition, rows []Row) {
	for _, member := range members {
		t := tables[member]
		if t == nil {
			continue
		}
		at := -1
		for _, c := range t.ColumnDefinitions {
			if i := columnIndex(columns, c.Name); i >= 0 {
				at = i
				continue
			}
			at++
			columns = slices.Insert(columns, at, c)
		}
	}
	for _, member := range members {
		t := tables[member]
		if t == nil {
			continue
		}
		to := make([]int, len(t.ColumnDefinitions))
		for i, c := range t.ColumnDefinitions {
			to[i] = columnIndex(columns, c.Name)
		}
		for _, r := range t.Rows {
			row := Row{Cluster: member, Cells: make([]any, len(columns))}
			row.Object, _ = r.Object.Object.(*metav1.PartialObjectMetadata)
			for i, cell := range r.Cells {
				if i < len(to) {
					row.Cells[to[i]] = cell
				}
			}
			rows = append(rows, row)
		}
	}
	return columns, rows
}

// Row is one object of a gathered table.
type Row struct {
	Cluster string
	Object  *metav1.PartialObjectMetadata
	Cells   []any
}
