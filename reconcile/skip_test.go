// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"strings"
	"testing"
)

// A loop that has folded a commit which is skipped later ends where one does that never
// folded it (decision 43): the image of the skipped commit was there, and is not any
// more, and nothing is folded again in the next round.
func TestSkippedCommitInALoop(t *testing.T) {
	const lazy = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: default}
spec:
  activationPreference: Lazy
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {clusterNames: [eu-1]}}
`
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {a: one}\n"
	ends := map[string]string{}
	for _, how := range []string{"each commit", "all at once"} {
		w := newWorld(t, embeddedMembers(t))
		step := func() {
			if how == "each commit" {
				w.settle()
			}
		}

		files := quickstart(t)
		for name := range files {
			if !strings.Contains(files[name], "kind: Cluster\n") {
				delete(files, name)
			}
		}
		files["policy.yaml"], files["config.yaml"] = lazy, config
		w.repo.Commit("begin", files)
		step()
		bad := w.repo.Commit("bad", map[string]string{"policy.yaml": strings.Replace(lazy, "eu-1", "us-1", 1), "config.yaml": strings.Replace(config, "one", "two", 1)})
		step()
		w.repo.Commit("back", map[string]string{"config.yaml": config})
		step()
		w.repo.Commit("Skip it\n\nFairlead-Skip: "+bad, nil)
		w.settle()

		for _, cluster := range names {
			if w.get(cluster, configMaps, "default", "config") != nil {
				ends[how] += cluster + " "
			}
		}
		if said := w.said(); how == "each commit" && strings.Count(said, "without a commit that it skips") != 1 {
			t.Errorf("said:\n%s", said)
		}
		w.settle()
		if said := w.said(); strings.Contains(said, "without a commit that it skips") {
			t.Errorf("it was folded again:\n%s", said)
		}
	}

	if ends["each commit"] != "eu-1 " || ends["all at once"] != "eu-1 " {
		t.Errorf("got %v", ends)
	}
}
