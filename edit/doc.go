// SPDX-License-Identifier: Apache-2.0

// Package edit changes YAML and JSON documents. Its promise: a change of a
// document that keeps everything else as it was: comments, order, quoting,
// indentation, line ends.
//
// Nothing is encoded anew. The document is parsed for the places of its nodes,
// and text is cut out and put in there; then the result is parsed again, and
// the edit is refused unless exactly what was asked for has changed. What it
// cannot do without touching more, an alias for one, it refuses and names the
// line.
//
// Bytes go in and bytes come out: no git, no files. Begin with Read, then
// File.At gives an Object; Policy and Cluster know the fields that commands
// edit. New writes a manifest that was not there before.
package edit
