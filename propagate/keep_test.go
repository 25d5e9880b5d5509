// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/fleet"
)

// A03: what overrides make of a large object, other for each of many clusters, is not
// kept for all of them, and all of it is counted.
func TestA3OverridesOfManyClusters(t *testing.T) {
	r := newRendering(&index{}, &fleet.Template{})
	object := map[string]any{"data": strings.Repeat("x", 1<<20)}
	for i := range 200 {
		r.keep(fmt.Sprint(i), rendered{object: object})
		if _, kept := r.memo[fmt.Sprint(i)]; !kept || len(r.memo) > 64 {
			t.Fatalf("%d objects of a megabyte are kept", len(r.memo))
		}
	}
	if r.cost.rendered < 200<<20 {
		t.Errorf("%d bytes are counted", r.cost.rendered)
	}

	st := &step{prev: &State{}, in: &inputs{cost: &cost{rendered: maxRendered + 1}}}
	if p := st.tooMuch(); !st.overloaded() || p == nil || p.Message != "the overrides would edit more than 8589934592 bytes of objects" {
		t.Errorf("got %v", p)
	}
}
