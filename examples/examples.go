// SPDX-License-Identifier: Apache-2.0

// Package examples contains fleet repositories that users can copy. Tests
// render and fold them, and the demo starts from one.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed all:quickstart
var files embed.FS

// Quickstart returns a small shop on three clusters.
func Quickstart() fs.FS {
	sub, err := fs.Sub(files, "quickstart")
	if err != nil {
		panic(err) // the directory is embedded above
	}
	return sub
}
