// SPDX-License-Identifier: Apache-2.0

// Package examples holds fleet repositories that a user can copy. The tests
// render and fold them, and the demo begins with one.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed all:quickstart
var files embed.FS

// Quickstart is a small shop on three clusters.
func Quickstart() fs.FS {
	sub, err := fs.Sub(files, "quickstart")
	if err != nil {
		panic(err) // the directory is embedded above
	}
	return sub
}
