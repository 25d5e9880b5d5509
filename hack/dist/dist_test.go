// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}}

// made makes everything of one release from this test's own binary, as if on another
// machine each time, and returns the files.
func made(t *testing.T) map[string][]byte {
	t.Helper()
	r := &release{root: "../..", out: t.TempDir(), version: "v1.2.0", revision: strings.Repeat("a", 40), when: time.Unix(1_700_000_000, 0).UTC()}
	binary := filepath.Join(t.TempDir(), "fairlead")
	own, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, own, 0o700); err != nil {
		t.Fatal(err)
	}
	binaries := map[platform]string{}
	for _, p := range platforms {
		binaries[p] = binary
	}
	for _, write := range []func() error{func() error { return r.writeArchives(binaries) }, func() error { return r.writeImage(binaries) }, r.writeChecksums} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}

	files := map[string][]byte{}
	entries, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(r.out, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// The same commit gives the same bytes.
func TestReproducible(t *testing.T) {
	one, two := made(t), made(t)
	if len(one) != 6 {
		t.Errorf("%d files", len(one))
	}
	for name, content := range one {
		if !bytes.Equal(content, two[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestArchive(t *testing.T) {
	files := made(t)
	unpacked, err := gzip.NewReader(bytes.NewReader(files["fairlead_v1.2.0_linux_amd64.tar.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(unpacked); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		if header.Uid != 0 || header.ModTime.Unix() != 1_700_000_000 {
			t.Errorf("%s: owner %d, time %s", header.Name, header.Uid, header.ModTime)
		}
	}
	if got := strings.Join(names, " "); got != "fairlead CHANGELOG.md LICENSE README.md" {
		t.Error(got)
	}

	if got := string(files["checksums.txt"]); strings.Count(got, "\n") != 5 || !strings.Contains(got, "  fairlead_v1.2.0_oci.tar\n") {
		t.Error(got)
	}
	var bill struct {
		BOMFormat  string
		Components []struct{ Name, Purl string }
	}
	if err := json.Unmarshal(files["fairlead_v1.2.0_linux_arm64.cdx.json"], &bill); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, c := range bill.Components {
		found[c.Name] = c.Purl
	}
	if bill.BOMFormat != "CycloneDX" || !strings.HasPrefix(found["github.com/google/go-containerregistry"], "pkg:golang/github.com/google/go-containerregistry@v") || found["stdlib"] == "" {
		t.Errorf("%+v", bill)
	}
}

// The image is valid, and runs what the Dockerfile's does, as the same user.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	r := tar.NewReader(bytes.NewReader(made(t)["fairlead_v1.2.0_oci.tar"]))
	for {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, header.Name)
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(at, 0o755)
		} else {
			content, _ := io.ReadAll(r)
			err = os.WriteFile(at, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(root); err != nil {
		t.Fatal(err)
	}

	index := only(t, root)
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	for i, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if d.Platform.OS != platforms[i].os || config.Architecture != platforms[i].arch || config.Config.User != user {
			t.Errorf("%+v: %+v", d.Platform, config)
		}
		inside(t, image)
	}
}

func only(t *testing.T, root v1.ImageIndex) v1.ImageIndex {
	t.Helper()
	manifest, err := root.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1.2.0" {
		t.Fatalf("%+v, %v", manifest, err)
	}
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// inside looks at the file system.
func inside(t *testing.T, image v1.Image) {
	t.Helper()
	files := mutate.Extract(image)
	defer files.Close()
	modes := map[string]int64{}
	for r := tar.NewReader(files); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[strings.TrimSuffix(header.Name, "/")] = header.Mode
		if header.Name == "etc/ssl/certs/ca-certificates.crt" && header.Size < 100_000 {
			t.Errorf("authorities of %d bytes", header.Size)
		}
	}
	if modes["usr/local/bin/fairlead"] != 0o755 || modes["tmp"] != 0o1777 || modes["etc/ssl/certs/ca-certificates.crt"] != 0o644 {
		t.Errorf("%v", modes)
	}
}

func TestDockerfileIsInStep(t *testing.T) {
	b, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"USER " + user, `ENTRYPOINT ["` + entrypoint + `"]`, `CMD ["` + command + `"]`, "-trimpath", "-s -w -X main.version="} {
		if !strings.Contains(string(b), line) {
			t.Errorf("the Dockerfile has no %s", line)
		}
	}
}
