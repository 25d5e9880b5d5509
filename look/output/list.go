// SPDX-License-Identifier: Apache-2.0

package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fairlead/fairlead/object"
)

// List is what a command has found, in no form yet.
type List struct {
	Columns Columns
	Items   []Item
	Live    bool // read from clusters: the values of Secrets are shown, as kubectl does
}

// Item is one thing found: as an object, or as what has one when it is asked for its
// Object or is Made, and as a row under the columns.
type Item struct {
	ID      object.ID // of the object, so that it need not be made to be named; zero is not known
	Object  any
	Row     []any
	Cluster string // on which it stands; "" if it stands on none
}

// Made is an object that is made when it is shown: of a million that are found, a table
// shows none.
type Made func() any

// Unstructured returns the object of an item. Secrets are in it.
func (it Item) Unstructured() (*unstructured.Unstructured, error) { return asUnstructured(it.Object) }

// Identity returns the ID of the object of an item.
func (it Item) Identity() (object.ID, error) {
	if it.ID != (object.ID{}) {
		return it.ID, nil
	}

	u, err := it.Unstructured()
	if err != nil {
		return object.ID{}, err
	}
	gvk := u.GroupVersionKind()
	return object.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}, nil
}

// Options are how lists are printed.
type Options struct {
	Form       Form
	Single     bool   // the user has named one object: it is printed without a list around it
	SortBy     string // a JSONPath; "" keeps the order
	NoHeaders  bool
	ShowLabels bool
	Screen     Screen
	Layout     Layout // of the tables that were printed before; nil if this is all
}

// Check returns an error for options that no list can be printed with.
func (o Options) Check() error {
	var err error
	if o.SortBy != "" {
		if _, err = parsePath(o.SortBy); err != nil {
			return fmt.Errorf("--sort-by: %w", err)
		}
	}

	switch o.Form.Name {
	case FormCustomColumns:
		_, err = parseColumns(o.Form.Template)
	case FormJSONPath:
		if _, err = printers.NewJSONPathPrinter(o.Form.Template); err != nil {
			err = fmt.Errorf("-o jsonpath: %w", err)
		}
	case FormGoTemplate:
		if _, err = printers.NewGoTemplatePrinter([]byte(o.Form.Template)); err != nil {
			err = fmt.Errorf("-o go-template: %w", err)
		}
	}
	return err
}

// Print writes lists: each as a table, or all their objects in one document.
func Print(w io.Writer, lists []List, o Options) error {
	for i := range lists {
		if err := lists[i].sort(o.SortBy); err != nil {
			return err
		}
	}

	switch o.Form.Name {
	case FormTable, FormWide:
		return tables(w, lists, o)
	case FormName:
		return names(w, lists)
	case FormCustomColumns:
		return customColumns(w, lists, o)
	}
	return document(w, lists, o)
}

