// SPDX-License-Identifier: Apache-2.0

// Package plantest holds plans to their schema. Only tests import it.
package plantest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fairlead/fairlead/look/plan"
)

// Check reports how a plan's JSON differs from the schema, or what it has that the
// schema does not tell.
func Check(r *plan.Plan) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return CheckJSON(raw)
}

// CheckJSON is Check of JSON.
func CheckJSON(raw []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(plan.Schema()))
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	forbidMore(doc)
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("plan.json", doc); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	schema, err := compiler.Compile("plan.json")
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}

	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// forbidMore refuses fields that a schema does not name. A reader has to take them.
func forbidMore(doc any) {
	switch d := doc.(type) {
	case map[string]any:
		if _, named := d["properties"].(map[string]any); named {
			d["additionalProperties"] = false
		}
		for _, below := range d {
			forbidMore(below)
		}
	case []any:
		for _, below := range d {
			forbidMore(below)
		}
	}
}
