// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/reconcile"
)

// T51, T54: a secret value reaches the member and nothing else: no file of the
// state, no line that is reported, neither when all is well nor when the
// object is held, foreign or invalid.
func TestSecretsStayOutOfStateAndLines(t *testing.T) {
	const canary = "canary-7f3a9c"
	secret := func(name, key string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: default}\nstringData: {" + key + ": " + canary + "}\n"
	}
	w := newWorld(t, embeddedMembers(t))
	files := map[string]string{
		"good.yaml":    secret("good", "key"),
		"held.yaml":    secret("held", "key"),
		"invalid.yaml": secret("invalid", `"no such key/"`),
		"p.yaml":       policyFor("Secret", "good", "invalid"),
		"q.yaml":       policyFor("Secret", "held") + "  suspension: {dispatchingOnClusters: {clusterNames: [eu-1]}}\n",
	}
	for _, name := range names {
		files["clusters/"+name+".yaml"] = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {syncMode: Push}\n"
	}
	w.repo.Commit("secrets", files)
	if err := w.once(); err != nil && !errors.Is(err, reconcile.ErrOwing) {
		t.Fatal(err)
	}
	w.repo.Commit("broken", map[string]string{"broken.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {key: [" + canary + "}\n"})
	if err := w.once(); !errors.Is(err, reconcile.ErrOwing) {
		t.Fatal(err)
	}
	if said := w.said(); strings.Contains(said, canary) {
		t.Errorf("it was said:\n%s", said)
	}
	if events, err := os.ReadFile(filepath.Join(w.state, "events.jsonl")); err != nil || !bytes.Contains(events, []byte(`"applied"`)) || !bytes.Contains(events, []byte("broken.yaml:3")) {
		t.Errorf("the record of events should tell of both: %v\n%s", err, events)
	}
	err := filepath.WalkDir(w.state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(canary)) {
			t.Errorf("it stands in %s", filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
