// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// What an image runs, and as whom. The Dockerfile says the same; a test compares them.
const (
	user       = "65532:65532"
	entrypoint = "/usr/local/bin/fairlead"
	command    = "controller"
)

// writeImage writes an image for each platform as one archive in the layout of OCI.
func (r *release) writeImage(binaries map[platform]string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range sorted(binaries) {
		program, err := os.ReadFile(binaries[p])
		if err != nil {
			return err
		}
		image, err := r.image(p, program)
		if err != nil {
			return fmt.Errorf("image for %s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}}})
	}

	archive, err := r.layout(index)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "fairlead_"+r.version+"_oci.tar"), archive, 0o644)
}

func (r *release) image(p platform, program []byte) (v1.Image, error) {
	var layers []v1.Layer
	for _, files := range [][]file{base(), {{name: "usr/", mode: 0o755}, {name: "usr/local/", mode: 0o755}, {name: "usr/local/bin/", mode: 0o755}, {name: entrypoint[1:], mode: 0o755, content: program}}} {
		var content bytes.Buffer
		if err := writeTar(&content, files, r.when); err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}

	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(image, layers...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.when}
	for i := range config.History {
		config.History[i] = v1.History{Created: v1.Time{Time: r.when}, CreatedBy: "hack/dist"}
	}
	config.Config = v1.Config{
		User: user, Entrypoint: []string{entrypoint}, Cmd: []string{command}, WorkingDir: "/",
		Env: []string{"PATH=/usr/local/bin", "HOME=/tmp", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "fairlead", "org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.revision,
			"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": "https://github.com/fairlead/fairlead",
		},
	}
	return mutate.ConfigFile(image, config)
}

// base is what the program needs besides itself: the authorities that Mozilla trusts, a
// user to be, and a directory for temporary files.
func base() []file {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer takes everything
	}
	return []file{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n")},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots.Bytes()},
		{name: "tmp/", mode: 0o1777},
	}
}

// layout is an index with everything that it refers to, as one archive.
func (r *release) layout(index v1.ImageIndex) ([]byte, error) {
	dir, err := os.MkdirTemp("", "fairlead-oci-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return nil, err
	}
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})); err != nil {
		return nil, err
	}

	var files []file
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error { // sorted
		switch {
		case err != nil || name == ".":
			return err
		case entry.IsDir():
			files = append(files, file{name: name + "/", mode: 0o755})
			return nil
		}
		content, err := fs.ReadFile(os.DirFS(dir), name)
		files = append(files, file{name: name, mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = writeTar(&out, files, r.when)
	return out.Bytes(), err
}
