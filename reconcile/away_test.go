// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/fairlead/fairlead/source"
)

// F28, A06: while the git server is away the members stay at the last commit that
// was fetched, and are kept there; a process that begins meanwhile goes on, too.
func TestGitServerIsAway(t *testing.T) {
	w := newWorld(t, embeddedMembers(t))
	w.repo.Commit("one", smallFleet())
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	var away atomic.Bool
	git := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), Env: []string{"GIT_PROJECT_ROOT=" + w.repo.Dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(rw, "away", http.StatusServiceUnavailable)
			return
		}
		git.ServeHTTP(rw, r)
	}))
	defer server.Close()
	opt := w.options()
	opt.Repo, opt.Watch = server.URL+"/.git", true
	opt.Auth = source.Auth{CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	has := func(v string) func() bool {
		return func() bool {
			for _, name := range names {
				if o := w.get(name, configMaps, "default", "web"); o == nil || value(o, "v") != v {
					return false
				}
			}
			return true
		}
	}
	end := w.running(opt)
	w.eventually("all have the first", has("1"))
	away.Store(true)
	w.repo.Commit("two", map[string]string{"web.yaml": configMap("web", "2")})
	for _, process := range []string{"the one of before", "another"} {
		client := dynamic.NewForConfigOrDie(w.members["eu-1"].config).Resource(configMaps).Namespace("default")
		if err := client.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("it is kept by "+process, has("1"))
		if process == "another" {
			break
		}
		end()
		end = w.running(opt)
	}
	for _, d := range w.deletions() {
		if d != "eu-1 DELETE /api/v1/namespaces/default/configmaps/web" {
			t.Errorf("deleted: %s", d)
		}
	}
	if said := w.said(); !strings.Contains(said, "503") || !strings.Contains(said, "the repository was not read since") {
		t.Errorf("it is not told:\n%s", said)
	}
	away.Store(false)
	w.eventually("all have the second", has("2"))
	end()
}
