// SPDX-License-Identifier: Apache-2.0

// Package render turns the files of a commit into a propagate.Snapshot: a
// tree in, a Snapshot out; no network, nothing executed, nothing read outside
// the tree, and the same tree gives the same snapshot on every machine.
//
// A directory with a kustomization file is one unit, built as kustomize would
// build it; every other *.yaml, *.yml and *.json file is one unit, read as it
// is. What stands under a kustomization's directory belongs to it. A
// kustomization that another one uses is not rendered on its own; one that
// nobody uses is, also when it stands under another one's directory: files
// that were written must not silently vanish.
//
// Begin with Renderer.Render for a whole tree; Renderer.Next renders a later
// tree at the cost of what changed. A unit remembers every path it read, and
// every path it looked for and did not find.
//
// A unit that cannot be rendered refuses its tree, or keeps what it had in the
// one before; fairlead.yaml says which (see freeze.go, and doubt.go for when
// that would be a guess).
//
// The package owns kustomize, and hides that it keeps a schema for the whole
// process (see build in kustomize.go).
package render
