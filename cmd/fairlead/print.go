// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fairlead/fairlead/object"
)

// list is the result of a look command, in no output format yet.
type list struct {
	columns []metav1.TableColumnDefinition
	items   []item
	live    bool // read from clusters: the values of Secrets are shown, as kubectl does
}

// item is one thing found: as an object, and as a row under the columns.
type item struct {
	object any
	row    []any
}

// columns makes table columns of names; those after "+" are shown by -o wide.
func columns(names ...string) []metav1.TableColumnDefinition {
	var defs []metav1.TableColumnDefinition
	var priority int32
	for _, name := range names {
		if name == "+" {
			priority = 1
			continue
		}
		defs = append(defs, metav1.TableColumnDefinition{Name: name, Type: "string", Priority: priority})
	}

	return defs
}

var outputs = []string{"table", "wide", "json", "yaml", "name"}

func checkOutput(o string, known ...string) error {
	if !slices.Contains(known, o) {
		return usagef("-o %q must be one of %s", o, strings.Join(known, ", "))
	}
	return nil
}

// print writes a list; a single object that the user named is
// written without the list around it, as kubectl does.
func (l list) print(w io.Writer, output string, single bool) error {
	switch output {
	case "table", "wide":
		return l.table(w, output == "wide")
	}

	objects := make([]unstructured.Unstructured, len(l.items))
	for i, it := range l.items {
		u, err := asUnstructured(it.object)
		if err != nil {
			return err
		}
		if objects[i] = *u; !l.live {
			objects[i].Object = object.Masked(u.Object)
		}
	}

	var printer printers.ResourcePrinter = &printers.YAMLPrinter{}
	switch output {
	case "json":
		printer = &printers.JSONPrinter{}
	case "name":
		name := &printers.NamePrinter{ShortOutput: true}
		for i := range objects {
			if err := name.PrintObj(&objects[i], w); err != nil {
				return err
			}
		}
		return nil
	}

	if single && len(objects) == 1 {
		return printer.PrintObj(&objects[0], w)
	}

	all := map[string]any{"apiVersion": "v1", "kind": "List", "items": contents(objects)}
	return printer.PrintObj(&unstructured.Unstructured{Object: all}, w)
}

func contents(objects []unstructured.Unstructured) []any {
	items := make([]any, len(objects))
	for i := range objects {
		items[i] = objects[i].Object
	}
	return items
}

func (l list) table(w io.Writer, wide bool) error {
	table := &metav1.Table{ColumnDefinitions: l.columns}
	for _, it := range l.items {
		cells := slices.Clone(it.row)
		for i, cell := range cells {
			if cell == "" || cell == nil {
				cells[i] = "<none>"
			}
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}

	return printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(table, w)
}

// asUnstructured takes an object through its JSON, which keeps whole numbers
// whole.
func asUnstructured(value any) (*unstructured.Unstructured, error) {
	if m, ok := value.(map[string]any); ok {
		return &unstructured.Unstructured{Object: m}, nil
	}
	if m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value); err == nil {
		return &unstructured.Unstructured{Object: m}, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%T: %w", value, err)
	}

	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(raw)
}
