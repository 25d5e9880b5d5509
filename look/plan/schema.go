// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	_ "embed"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema of a plan, draft 2020-12. It is made from the types of
// this package: go test ./look/plan -run TestSchema -update. Readers must ignore fields
// that they do not know.
func Schema() []byte { return bytes.Clone(schema) }
