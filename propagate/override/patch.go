// SPDX-License-Identifier: Apache-2.0

package override

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// operation is one operation of a JSON patch.
type operation struct {
	Op    policyv1alpha1.OverriderOperator `json:"op"`
	Path  string                           `json:"path"`
	Value json.RawMessage                  `json:"value,omitempty"`
}

func (e *edit) plaintext(o *policyv1alpha1.Overriders) error {
	if len(o.Plaintext) == 0 {
		return nil
	}

	document, err := json.Marshal(e.object)
	if err != nil {
		return err
	}

	operations := make([]operation, len(o.Plaintext))
	for n, over := range o.Plaintext {
		operations[n] = operation{over.Operator, over.Path, value(over.Operator, over.Value)}
	}

	document, failed, err := patch(document, operations)
	if err != nil {
		return fmt.Errorf("plaintext[%d]: %w", failed, err)
	}

	object, err := parse(document)
	if err != nil {
		return fmt.Errorf("plaintext: %w", err)
	}

	e.object = object
	return nil
}

// fields edits JSON or YAML documents inside string fields.
func (e *edit) fields(o *policyv1alpha1.Overriders) error {
	for n, over := range o.FieldOverrider {
		if err := e.field(&over); err != nil {
			return fmt.Errorf("fieldOverrider[%d]: %w", n, err)
		}
	}
	return nil
}

func (e *edit) field(over *policyv1alpha1.FieldOverrider) error {
	text, err := stringAt(e.object, over.FieldPath)
	if err != nil {
		return err
	}

	document := []byte(text)
	var operations []operation
	for _, op := range over.JSON {
		operations = append(operations, operation{op.Operator, op.SubPath, value(op.Operator, op.Value)})
	}
	for _, op := range over.YAML {
		operations = append(operations, operation{op.Operator, op.SubPath, value(op.Operator, op.Value)})
	}

	if len(over.YAML) > 0 {
		if document, err = yaml.YAMLToJSON(document); err != nil {
			// The content may be a secret, so errors only name the field.
			return fmt.Errorf("%s does not contain YAML", over.FieldPath)
		}
	} else if !json.Valid(document) {
		return fmt.Errorf("%s does not contain JSON", over.FieldPath)
	}

	document, failed, err := patch(document, operations)
	if err != nil {
		return fmt.Errorf("%s: operation %d: %w", over.FieldPath, failed, err)
	}

	if len(over.YAML) > 0 {
		if document, err = yaml.JSONToYAML(document); err != nil {
			return fmt.Errorf("%s: %w", over.FieldPath, err)
		}
	}

	return setStringAt(e.object, over.FieldPath, string(document))
}

// value is the value of an operation: nil for remove, null for a missing one.
func value(op policyv1alpha1.OverriderOperator, v apiextensionsv1.JSON) json.RawMessage {
	switch {
	case op == policyv1alpha1.OverriderRemove:
		return nil
	case len(v.Raw) == 0:
		return json.RawMessage("null")
	}
	return v.Raw
}

// patch applies operations, one after the other; failed is the first that does not
// apply. A path that does not exist is an error for remove and replace, a missing
// parent for add.
func patch(document []byte, operations []operation) (patched []byte, failed int, err error) {
	raw, err := json.Marshal(operations)
	if err != nil {
		return nil, 0, err
	}

	decoded, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return nil, 0, err
	}

	// All at once: the document is decoded and encoded once, not for each of them.
	if patched, err = decoded.Apply(document); err == nil {
		return patched, 0, nil
	}

	failed = sort.Search(len(decoded)-1, func(n int) bool {
		_, err := decoded[:n+1].Apply(document)
		return err != nil
	})
	_, err = decoded[:failed+1].Apply(document)
	return nil, failed, fmt.Errorf("%s %s: %w", operations[failed].Op, operations[failed].Path, err)
}

// parse decodes an object. Integers stay integers.
func parse(document []byte) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(document, &object); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errors.New("the result is empty")
	}
	return object, nil
}

// stringAt is the string at a JSON pointer (RFC 6901).
func stringAt(object map[string]any, pointer string) (string, error) {
	var text string
	err := visit(object, pointer, func(v any) (any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%s is not a string", pointer)
		}
		text = s
		return v, nil
	})
	return text, err
}

func setStringAt(object map[string]any, pointer, text string) error {
	return visit(object, pointer, func(any) (any, error) { return text, nil })
}

// visit replaces the value at a JSON pointer, which must exist.
func visit(object map[string]any, pointer string, replace func(any) (any, error)) error {
	if !strings.HasPrefix(pointer, "/") {
		return fmt.Errorf("%q is not a JSON pointer", pointer)
	}

	var at any = object
	parts := strings.Split(pointer[1:], "/")
	for n, part := range parts {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		last := n == len(parts)-1
		switch parent := at.(type) {
		case map[string]any:
			child, ok := parent[part]
			if !ok {
				return fmt.Errorf("%s does not exist", pointer)
			}
			if at = child; last {
				replaced, err := replace(child)
				if err == nil {
					parent[part] = replaced
				}
				return err
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(parent) {
				return fmt.Errorf("%s does not exist", pointer)
			}
			if at = parent[i]; last {
				replaced, err := replace(at)
				if err == nil {
					parent[i] = replaced
				}
				return err
			}
		default:
			return fmt.Errorf("%s does not exist", pointer)
		}
	}

	return nil
}
