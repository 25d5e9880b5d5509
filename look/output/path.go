// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/jsonpath"
)

// path is a JSONPath as kubectl takes it in columns and --sort-by: with or without
// braces and the first dot.
type path struct{ parsed *jsonpath.JSONPath }

func parsePath(text string) (path, error) {
	inner := strings.TrimSpace(text)
	if strings.HasPrefix(inner, "{") && strings.HasSuffix(inner, "}") {
		inner = inner[1 : len(inner)-1]
	}
	if !strings.HasPrefix(inner, ".") && !strings.HasPrefix(inner, "[") {
		inner = "." + inner
	}

	p := path{jsonpath.New("path").AllowMissingKeys(true)}
	if err := p.parsed.Parse("{" + inner + "}"); err != nil {
		return path{}, fmt.Errorf("%q is no JSONPath: %w", text, err)
	}
	return p, nil
}

// values are what an object has at the path.
func (p path) values(o map[string]any) (found []any, err error) {
	results, err := p.parsed.FindResults(o)
	if err != nil {
		return nil, err
	}
	for _, set := range results {
		for _, v := range set {
			if value := plain(v); value != nil {
				found = append(found, value)
			}
		}
	}
	return found, nil
}

func plain(v reflect.Value) any {
	for v.IsValid() && v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	if !v.IsValid() || !v.CanInterface() {
		return nil
	}
	return v.Interface()
}

// column is one of -o custom-columns.
type column struct {
	name string
	path path
}

func parseColumns(spec string) ([]column, error) {
	var all []column
	for part := range strings.SplitSeq(spec, ",") {
		name, text, ok := strings.Cut(part, ":")
		if !ok || name == "" || text == "" {
			return nil, fmt.Errorf("-o custom-columns: %q is not HEADER:PATH, such as NAME:.metadata.name", part)
		}
		p, err := parsePath(text)
		if err != nil {
			return nil, fmt.Errorf("-o custom-columns: %w", err)
		}
		all = append(all, column{name, p})
	}
	return all, nil
}

// compare orders two values of --sort-by: what is missing first, numbers and
// quantities by their amount, and all else as text.
func compare(a, b []any) int {
	if len(a) == 0 || len(b) == 0 {
		return cmp.Compare(len(a), len(b))
	}

	x, y := fmt.Sprint(a[0]), fmt.Sprint(b[0])
	m, errX := resource.ParseQuantity(x)
	n, errY := resource.ParseQuantity(y)
	if errX == nil && errY == nil {
		return m.Cmp(n)
	}
	return cmp.Compare(x, y)
}
