// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"slices"
	"strings"
)

// Form is a value of -o: its name, and what stands after "=".
type Form struct {
	Name     string
	Template string
}

// The names of forms.
const (
	FormTable         = "table"
	FormWide          = "wide"
	FormText          = "text"
	FormJSON          = "json"
	FormYAML          = "yaml"
	FormName          = "name"
	FormJSONPath      = "jsonpath"
	FormGoTemplate    = "go-template"
	FormCustomColumns = "custom-columns"
)

// fileSuffix ends the name of a form whose template stands in a file.
const fileSuffix = "-file"

// ParseForm reads a value of -o. read returns a file, for the forms that name one.
func ParseForm(text string, read func(string) ([]byte, error), known ...string) (Form, error) {
	name, template, given := strings.Cut(text, "=")
	base, fromFile := strings.CutSuffix(name, fileSuffix)
	f := Form{Name: base, Template: template}
	switch {
	case !slices.Contains(known, base) || fromFile && !f.takesTemplate():
		return Form{}, fmt.Errorf("-o %q must be one of %s", text, strings.Join(Described(known), ", "))
	case given && !f.takesTemplate():
		return Form{}, fmt.Errorf("-o %s takes no value", name)
	case template == "" && f.takesTemplate():
		return Form{}, fmt.Errorf("-o %s needs a value, as in -o %s=VALUE", name, name)
	case !fromFile:
		return f, nil
	}

	content, err := read(template)
	if err != nil {
		return Form{}, fmt.Errorf("-o %s: %w", name, err)
	}
	f.Template = string(content)
	if base == FormCustomColumns {
		f.Template, err = columnsOfFile(f.Template)
	}
	return f, err
}

func (f Form) takesTemplate() bool {
	return f.Name == FormJSONPath || f.Name == FormGoTemplate || f.Name == FormCustomColumns
}

// Table reports whether the form is a table with the columns of the command.
func (f Form) Table() bool { return f.Name == FormTable || f.Name == FormWide }

// Whole reports whether the form needs whole objects, and not just their rows.
func (f Form) Whole() bool {
	return f.takesTemplate() || f.Name == FormJSON || f.Name == FormYAML
}

// Described are names of forms as help and errors show them.
func Described(names []string) []string {
	described := slices.Clone(names)
	for i, name := range names {
		if (Form{Name: name}).takesTemplate() {
			described[i] += "=..."
		}
	}
	return described
}

// columnsOfFile reads the two lines of a file for -o custom-columns-file: the headers,
// and the path of each.
func columnsOfFile(content string) (string, error) {
	lines := strings.SplitN(strings.TrimSpace(content), "\n", 2)
	if len(lines) != 2 {
		return "", fmt.Errorf("-o custom-columns-file: a line of headers and a line of paths are needed")
	}

	headers, paths := strings.Fields(lines[0]), strings.Fields(lines[1])
	if len(headers) != len(paths) {
		return "", fmt.Errorf("-o custom-columns-file: it has %d headers and %d paths", len(headers), len(paths))
	}
	for i := range headers {
		headers[i] += ":" + paths[i]
	}
	return strings.Join(headers, ","), nil
}
