// SPDX-License-Identifier: Apache-2.0

// Command dist makes what is released: an archive of the program for each platform, a
// software bill of materials of each, an OCI image, and checksums of all. The same commit
// gives the same bytes, whoever makes them and when.
//
//	go -C hack/dist run . -out ../../dist -version v1.2.0
//	go -C hack/dist run . -out ../../dist -image
//
// No container engine and no registry is needed: the image is built from scratch.
package main

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// platform is one that the program is built for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// release is what is made.
type release struct {
	root, out string // of the module; and where everything is written
	version   string
	revision  string    // commit; empty outside of a checkout
	when      time.Time // of the commit
}

func main() {
	root := flag.String("root", "../..", "directory of the module")
	out := flag.String("out", "../../dist", "directory to write to")
	version := flag.String("version", "dev", "version of the release")
	platforms := flag.String("platforms", "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64", "platforms to build for")
	image := flag.Bool("image", false, "make the OCI image of the Linux platforms instead of the archives")
	flag.Parse()

	if err := run(*root, *out, *version, strings.Fields(*platforms), *image); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(root, out, version string, names []string, image bool) error {
	r, err := newRelease(root, out, version)
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "fairlead-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)

	binaries := map[platform]string{}
	for _, name := range names {
		goos, goarch, ok := strings.Cut(name, "/")
		if !ok {
			return fmt.Errorf("platform %q must be OS/ARCH", name)
		}
		p := platform{goos, goarch}
		if image && p.os != "linux" {
			continue
		}
		if binaries[p], err = r.build(p, temporary); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}

	if image {
		err = r.writeImage(binaries)
	} else {
		err = r.writeArchives(binaries)
	}
	if err != nil {
		return err
	}
	return r.writeChecksums()
}

// newRelease reads the commit. SOURCE_DATE_EPOCH is when it was made, outside of a checkout.
func newRelease(root, out, version string) (*release, error) {
	r := &release{root: root, version: version}
	var err error
	if r.out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return nil, err
	}

	commit, _ := exec.Command("git", "-C", root, "log", "-1", "--format=%H %ct").Output()
	revision, seconds, _ := strings.Cut(strings.TrimSpace(string(commit)), " ")
	r.revision = revision
	epoch, err := strconv.ParseInt(cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), seconds, "0"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	r.when = time.Unix(epoch, 0).UTC()
	return r, nil
}

// build compiles the program. Neither the directory nor the state of the checkout is in it.
func (r *release) build(p platform, dir string) (string, error) {
	binary := filepath.Join(dir, p.os+"-"+p.arch)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+r.version, "-o", binary, "./cmd/fairlead")
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOFLAGS=", "GOAMD64=", "GOARM64=")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return binary, cmd.Run()
}

// name is of a file for a platform: fairlead_v1.2.0_linux_amd64 and its ending.
func (r *release) name(p platform, ending string) string {
	return filepath.Join(r.out, fmt.Sprintf("fairlead_%s_%s_%s%s", r.version, p.os, p.arch, ending))
}

// writeChecksums writes those of every file of the release, as sha256sum -c reads them.
func (r *release) writeChecksums() error {
	var lines strings.Builder
	entries, err := os.ReadDir(r.out) // sorted
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "fairlead_"+r.version+"_") {
			continue
		}
		content, err := fs.ReadFile(os.DirFS(r.out), entry.Name())
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "checksums.txt"), []byte(lines.String()), 0o644)
}
