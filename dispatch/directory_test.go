// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead/fairlead/dispatch"
	"github.com/fairlead/fairlead/dispatch/dispatchtest"
	"github.com/fairlead/fairlead/dispatch/member"
	"github.com/fairlead/fairlead/dispatch/pull"
	"github.com/fairlead/fairlead/object"
)

func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDirectoryFiles(t *testing.T) {
	dispatchtest.RunFiles(t, directoryFiles)
}

// directoryFiles is a directory of its own.
func directoryFiles(t *testing.T) dispatchtest.Files {
	dir := t.TempDir()
	read := func() map[string]string {
		contents := map[string]string{}
		for _, path := range files(t, dir) {
			b, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			contents[path] = string(b)
		}
		return contents
	}
	writes, last := 0, ""
	return dispatchtest.Files{
		Open: func() member.Member { return pull.Directory(dir) },
		Read: read,
		Put: func(path, content string) {
			path = filepath.Join(dir, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		Writes: func() int {
			var now strings.Builder
			for _, path := range files(t, dir) {
				info, err := os.Stat(filepath.Join(dir, path))
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(&now, path, info.ModTime().UnixNano(), info.Sys().(*syscall.Stat_t).Ino)
			}
			if now.String() != last {
				writes, last = writes+1, now.String()
			}
			return writes
		},
	}
}

// A pull cluster's directory holds what the cluster should run, one file per
// object, and nothing else.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	inventory := &dispatchtest.Inventory{}
	open := func() *dispatch.Dispatcher {
		d := dispatch.New(inventory, dispatch.Options{Backoff: quick})
		d.SetMember("edge", pull.Directory(dir))
		return d
	}
	d := open()
	role := dispatchtest.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'Shop:../read'}}")
	web := deployment("web", 1)
	want := func(works ...dispatchtest.Work) {
		t.Helper()
		sync1(t, d, dispatchtest.Works{"edge": works})
		if left := wait(t, d, 5*time.Second); len(left) != 0 {
			t.Fatalf("left: %v", left[0].Err)
		}
	}
	want(apply(configMap("a", "red"), web, role)...)
	got := files(t, dir)
	if want := []string{
		"_cluster/clusterrole.rbac.authorization.k8s.io_%53hop%3A..%2Fread.yaml",
		"default/configmap_a.yaml",
		"default/deployment.apps_web.yaml",
	}; !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}

	// A lost inventory finds its files again and writes none.
	before, err := os.Stat(filepath.Join(dir, "default/configmap_a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	inventory = &dispatchtest.Inventory{}
	d = open()
	want(apply(configMap("a", "red"), web, role)...)
	after, err := os.Stat(filepath.Join(dir, "default/configmap_a.yaml"))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was written again (%v)", err)
	}

	// Somebody else's file is foreign.
	if err := os.WriteFile(filepath.Join(dir, "default/configmap_b.yaml"),
		[]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: default}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	sync1(t, d, dispatchtest.Works{"edge": apply(configMap("a", "red"), web, role, configMap("b", "red"))})
	left := wait(t, d, 5*time.Second)
	if len(left) != 1 || !left[0].Final || !strings.Contains(left[0].Err.Error(), "is not ours") {
		t.Errorf("left: %+v", left)
	}

	want(dispatchtest.Work{Verb: dispatch.Delete, Object: web}, dispatchtest.Work{Verb: dispatch.Orphan, Object: role},
		dispatchtest.Work{Verb: dispatch.Apply, Object: configMap("a", "blue")})
	released := "_cluster/clusterrole.rbac.authorization.k8s.io_%53hop%3A..%2Fread.yaml"
	if got, want := files(t, dir), []string{released, "default/configmap_a.yaml", "default/configmap_b.yaml"}; !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	raw, err := os.ReadFile(filepath.Join(dir, released))
	if want := `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  annotations:
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
    kustomize.toolkit.fluxcd.io/prune: disabled
  name: Shop:../read
`; err != nil || string(raw) != want {
		t.Errorf("what was released is\n%s(%v)", raw, err)
	}
	found, err := pull.Directory(dir).Get(context.Background(), refConfigMap("a"))
	if err != nil || found.Annotations[object.AnnotationDigest] != dispatchtest.Digest(configMap("a", "blue")).String() {
		t.Errorf("found %v, %v", found, err)
	}
}

// A directory does not know what an autoscaler does: a file keeps the number
// that was scheduled.
func TestDirectoryReplicas(t *testing.T) {
	dir := t.TempDir()
	d := dispatch.New(&dispatchtest.Inventory{}, dispatch.Options{Backoff: quick})
	d.SetMember("edge", pull.Directory(dir))
	for _, replicas := range []int{3, 5} {
		web := dispatchtest.Object(fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: %d}}", replicas))
		sync1(t, d, dispatchtest.Works{"edge": {{Verb: dispatch.Apply, Object: web, RetainReplicas: true}}})
		if left := wait(t, d, 5*time.Second); len(left) != 0 {
			t.Fatalf("left: %v", left[0].Err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, "default/deployment.apps_web.yaml"))
		if want := fmt.Sprintf("replicas: %d\n", replicas); err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("the file is\n%s(%v), want %s", raw, err, want)
		}
	}
}

// A15, decision 50: what is published may be a Secret: nobody else reads it, whatever
// the umask. What a kill left half-written is removed before the first file is written,
// and nothing else is.
func TestDirectoryIsClosed(t *testing.T) {
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	dir := filepath.Join(t.TempDir(), "out", "eu-1[*]")
	if err := os.MkdirAll(filepath.Join(dir, "default"), 0o700); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(dir, "default", "new-1")
	for _, path := range []string{theirs, filepath.Join(dir, ".new-17"), filepath.Join(dir, "default", ".new-18")} {
		if err := os.WriteFile(path, []byte("data: {half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := pull.Directory(dir)
	secret := dispatchtest.Object("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, stringData: {k: v}}")
	write := func() {
		t.Helper()
		for _, o := range []map[string]any{configMap("a", "red"), secret} {
			if _, err := m.Apply(t.Context(), o, member.ApplyOptions{Force: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	if got, want := files(t, dir), []string{"_cluster/namespace_shop.yaml", "default/configmap_a.yaml", "default/new-1", "shop/secret_s.yaml"}; !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	if err := os.Chmod(filepath.Join(dir, "shop", "secret_s.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	write() // it is as it should be, and others may read it
	for path, want := range map[string]fs.FileMode{"shop": 0o700, "_cluster": 0o700, "shop/secret_s.yaml": 0o600, "default/configmap_a.yaml": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s is %o, want %o", path, got, want)
		}
	}
}