func tables(w io.Writer, lists []List, o Options) error {
	for i, l := range lists {
		if i > 0 && o.Layout == nil {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		t := Table{Columns: slices.Clone(l.Columns), Wide: o.Form.Name == FormWide, NoHeaders: o.NoHeaders, Layout: o.Layout}
		if o.ShowLabels {
			t.Columns = append(t.Columns, Column{Name: "LABELS"})
		}
		for _, it := range l.Items {
			row := slices.Clone(it.Row)
			if o.ShowLabels {
				u, err := it.Unstructured()
				if err != nil {
					return err
				}
				row = append(row, labels.FormatLabels(u.GetLabels()))
			}
			t.Rows = append(t.Rows, row)
		}
		if err := t.Text(w, o.Screen); err != nil {
			return err
		}
	}
	return nil
}

// names writes a line for each object, such as deployment.apps/web. Where two lines
// would be equal, all have the namespace, deployment.apps/shop/web, and if that is not
// enough, the cluster: deployment.apps/shop/web@eu-1.
func names(w io.Writer, lists []List) error {
	var lines [3][]string
	for _, l := range lists {
		for _, it := range l.Items {
			id, err := it.Identity()
			if err != nil {
				return err
			}
			kind := strings.ToLower(id.GroupKind().String())
			long := kind + "/" + id.Name
			lines[0] = append(lines[0], long)
			if id.Namespace != "" {
				long = kind + "/" + id.Namespace + "/" + id.Name
			}
			lines[1] = append(lines[1], long)
			if it.Cluster != "" {
				long += "@" + it.Cluster
			}
			lines[2] = append(lines[2], long)
		}
	}

	chosen := lines[2]
	for _, some := range lines[:2] {
		if len(slices.Compact(slices.Sorted(slices.Values(some)))) == len(some) {
			chosen = some
			break
		}
	}
	for _, line := range chosen {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func customColumns(w io.Writer, lists []List, o Options) error {
	columns, err := parseColumns(o.Form.Template)
	if err != nil {
		return err
	}

	t := Table{NoHeaders: o.NoHeaders, Wide: true}
	for _, c := range columns {
		t.Columns = append(t.Columns, Column{Name: c.name})
	}
	for _, l := range lists {
		for _, it := range l.Items {
			u, err := l.whole(it)
			if err != nil {
				return err
			}
			var row []any
			for _, c := range columns {
				found, err := c.path.values(u.Object)
				if err != nil {
					return fmt.Errorf("-o custom-columns: %s: %w", c.name, err)
				}
				row = append(row, texts(found))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t.Text(w, o.Screen)
}

// texts lists values: numbers and texts as they are, and what has fields as JSON.
func texts(found []any) Names {
	var all []string
	for _, value := range found {
		switch value.(type) {
		case map[string]any, []any:
			if raw, err := json.Marshal(value); err == nil {
				all = append(all, string(raw))
				continue
			}
		}
		all = append(all, fmt.Sprint(value))
	}
	return Names{All: all}
}

// document writes all objects as one: a single object that the user named, else a List
// as kubectl writes it.
func document(w io.Writer, lists []List, o Options) error {
	items := []any{}
	for _, l := range lists {
		for _, it := range l.Items {
			u, err := l.whole(it)
			if err != nil {
				return err
			}
			items = append(items, u.Object)
		}
	}

	printer, err := o.Form.printer()
	if err != nil {
		return err
	}
	all := map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if o.Single && len(items) == 1 {
		all = items[0].(map[string]any)
	}
	if err := printer.PrintObj(&unstructured.Unstructured{Object: all}, w); err != nil {
		return o.Form.failure(err)
	}
	return nil
}

// failure is the error of a printer. That of a template repeats the whole input, and
// with it what nobody should see.
func (f Form) failure(err error) error {
	text := err.Error()
	if at := strings.Index(text, "Printing more information"); at >= 0 {
		text = strings.TrimSpace(text[:at])
	}
	if f.takesTemplate() {
		return fmt.Errorf("-o %s: %s", f.Name, text)
	}
	return err
}

func (f Form) printer() (printers.ResourcePrinter, error) {
	switch f.Name {
	case FormJSON:
		return &printers.JSONPrinter{}, nil
	case FormJSONPath:
		p, err := printers.NewJSONPathPrinter(f.Template)
		if err != nil {
			return nil, err
		}
		p.AllowMissingKeys(true)
		return p, nil
	case FormGoTemplate:
		p, err := printers.NewGoTemplatePrinter([]byte(f.Template))
		if err != nil {
			return nil, err
		}
		p.AllowMissingKeys(true)
		return p, nil
	}
	return &printers.YAMLPrinter{}, nil
}

// whole is the object of an item as it may be shown.
func (l List) whole(it Item) (*unstructured.Unstructured, error) {
	u, err := it.Unstructured()
	if err != nil || l.Live {
		return u, err
	}
	return &unstructured.Unstructured{Object: object.Masked(u.Object)}, nil
}

func (l List) sort(by string) error {
	if by == "" {
		return nil
	}
	p, err := parsePath(by)
	if err != nil {
		return fmt.Errorf("--sort-by: %w", err)
	}

	type keyed struct {
		item Item
		key  []any
	}
	all, known := make([]keyed, len(l.Items)), false
	for i, it := range l.Items {
		u, err := l.whole(it)
		if err != nil {
			return err
		}
		key, err := p.values(u.Object)
		if err != nil {
			return fmt.Errorf("--sort-by: %w", err)
		}
		all[i], known = keyed{it, key}, known || len(key) > 0
	}
	if !known && len(all) > 0 {
		return fmt.Errorf("--sort-by: no object has a field %s", by)
	}

	slices.SortStableFunc(all, func(a, b keyed) int { return compare(a.key, b.key) })
	for i := range all {
		l.Items[i] = all[i].item
	}
	return nil
}

// asUnstructured takes an object through its JSON, which keeps whole numbers whole.
func asUnstructured(value any) (*unstructured.Unstructured, error) {
	if made, ok := value.(Made); ok {
		value = made()
	}
	if m, ok := value.(interface{ Object() map[string]any }); ok {
		value = m.Object()
	}
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
