// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/propagate"
)

// vector is a history of one workload, and what Karmada makes of it.
type vector struct {
	Name  string
	Steps []struct {
		Files  map[string]json.RawMessage
		Expect expectation
	}
}

// expectation is a binding as far as a vector tells it.
type expectation struct {
	Clusters     []workv1alpha2.TargetCluster
	Scheduled    *bool // nil tells nothing about the condition
	Reason       string
	Message      string
	AffinityName string
}

func TestVectors(t *testing.T) {
	f, err := os.Open("testdata/vectors/scheduling.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		t.Run(v.Name, v.replay)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func (v vector) replay(t *testing.T) {
	var s, restored propagate.State
	snapshots := map[string]*fleet.Snapshot{}
	tree := map[string]string{}
	for i, step := range v.Steps {
		for name, file := range step.Files {
			tree[name] = documents(t, file)
		}
		snapshot, problems := read(tree)
		if problems != nil {
			t.Fatalf("step %d: %v", i, problems)
		}
		c := propagate.Commit{Hash: fmt.Sprintf("c%d", i), Time: int64(i) * 2 * 3600, Snapshot: snapshot}
		snapshots[c.Hash] = snapshot
		c = confirmed(s, c)
		s, restored = propagate.Step(s, c), propagate.Step(restored, c)
		if print(&restored, nil) != print(&s, nil) {
			t.Errorf("step %d: a restored state goes on otherwise", i)
		}
		restored = restore(t, &restored, snapshots)
		bindings := slices.Collect(s.Bindings.Values())
		if s.Refusal != nil || len(bindings) != 1 {
			t.Fatalf("step %d: %d bindings, refusal %+v", i, len(bindings), s.Refusal)
		}
		again, _ := read(tree)
		if settled := propagate.Step(s, propagate.Commit{Hash: "again", Snapshot: again}); print(&settled, nil) != print(&s, nil) {
			t.Errorf("step %d: a second look changes something", i)
		}
		got, want := observed(s.ResourceBinding(bindings[0]), step.Expect.Scheduled == nil), step.Expect
		if g, w := text(t, got), text(t, want); g != w {
			t.Errorf("step %d of %d\n got %s\nwant %s", i, len(v.Steps), g, w)
		}
	}
}

// confirmed is a commit whose message allows what it deletes. Karmada has no guard,
// and where nothing fits any more a vector deletes the last copy.
func confirmed(s propagate.State, c propagate.Commit) propagate.Commit {
	if r := propagate.Step(s, c).Refusal; r != nil && r.Guard != nil {
		c.Trailers = append(c.Trailers, trailerOf(r.Guard))
	}
	return c
}

// documents is a file as the stories have it: a list is a stream.
func documents(t *testing.T, file json.RawMessage) string {
	if !strings.HasPrefix(string(file), "[") {
		return string(file)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(file, &list); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "---\n%s\n", d)
	}
	return b.String()
}

// observed is a binding in a vector's terms.
func observed(rb *workv1alpha2.ResourceBinding, ignoreCondition bool) expectation {
	e := expectation{Clusters: rb.Spec.Clusters, AffinityName: rb.Status.SchedulerObservingAffinityName}
	for _, c := range rb.Status.Conditions {
		if c.Type == workv1alpha2.Scheduled && !ignoreCondition {
			ok := c.Status == metav1.ConditionTrue
			e.Scheduled, e.Reason, e.Message = &ok, c.Reason, c.Message
		}
	}
	return e
}

func text(t *testing.T, e expectation) string {
	if len(e.Clusters) == 0 {
		e.Clusters = nil
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
