// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"testing"
	"testing/fstest"

	"github.com/fairlead/fairlead/render"
)

// The documents of every vector can be rendered. What the rules make of them is
// tested with the rules.
func TestVectorsAreRead(t *testing.T) {
	file, err := os.Open("../propagate/testdata/vectors/scheduling.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	lines, n := bufio.NewScanner(file), 0
	lines.Buffer(nil, 16<<20)

	for lines.Scan() {
		var v struct {
			Name  string
			Steps []struct{ Files map[string]json.RawMessage }
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}

		tree := map[string]json.RawMessage{}
		for i, step := range v.Steps {
			maps.Copy(tree, step.Files)
			fsys := fstest.MapFS{}
			for name, content := range tree {
				fsys[name] = &fstest.MapFile{Data: content}
			}

			if _, err := render.New().Render(fsys); err != nil {
				t.Errorf("%s, step %d: %v", v.Name, i, err)
			}

			n++
		}
	}

	if n < 500 {
		t.Errorf("only %d steps", n)
	}
}
