// SPDX-License-Identifier: Apache-2.0

// Package render turns the files of a commit into a fleet.Snapshot. It executes
// nothing and reads nothing outside the tree, and the same tree gives the same
// snapshot on every machine.
//
// A directory with a kustomization file is one unit, built as kustomize would
// build it; every other *.yaml, *.yml and *.json file is one unit, read as it
// is. Files below a kustomization's directory belong to that kustomization. A
// kustomization that another one uses is not rendered on its own. One that
// nobody uses is, even below another one's directory: files must not vanish
// silently.
//
// Start with Renderer.Render for a whole tree; Renderer.Next renders a later
// tree at the cost of what changed. A unit remembers every path it read, and
// every path it looked for in vain.
//
// A unit that cannot be rendered refuses the tree, or keeps its content from
// the previous one; fairlead.yaml decides which. See freeze.go, and
// ambiguity.go for the cases in which keeping it would be a guess.
//
// The package owns kustomize, and hides that kustomize keeps one OpenAPI schema
// per process (see build in kustomize.go).
package render
