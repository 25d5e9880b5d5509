// SPDX-License-Identifier: Apache-2.0

// Package yamledit changes YAML and JSON documents and keeps everything else as
// it was: comments, order, quoting, indentation, line endings.
//
// It never re-encodes a document. It parses the document for the positions of
// its nodes, and cuts and inserts text there. Then it parses the result again,
// and refuses the edit unless exactly the requested part has changed. What
// cannot be edited without touching more, such as an alias, is refused with its
// line.
//
// It works on bytes and knows neither git nor files. Start with Read, then
// File.At returns an Object; Policy and Cluster know the fields that commands
// edit. New writes a new manifest.
package yamledit
