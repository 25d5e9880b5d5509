// SPDX-License-Identifier: Apache-2.0

package push_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead/fairlead/dispatch/push"
)

func TestContexts(t *testing.T) {
	s := start(t, "eu-1")
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, s.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	contexts, err := push.LoadContexts(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := contexts.For("eu-1")
	if err != nil || cfg.Host != s.URL() {
		t.Errorf("context eu-1: %v, %v", cfg, err)
	}
	_, err = contexts.For("eu-2")
	if want := "kubeconfig " + file + ` has no context "eu-2"`; err == nil || err.Error() != want {
		t.Errorf("it reads %v, want %s", err, want)
	}
	if _, err := push.LoadContexts(file + "-absent"); err == nil {
		t.Error("a file that is not there is no error")
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}
