// SPDX-License-Identifier: Apache-2.0

package propagate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fairlead/fairlead/propagate"
	"github.com/fairlead/fairlead/propagate/oracle"
)

// foreign are words of stories about what the oracle does not know.
var foreign = []string{
	"-observe", "ailover", "!broken", "FreezeUnit",
	"clusterAffinities", "spreadConstraints", "Aggregated", "dynamicWeight", "fieldSelector", "schedulerName", "resourceModels",
	"imageOverrider", "annotationsOverrider", "argsOverrider", "fieldOverrider", "path: /metadata/name", "dependentOverrides", "suspendDispatching",
	"kind: Job", "kind: Pod", "kind: Service", "volumes", "secretRef", "matchExpressions",
	"ResourceInterpreterCustomization", "WorkloadRebalancer", "WorkloadAffinity", "workloadAffinity",
	"propagationpolicy.karmada.io/name", "fairlead.dev/holds", "skippedNamespaces",
}

// The oracle agrees with every story that has words it knows, and all of the
// seed cases are among them.
func TestOracleKnowsTheStories(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	var known []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(foreign, func(word string) bool { return bytes.Contains(raw, []byte(word)) }) {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		known = append(known, name)
		t.Run(name, func(t *testing.T) { agree(t, txtar.Parse(raw)) })
	}
	for _, seed := range []string{"lazy_combined_6_dependencies", "static_corner_2_cpp", "main_job", "preserve_on_deletion", "suspended_from_the_start"} {
		if !slices.Contains(known, seed) {
			t.Errorf("the oracle does not know %s", seed)
		}
	}
}

func agree(t *testing.T, story *txtar.Archive) {
	var s propagate.State
	var model oracle.Reader
	m := &oracle.State{}
	allows := map[string]string{}
	for _, c := range history(story) {
		in := oracle.Commit{Hash: c.Hash, Time: c.Time, Files: c.tree}
		unconfirmed := c.Commit
		unconfirmed.Trailers = nil
		if held := propagate.Step(s, unconfirmed).Refusal; held != nil && held.Guard != nil {
			allows[held.Guard.Digest.String()] = model.Step(m, in).Deletes
		}

		s = propagate.Step(s, c.Commit)
		for _, trailer := range c.Trailers {
			in.Allows = append(in.Allows, allows[trailer.Value])
		}
		m = model.Step(m, in)
		if got, want := engineView(&s), modelView(m); got != want {
			t.Fatalf("%s: the engine and the oracle disagree; if the story is about what the oracle does not know, its word belongs to the foreign ones\n%s", c.Hash, differing(got, want))
		}
	}
}
