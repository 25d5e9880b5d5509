// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is an entry of an archive.
type file struct {
	name    string
	mode    int64 // of a directory where the name ends with a slash
	owner   int
	content []byte
}

// writeTar writes files in their order. Nothing in it depends on the machine.
func writeTar(out io.Writer, files []file, when time.Time) error {
	w := tar.NewWriter(out)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: when, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag, header.Size = tar.TypeDir, 0
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	return w.Close()
}

// writeArchives writes an archive and a bill of materials for each platform.
func (r *release) writeArchives(binaries map[platform]string) error {
	for _, p := range sorted(binaries) {
		archive, err := r.archive(binaries[p])
		if err != nil {
			return err
		}
		if err := os.WriteFile(r.name(p, ".tar.gz"), archive, 0o644); err != nil {
			return err
		}

		bill, err := r.bill(binaries[p])
		if err != nil {
			return err
		}
		if err := os.WriteFile(r.name(p, ".cdx.json"), bill, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func sorted(binaries map[platform]string) []platform {
	return slices.SortedFunc(maps.Keys(binaries), func(a, b platform) int { return strings.Compare(a.String(), b.String()) })
}

// archive holds the program, its licence and its manual.
func (r *release) archive(binary string) ([]byte, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	files := []file{{name: "fairlead", mode: 0o755, content: program}}
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		content, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, mode: 0o644, content: content})
	}

	var out bytes.Buffer
	packed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTar(packed, files, r.when); err != nil {
		return nil, err
	}
	err = packed.Close()
	return out.Bytes(), err
}
