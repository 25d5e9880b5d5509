// SPDX-License-Identifier: Apache-2.0

// Package printable makes text that others wrote safe to show. Names, messages of
// commits, notes and what servers answer reach terminals and the logs of pipelines: a
// control character in them moves a cursor, a line break writes a line of its own, and
// a bidirectional mark shows a line as it is not (decision 48).
//
// [Line] is for a piece of a line, where that is put together; [Writer] is the last
// guard of a whole output. JSON and YAML escape by themselves, and a patch has to stay
// as it is.
package printable
