// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/fleet"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/source"
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
	if err := w.once(); err != nil && !errors.Is(err, reconcile.ErrNotConverged) {
		t.Fatal(err)
	}
	w.repo.Commit("broken", map[string]string{"broken.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {key: [" + canary + "}\n"})
	if err := w.once(); !errors.Is(err, reconcile.ErrNotConverged) {
		t.Fatal(err)
	}
	if events, err := os.ReadFile(filepath.Join(w.state, "events.jsonl")); err != nil || !bytes.Contains(events, []byte(`"applied"`)) || !bytes.Contains(events, []byte("broken.yaml:3")) {
		t.Errorf("the record of events should tell of both: %v\n%s", err, events)
	}
	w.wantNowhere(canary)
}

// wantNowhere looks for what must not be said, nor kept, and for a repository.
func (w *world) wantNowhere(canary string) {
	w.t.Helper()
	for _, path := range w.wantUntold(canary) {
		if strings.Contains(path, "/objects/") || strings.HasSuffix(path, ".pack") {
			w.t.Errorf("there is a repository: %s", path)
		}
	}
}

// wantUntold looks for what must not be said, nor kept, and lists the files that are.
func (w *world) wantUntold(canary string) (files []string) {
	w.t.Helper()
	if said := w.said(); strings.Contains(said, canary) {
		w.t.Errorf("it was said:\n%s", said)
	}
	err := filepath.WalkDir(w.state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(canary)) {
			w.t.Errorf("it stands in %s", filepath.Base(path))
		}
		files = append(files, path)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

// T51, T54 for pull clusters: a secret value reaches the branch, with a warning,
// and nothing else; the password of the repository reaches nobody. What SOPS has
// encrypted needs no warning.
func TestSecretsOfBranches(t *testing.T) {
	const canary, password = "canary-7f3a9c", "pa55-7f3a9c"
	w := newWorld(t, nil)
	d := newDeploy(t)
	s := serveDeploy(t, d)
	secret := func(name, more string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: default}\nstringData: {key: " + canary + "}\n" + more
	}
	publish := func(address string) (said string, err error) {
		opt := w.options()
		opt.Timeout = 2 * time.Second
		opt.Members = func(c *fleet.Cluster) (member.Member, error) {
			to, err := source.OpenBranches(strings.Replace(address, "://", "://ada:"+password+"@", 1), source.Auth{})
			if err != nil {
				return nil, err
			}
			return pull.Branch(reconcile.Publish(to), "fairlead/"+c.Name), nil
		}
		l, err := reconcile.Open(context.Background(), opt)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(l.Once(context.Background()), l.Close())
		said = w.said()
		if strings.Contains(said, canary) || strings.Contains(said, password) {
			t.Errorf("said\n%s", said)
		}
		return said, err
	}
	w.repo.Commit("sealed", map[string]string{
		"plain.yaml":   secret("plain", ""),
		"held.yaml":    secret("held", ""),
		"sealed.yaml":  secret("sealed", "sops: {mac_only_encrypted: true}\n"),
		"cluster.yaml": "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: eu-1}\nspec: {syncMode: Pull}\n",
		"p.yaml":       policyFor("Secret", "sealed"),
		"q.yaml":       policyFor("Secret", "held") + "  suspension: {dispatching: true}\n",
	})
	if said, err := publish(s.URL + "/deploy.git"); err != nil || strings.Contains(said, "readable") {
		t.Errorf("%v: said\n%s", err, said)
	}
	w.repo.Commit("plain", map[string]string{"r.yaml": policyFor("Secret", "plain")})
	said, err := publish(s.URL + "/deploy.git")
	if want := "eu-1: Secret default/plain stands readable in branch fairlead/eu-1 of " + s.URL; err != nil || !strings.Contains(said, want) {
		t.Errorf("%v: said\n%s", err, said)
	}
	if got := d.show("eu-1", "default/secret_plain.yaml"); !strings.Contains(got, canary) {
		t.Errorf("the cluster gets\n%s", got)
	}
	w.repo.Commit("more", map[string]string{"plain.yaml": secret("plain", "immutable: false\n")})
	for address, want := range map[string]string{
		s.URL + "/nothing.git":          "publish on eu-1: ",
		"http://127.0.0.1:1/deploy.git": "eu-1 does not answer: http://127.0.0.1:1/deploy.git: ",
	} {
		if said, err := publish(address); !errors.Is(err, reconcile.ErrNotConverged) || !strings.Contains(said, want) {
			t.Errorf("%s: %v: said\n%s", address, err, said)
		}
	}
	w.wantNowhere(canary)
	w.wantNowhere(password)
}

// The password in the address of the fleet's repository is not kept, not even in the
// checkpoint, and after it is changed the state is still that of the same fleet; a
// checkpoint of an earlier version, which has it, is not printed (A8, decision 48).
func TestPasswordOfTheRepositoryIsNotKept(t *testing.T) {
	w := newWorld(t, nil)
	w.repo.Commit("first", map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"})
	d := newDeploy(t)
	d.in("fetch", w.repo.Dir, "+main:main")
	s := serveDeploy(t, d)
	follow := func(user, path string) error {
		opt := w.options()
		opt.Repo = strings.Replace(s.URL, "://", "://"+user+"@", 1) + "/deploy.git"
		opt.Path = path
		l, err := reconcile.Open(context.Background(), opt)
		if err != nil {
			return err
		}
		return errors.Join(l.Once(context.Background()), l.Close())
	}
	for _, user := range []string{"ada:pa55-7f3a9c", "ada:pa55-8e2b0d", "pa55-t0ken"} {
		if err := follow(user, "."); err != nil {
			t.Fatalf("%s: %v", user, err)
		}
	}
	err := follow("ada:pa55-7f3a9c", "elsewhere")
	if err == nil || !strings.Contains(err.Error(), "the state directory is of "+s.URL) || strings.Contains(err.Error(), "pa55") {
		t.Errorf("got %v", err)
	}
	w.wantUntold("pa55")
}
