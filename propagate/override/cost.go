// SPDX-License-Identifier: Apache-2.0

package override

import (
	"encoding/json"
	"fmt"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/object"
)

// maxCost limits the operations of one rule, times the bytes of the object and of
// the rule: each operation may go through all of both. A hundred operations on a
// megabyte are a fortieth of it.
const maxCost = 1 << 32

// checkCost counts the work of a rule before it is done (decision 43). A rule with
// few operations can edit an object of any size, so most need no count of bytes.
func checkCost(obj map[string]any, o *policyv1alpha1.Overriders) error {
	n := operations(o)
	if n < maxCost/maxSize {
		return nil
	}

	rule, err := json.Marshal(o)
	if err != nil {
		return err
	}

	if size := object.SizeOf(obj) + len(rule); n > maxCost/size {
		return fmt.Errorf("%d operations on an object of %d bytes are too much for one rule: at most %d are applied to it", n, size-len(rule), maxCost/size)
	}
	return nil
}

// maxSize is more than an object and a rule can have together: each comes from a
// file of at most 4 MiB, or from a kustomization of at most 64 MiB.
const maxSize = 128 << 20

// operations counts what a rule does one after the other.
func operations(o *policyv1alpha1.Overriders) int {
	n := len(o.Plaintext) + len(o.ImageOverrider)
	for _, list := range [][]policyv1alpha1.CommandArgsOverrider{o.CommandOverrider, o.ArgsOverrider} {
		for i := range list {
			n += 1 + len(list[i].Value)
		}
	}
	for _, list := range [][]policyv1alpha1.LabelAnnotationOverrider{o.LabelsOverrider, o.AnnotationsOverrider} {
		for i := range list {
			n += len(list[i].Value)
		}
	}
	for i := range o.FieldOverrider {
		n += 1 + len(o.FieldOverrider[i].JSON) + len(o.FieldOverrider[i].YAML)
	}
	return n
}
