// SPDX-License-Identifier: Apache-2.0

// Package draw draws the pictures of the page as SVG: values in, bytes out.
//
// A Ruler is the history of a branch with a lane for each cluster, and Replicas are
// what clusters run of what is asked. Each is drawn for a width in CSS pixels, so that its text keeps its size:
// a page that fits telephones holds two of them, and its style sheet hides one.
//
// Text that others wrote is escaped and made printable here, and cut where it
// would run into its neighbour; the whole of it is in the title. A state is told
// by a glyph and a word, its color comes third. A picture with links is a group
// of links to assistive technology, since the parts of an image are not read; one
// without links is an image.
//
// A picture has no colors of its own, no inline style and no id, so that a strict
// Content-Security-Policy lets it be, and many of them stand in one document.
// Style has the rules for its classes, to be served with the page's own; they ask
// the page for these custom properties, and have a value for each that is unset:
//
//	--text --soft --line --back              text, what is less important, hairlines, the page
//	--current --held --deferred --rolling    the states
//	--behind --failed --unknown
//	--focus                                  where the page is, and what has the focus
//
// The classes are: draw (the picture), draw-ruler, draw-replicas (which
// one), t-name, t-note, t-mono, t-word (text), line, grid, axis (strokes), now
// (where the page is), dot, stop, glyph (marks), backlog, hatch, bar
// (shapes), and s-current, s-held, s-deferred, s-progress, s-outdated, s-failed,
// s-unknown, s-absent (states, on the group that has one).
package draw
