// SPDX-License-Identifier: Apache-2.0

package output

import (
	"encoding/json"
	"io"

	"sigs.k8s.io/yaml"
)

// Value writes a report as JSON or YAML.
func Value(w io.Writer, form string, v any) error {
	if form == FormYAML {
		raw, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	}

	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
